"""Claims become rows in PostgreSQL, many in one round trip, and no show waits for the lock of another.

    opening ─► batch of all shows ─┬─► outcome
                                   └─► locked ─► lane of that show ─► tried again until free or too late

A rebuild, a price change or an organiser's edit locks the sale of its show. The batch skips that show, and
its openings move to a lane of their own; new ones of that show go straight there. A lane asks again after a
short pause and holds no connection while it waits, so any number of locked shows leaves the pool to others.
Without a locked show there are no lanes, and every hold costs what it did: one batch for the whole house.
"""

import asyncio
import time
from collections.abc import Sequence

from holdfast.bookings import Bookings, Opening, OpeningOutcome, OpeningRefused
from holdfast.engines.batch import Batcher, Onward
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics

LOCKED = OpeningRefused("locked")
# A batch of all shows waits at most this long for a seat or a counter of one of them. Longer than a commit on
# a busy disk; shorter than what buyers of the other shows would notice.
SHARED_LOCK_WAIT_MS = 100
OWN_LOCK_WAIT_MS = 500  # in a lane: only buyers of the same show wait for it
PAUSE_S, PAUSE_S_MAX = 0.01, 0.1  # between two tries of a lane
LANES_TRYING_MAX = 2  # at once: locked shows must not take the connections of the others

Decision = tuple[Opening, OpeningOutcome | EngineDown]  # EngineDown: the claim must still be dealt with


class Opener:
    def __init__(self, bookings: Bookings, *, batch_max: int, waiting_max: int, lock_wait_s: float) -> None:
        self._bookings = bookings
        self._lock_wait_s = lock_wait_s
        self._batches = {"batch_max": batch_max, "waiting_max": waiting_max}
        self._all: Batcher[Opening, Decision] = Batcher(self._open_many, **self._batches)
        self._lanes: dict[int, Batcher[Opening, Decision]] = {}  # by show; empty on a good day
        self._trying = asyncio.Semaphore(LANES_TRYING_MAX)

    @property
    def locked_shows(self) -> int:
        return len(self._lanes)

    def __call__(self, opening: Opening) -> asyncio.Future[Decision]:
        return self._batcher(opening.show_id)(opening)

    def onward(self, opening: Opening) -> Onward:
        """For a batch whose callers go on to PostgreSQL without being woken."""
        return Onward(opening, self._batcher(opening.show_id))

    async def open_alone(self, opening: Opening) -> OpeningOutcome:
        """In a statement of its own; waits for its show as a lane does. Raises EngineDown."""
        (outcome,) = await self._open_patiently([opening])
        return outcome

    def _batcher(self, show_id: int) -> Batcher[Opening, Decision]:
        return self._lanes.get(show_id, self._all) if self._lanes else self._all

    async def _open_many(self, openings: Sequence[Opening]) -> list[Decision | Onward]:
        try:
            outcomes = await self._bookings.open_many(openings, lock_wait_ms=SHARED_LOCK_WAIT_MS)
        except EngineDown as down:
            # An outcome, not an exception: each caller must release its own claim, or leave it if unsure.
            return [(opening, down) for opening in openings]
        return [
            Onward(opening, self._lane(opening.show_id)) if _is_locked(outcome) else (opening, outcome)
            for opening, outcome in zip(openings, outcomes, strict=True)
        ]

    def _lane(self, show_id: int) -> Batcher[Opening, Decision]:
        if (lane := self._lanes.get(show_id)) is None:
            metrics.add("locked_shows_total")

            async def send(openings: Sequence[Opening]) -> list[Decision]:
                return await self._open_in_lane(show_id, openings)

            lane = self._lanes[show_id] = Batcher(send, **self._batches)
        return lane

    async def _open_in_lane(self, show_id: int, openings: Sequence[Opening]) -> list[Decision]:
        try:
            outcomes = await self._open_patiently(openings)
        except EngineDown as down:
            return [(opening, down) for opening in openings]
        finally:
            # The show travels with the others again. Callers still in this lane are sent by it.
            self._lanes.pop(show_id, None)
        return list(zip(openings, outcomes, strict=True))

    async def _open_patiently(self, openings: Sequence[Opening]) -> list[OpeningOutcome]:
        """Ask again while the show is locked; an opening whose claim is too old stays LOCKED."""
        outcomes: list[OpeningOutcome] = [LOCKED] * len(openings)
        waiting, pause_s = list(range(len(openings))), PAUSE_S
        while waiting:
            async with self._trying:
                tried = [openings[i] for i in waiting]
                found = await self._bookings.open_many(tried, lock_wait_ms=OWN_LOCK_WAIT_MS)
            for position, outcome in zip(waiting, found, strict=True):
                outcomes[position] = outcome
            oldest_s = time.monotonic() - self._lock_wait_s
            waiting = [i for i in waiting if _is_locked(outcomes[i]) and openings[i].claimed_at_s > oldest_s]
            if waiting:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)
        return outcomes


def _is_locked(outcome: OpeningOutcome) -> bool:
    return isinstance(outcome, OpeningRefused) and outcome.reason == "locked"
