"""Claims become rows in PostgreSQL, many in one round trip, and no show waits for the lock of another.

How a locked show waits apart from the others: engines/show_batch.py.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.bookings import Booking, Bookings, BookingState, Opening, OpeningOutcome, OpeningRefused
from holdfast.engines.batch import Batcher, Onward
from holdfast.engines.errors import EngineDown
from holdfast.engines.show_batch import ShowBatcher

HELD = BookingState.HELD
Decision = tuple[Opening, OpeningOutcome | EngineDown]  # EngineDown: the claim must still be dealt with


class Opener:
    def __init__(self, bookings: Bookings, *, batch_max: int, waiting_max: int, lock_wait_s: float) -> None:
        self._bookings = bookings
        self._batcher: ShowBatcher[Opening, Decision] = ShowBatcher(
            self._open_many,
            bookings.lock_waits,
            batch_max=batch_max,
            waiting_max=waiting_max,
            lock_wait_s=lock_wait_s,
            is_locked=_is_locked,
        )

    @property
    def locked_shows(self) -> int:
        return self._batcher.locked_shows

    def __call__(self, opening: Opening) -> asyncio.Future[Decision]:
        return self._batcher(opening)

    def follow(self, claims: Batcher[Any, Any]) -> None:
        """Winners of these batches come on to this one: it waits a moment for those that are under way."""
        self._batcher.follow(claims)

    def onward(self, opening: Opening) -> Onward:
        """For a batch whose callers go on to PostgreSQL without being woken."""
        return self._batcher.onward(opening)

    async def open_alone(self, opening: Opening) -> OpeningOutcome:
        """In a statement of its own; waits for its show as a lane does. Raises EngineDown."""
        _, outcome = await self._batcher.send_alone(opening)
        if isinstance(outcome, EngineDown):
            raise outcome
        return outcome

    async def _open_many(self, openings: Sequence[Opening], lock_wait_ms: int) -> list[Decision]:
        try:
            outcomes = await self._bookings.open_many(openings, lock_wait_ms=lock_wait_ms)
        except EngineDown as down:
            # An outcome, not an exception: each caller must release its own claim, or leave it if unsure.
            return [(opening, down) for opening in openings]
        return list(zip(openings, outcomes, strict=True))


def find_settled(opening: Opening, outcome: OpeningOutcome | EngineDown) -> Booking | None:
    """The booking, if the map has its seats as they are: nearly always. None: there is more to do."""
    if isinstance(outcome, Booking) and outcome.state is HELD and outcome.sale_epoch == opening.map_epoch:
        return outcome
    return None


def _is_locked(decision: Decision | Exception) -> bool:
    if isinstance(decision, Exception):
        return False
    outcome = decision[1]
    return isinstance(outcome, OpeningRefused) and outcome.reason == "locked"
