"""Holds while Redis is unreachable: PostgreSQL decides alone, slower, a few at a time, and never wrong.

The sale is marked first, so that Redis gets a new map before it sells again. Seats are chosen from a map that
PostgreSQL built at most a second ago. If another buyer was faster, named seats are refused, and best
available tries the next best ones.
"""

import asyncio
import time

from holdfast.bookings import (
    AlreadyOpened,
    Booking,
    Bookings,
    Opening,
    OpeningOutcome,
    OpeningRefused,
    SeatsLost,
)
from holdfast.engines.metrics import metrics
from holdfast.errors import Busy
from holdfast.holds.choice import BestAvailable, find_best
from holdfast.holds.errors import LeavesOrphan, SoldOut
from holdfast.holds.opener import Opener
from holdfast.holds.orphans import check_orphans
from holdfast.holds.request import (
    Held,
    HoldRequest,
    NamedSeats,
    StandingPlaces,
    build_opening,
    is_repriced,
)
from holdfast.seatmap import SeatMap, Snapshot

TRIES_MAX = 5
LABELS = {Booking: "opened", AlreadyOpened: "already_opened", SeatsLost: "lost", OpeningRefused: "refused"}


class LedgerOnlyHolds:
    def __init__(self, bookings: Bookings, opener: Opener, seatmap: SeatMap, *, at_once_max: int) -> None:
        self._bookings = bookings
        self._opener = opener
        self._seatmap = seatmap
        self._at_once_max = at_once_max
        self._running = 0

    async def open(self, request: HoldRequest) -> tuple[Opening, OpeningOutcome]:
        # Every loser reaches PostgreSQL here. Without this limit a sell-out would take all its connections,
        # and payments and refunds would wait behind holds.
        if self._running >= self._at_once_max:
            metrics.add("ledger_only_total", outcome="busy")
            raise Busy(retry_after_s=1)
        self._running += 1
        try:
            return await self._open(request)
        finally:
            self._running -= 1

    async def _open(self, request: HoldRequest) -> tuple[Opening, OpeningOutcome]:
        """Best available tries the next best if another buyer was faster; named seats are refused then."""
        taken: set[int] = set()
        is_named = isinstance(request.selection, NamedSeats)
        for _ in range(TRIES_MAX):
            snapshot = await self._seatmap.snapshot(request.show.show_id)
            held = choose_seats(request, snapshot, taken)
            opening = build_opening(request, held, time.monotonic(), ledger_only=True)
            if is_repriced(request, opening):
                return opening, OpeningRefused("repriced")
            outcome = await self._opener.open_alone(opening)
            if isinstance(outcome, OpeningRefused) and outcome.reason == "unmarked":
                # A process that reaches Redis could still sell from the old map: mark the sale, then retry.
                await self._bookings.mark_map_stale(request.show.show_id)
                continue
            if isinstance(outcome, SeatsLost) and not (outcome.rivals and is_named):
                # The snapshot may be a second old: remember what it does not show yet. Without rivals the
                # seats came free while PostgreSQL looked: they are tried again.
                taken |= {rival.seat for rival in outcome.rivals}
                await asyncio.sleep(0)
                continue
            metrics.add("ledger_only_total", outcome=LABELS[type(outcome)])
            return opening, outcome
        raise Busy(retry_after_s=1)


def choose_seats(request: HoldRequest, snapshot: Snapshot, taken: set[int]) -> Held:
    """The seats to try, from PostgreSQL's map without the seats found taken since."""
    states = bytearray(snapshot.states)
    for seat in taken:
        states[seat] = ord("H")
    layout = request.show.layout
    match request.selection:
        case NamedSeats(seats, rule, _):
            # If one is taken, PostgreSQL refuses and names the owner's claim; no advice is needed.
            is_free = all(states[seat] == ord("A") for seat in seats)
            orphan = check_orphans(layout, bytes(states), seats) if is_free and rule != "off" else None
            better = orphan.better if orphan else None
            if better and rule == "refuse":
                raise LeavesOrphan(better=[layout.labels[seat] for seat in better])
            return Held(seats, 0, better, True)
        case StandingPlaces(first, end, count):
            free = [seat for seat in range(first, end) if states[seat] == ord("A")]
            if len(free) < count:
                raise SoldOut(free=len(free))
            return Held(tuple(free[:count]), 0, None, True)
        case BestAvailable() as wanted:
            found = find_best(layout, bytes(states), wanted)
            if found is None:
                raise SoldOut(free=states.count(b"A"))
            return Held(found.seats, 0, None, found.together)
