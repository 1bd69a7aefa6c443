"""Which reserved seats a waiting party is offered. No I/O.

The rule. Parties come in the order of the list. A party gets an offer as soon as reserved seats fit it:

- every seat is of one of its categories, if it named any, and costs at most its highest price;
- as many seats as the party has people;
- side by side, or in one standing area, if the party wants to be together; otherwise in as few groups as
  possible.

Which of several fitting groups it gets is decided by the rule of best available (holds/choice.py). Wheelchair
and companion places are offered to no party: they go back to the public, where buyers can request them.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct

from holdfast.holds import BestAvailable, find_best
from holdfast.layouts import Layout


class Wish(Struct, frozen=True):
    """What a party waits for, with categories by their index in the layout."""

    seats: int
    categories: frozenset[int] | None  # None: any
    price_minor_max: int | None  # per seat; None: any
    together: bool


class Matcher:
    """The reserved seats of one show while offers are made of them."""

    def __init__(self, layout: Layout, prices_minor: tuple[int, ...], reserved: Iterable[int]) -> None:
        self._layout = layout
        self._prices = prices_minor  # by category
        self.reserved = {seat for seat in reserved if seat < layout.seat_count}
        self._unmet: set[Wish] = set()  # seats are only taken away: what did not fit will not fit later

    def find_seats(self, wish: Wish) -> tuple[int, ...] | None:
        """None: no reserved seats fit."""
        if wish.seats > len(self.reserved) or wish in self._unmet:
            return None
        fitting = [seat for seat in self.reserved if self._fits(seat, wish)]
        found = self._find_in_rows(fitting, wish) or self._find_standing(fitting, wish.seats)
        if found is None:
            self._unmet.add(wish)
        return found

    def take(self, seats: Collection[int]) -> None:
        self.reserved -= set(seats)

    def _fits(self, seat: int, wish: Wish) -> bool:
        category = self._layout.category_of[seat]
        is_wanted = wish.categories is None or category in wish.categories
        return is_wanted and (wish.price_minor_max is None or self._prices[category] <= wish.price_minor_max)

    def _find_in_rows(self, fitting: Collection[int], wish: Wish) -> tuple[int, ...] | None:
        if len(fitting) < wish.seats:
            return None
        states = bytearray(b"X" * self._layout.seat_count)
        for seat in fitting:
            states[seat] = ord("A")
        found = find_best(self._layout, bytes(states), BestAvailable(wish.seats, together=wish.together))
        return found.seats if found else None

    def _find_standing(self, fitting: Collection[int], count: int) -> tuple[int, ...] | None:
        for area in self._layout.areas:
            places = sorted(seat for seat in fitting if area.start <= seat < area.start + area.capacity)
            if len(places) >= count:
                return tuple(places[:count])
        return None
