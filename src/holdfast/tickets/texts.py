"""What a ticket says, on a page and on paper, in the reader's language and region. No I/O."""

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from holdfast.tickets.issued import PrintedTicket, TicketShow

DEFAULT_LOCALE = "en_GB"


class TicketTexts:
    def __init__(self, locale: str, texts: Mapping[str, str]) -> None:
        self.locale = locale
        self.language = locale.partition("_")[0]
        self._texts = texts

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    @property
    def all(self) -> list[str]:
        """For the choice of a font."""
        return list(self._texts.values())

    def when(self, occasion: TicketShow) -> str:
        """Friday, 20 November 2026, 19:30 IST: the venue's time, as the reader's region writes it."""
        from babel.dates import format_date, format_time

        local: datetime = occasion.starts_at.astimezone(ZoneInfo(occasion.timezone))
        time = format_time(local, "short", locale=self.locale).replace("\u202f", "\u00a0")
        return f"{format_date(local, 'full', self.locale)}, {time} {local:%Z}"

    def seat(self, ticket: PrintedTicket) -> str:
        """Row J, seat 12."""
        text = self["seat_in_row"] if ticket.row else self["place"]
        return text.format(row=ticket.row, number=ticket.seat_number)
