"""While Redis is away the ledger decides alone: slower, a few at a time, and never wrong.

The show is marked first, so that Redis must be given a new map before it sells again. Seats are chosen from
the ledger's own map, at most a second old; whoever chose what somebody else just got is told so, or, having
asked for the best, gets the next best.
"""

import asyncio
import time

from holdfast.bookings import Bookings, Opening, OpeningOutcome, OpeningRefused, SeatsLost
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.holds.choice import Want, best
from holdfast.holds.conversion import is_repriced, opening_of
from holdfast.holds.errors import LeavesOrphan, SoldOut
from holdfast.holds.orphans import orphan_verdict
from holdfast.holds.outcome import Best, Held, Places, Seats
from holdfast.holds.request import HoldRequest
from holdfast.seatmap import SeatMap, Snapshot

TRIES_MAX = 5


class LedgerOnlyHolds:
    def __init__(self, ledger: Bookings, seatmap: SeatMap, *, at_once_max: int) -> None:
        self._ledger = ledger
        self._seatmap = seatmap
        self._at_once_max = at_once_max
        self._under_way = 0

    async def open(self, order: HoldRequest) -> tuple[Opening, OpeningOutcome]:
        if self._under_way >= self._at_once_max:
            metrics.add("ledger_only_total", outcome="busy")
            raise Busy(retry_after_s=1)
        self._under_way += 1
        try:
            return await self._open(order)
        finally:
            self._under_way -= 1

    async def _open(self, order: HoldRequest) -> tuple[Opening, OpeningOutcome]:
        """Best available tries the next best when somebody was faster; named seats are tried once."""
        taken: set[int] = set()
        for _ in range(TRIES_MAX):
            snapshot = await self._seatmap.snapshot(order.show.show_id)
            held = chosen(order, snapshot, taken)
            opening = opening_of(order, held, time.monotonic(), by_ledger=True)
            if is_repriced(order, opening):
                return opening, OpeningRefused("repriced")
            (answer,) = await self._ledger.open_many([opening])
            if isinstance(answer, OpeningRefused) and answer.why == "unmarked":
                await self._ledger.mark(order.show.show_id)
                continue
            if isinstance(answer, SeatsLost) and not isinstance(order.what, Seats):
                taken |= {rival.seat for rival in answer.rivals}
                await asyncio.sleep(0)
                continue
            metrics.add("ledger_only_total", outcome=type(answer).__name__.lower())
            return opening, answer
        raise Busy(retry_after_s=1)


def chosen(order: HoldRequest, snapshot: Snapshot, taken: set[int]) -> Held:
    """The seats to try for, from the ledger's map and what was found taken since."""
    states = bytearray(snapshot.states)
    for seat in taken:
        states[seat] = ord("H")
    match order.what:
        case Seats(seats, rule, _):
            is_free = all(states[seat] == ord("A") for seat in seats)  # else the ledger says who has them
            verdict = orphan_verdict(order.show.layout, bytes(states), seats) if is_free else None
            better = getattr(verdict, "better", None) if rule != "off" else None
            if better and rule == "refuse":
                raise LeavesOrphan(better=[order.show.layout.labels[seat] for seat in better])
            return Held(seats, 0, better, True)
        case Places(first, end, count):
            free = [seat for seat in range(first, end) if states[seat] == ord("A")]
            if len(free) < count:
                raise SoldOut(free=len(free))
            return Held(tuple(free[:count]), 0, None, True)
        case Best(count, category, prefer, accessible, together):
            want = Want(count, category, prefer, accessible, together)
            found = best(order.show.layout, bytes(states), want)
            if found is None:
                raise SoldOut(free=states.count(b"A"))
            return Held(found.seats, 0, None, found.together)
