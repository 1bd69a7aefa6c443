"""Seats of refused holds, counted in this process until they are stored. No I/O.

Every loser of an on-sale passes here, so a refusal costs a few additions and never a statement (R13). The
counts of a show are handed over when there are many of them, or after some calls of `take`; what does not fit
is not counted by seat.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

SEATS_COUNTED_MAX = 100_000  # of all shows; about 100 bytes each
SHOWS_COUNTED_MAX = 1_000
MANY = 100  # refused holds: worth a row at once
CALLS_MAX = 12  # of `take` that fewer wait


@dataclass(slots=True)
class ShowDemand:
    """Of one show, since the counts were last taken."""

    refused: int = 0  # holds
    times: dict[int, int] = field(default_factory=dict)  # seat -> refused holds that it was in
    calls: int = 0  # of `take` that left it here


class WantedSeats:
    def __init__(self) -> None:
        self._by_show: dict[int, ShowDemand] = {}
        self._seats = 0

    def add(self, show_id: int, seats: Sequence[int]) -> None:
        """A refused hold; without seats: any would have done."""
        demand = self._by_show.get(show_id)
        if demand is None:
            if len(self._by_show) >= SHOWS_COUNTED_MAX:
                return
            demand = self._by_show[show_id] = ShowDemand()
        demand.refused += 1
        times = demand.times
        for seat in seats:
            if seat in times:
                times[seat] += 1
            elif self._seats < SEATS_COUNTED_MAX:
                times[seat] = 1
                self._seats += 1

    def take(self, *, all_of_them: bool = False) -> list[tuple[int, ShowDemand]]:
        """Hand over what is due; it is not counted here any more."""
        due = []
        for show_id, demand in self._by_show.items():
            demand.calls += 1
            if all_of_them or demand.refused >= MANY or demand.calls >= CALLS_MAX:
                due.append((show_id, demand))
        for show_id, demand in due:
            del self._by_show[show_id]
            self._seats -= len(demand.times)
        return due
