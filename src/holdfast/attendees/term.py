"""What a search term can mean: a booking's id or reference, a mail address, a seat, a name. No I/O."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.bookings import NoSuchBooking, from_public_id, from_reference

WORD = re.compile(r"\w+")
WORDS_MAX = 6
TURN_BITS = 40  # a reference has the lower bits of a booking's number; the rest counts turns of 97 days
TURNS_SEARCHED = 8  # two years back
EPOCH_S = 1_577_836_800  # numbers count from 2020, in sixteenths of a second, above 13 bits of a sequence


@dataclass(frozen=True, slots=True)
class SearchTerm:
    text: str

    @property
    def booking(self) -> tuple[int, int] | None:
        """(show, number), if it is a booking's id."""
        try:
            return from_public_id(self.text.strip().lower())
        except NoSuchBooking:
            return None

    @property
    def email(self) -> str | None:
        text = self.text.strip().lower()
        return text if "@" in text else None

    @property
    def name_query(self) -> str | None:
        """For to_tsquery: every word begins a word of the name. None: there is no word in it."""
        words = WORD.findall(self.text.lower())[:WORDS_MAX]
        return " & ".join(f"'{word}':*" for word in words) or None

    @property
    def is_like_reference(self) -> bool:
        return bool(from_reference(0, self.text))

    def list_references(self, shows: Sequence[int], now: datetime) -> Iterator[tuple[int, int]]:
        """(show, number) that it can be the reference of, for bookings of the last two years."""
        latest = (int((now.timestamp() - EPOCH_S) * 16) << 13 >> TURN_BITS) + 1
        for show_id in shows:
            for number in from_reference(show_id, self.text):
                turn = number >> TURN_BITS
                if turn == 0 or latest - TURNS_SEARCHED <= turn <= latest:  # 0: numbers of older releases
                    yield show_id, number
