"""Batches of many shows in which no show waits for the lock of another.

    item ─► batch of all shows ─┬─► result
                                └─► locked ─► lane of that show ─► tried again until free or too late

A rebuild, a price change or an organiser's transaction locks rows of its show. A batch waits for them only
briefly. Then it is sent show by show, and the items of the locked show move to a lane of their own; new ones
of that show go straight there. A lane tries again after a short pause and holds no connection while it
pauses, so any number of locked shows leaves the pool to others. Without a locked show there are no lanes, and
every item costs what it does in a Batcher.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from holdfast.engines.batch import Batcher, Onward
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN
from holdfast.errors import Busy

# A batch of all shows waits at most this long for a row of one of them. Longer than a commit on a busy disk;
# shorter than what buyers of the other shows would notice.
SHARED_LOCK_WAIT_MS = 100
OWN_LOCK_WAIT_MS = 500  # in a lane: only buyers of the same show wait for it
PAUSE_S, PAUSE_S_MAX = 0.01, 0.1  # between two tries of a lane
SPLIT_AT_ONCE_MAX = 2  # shows of a split batch; more would take the connections of everything else


class OfShow(Protocol):
    @property
    def show_id(self) -> int: ...


Item = TypeVar("Item", bound=OfShow)
Result = TypeVar("Result")


async def send_by_show(
    items: Sequence[Item], send: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]
) -> list[Result | Exception]:
    """All at once. If a lock stops that, show by show: an item gets the error of its own show alone.

    `send` writes all or nothing. Items of a locked show get Busy: nothing of them was written.
    """
    try:
        return list(await send(items))
    except AGAIN:
        # A deadlock or a lock time-out rolled everything back: nothing of it was written.
        metrics.add("ledger_retries_total")
    by_show: dict[int, list[int]] = {}
    for position, item in enumerate(items):
        by_show.setdefault(item.show_id, []).append(position)
    results: list[Result | Exception] = [Busy(retry_after_s=1) for _ in items]
    room = asyncio.Semaphore(SPLIT_AT_ONCE_MAX)

    async def send_part(positions: list[int]) -> None:
        found: Sequence[Result | Exception]
        async with room:
            try:
                found = await send([items[i] for i in positions])
            except AGAIN:
                return
            except Exception as error:  # other parts may be committed: their callers get their results
                found = [error] * len(positions)
        for position, result in zip(positions, found, strict=True):
            results[position] = result

    if len(by_show) > 1:
        await asyncio.gather(*map(send_part, by_show.values()))
    return results


@contextmanager
def busy_if_locked() -> Iterator[None]:
    """For one statement outside of batches: Busy instead of the errors that a lock stopped it with."""
    try:
        yield
    except AGAIN as locked:
        raise Busy(retry_after_s=1) from locked


def is_busy(result: object) -> bool:
    return isinstance(result, Busy)


class ShowBatcher(Generic[Item, Result]):
    """A Batcher whose `send` also gets the longest wait for a lock, in milliseconds.

    `send` raises one of AGAIN if a lock stops it, or returns a result that `is_locked` for the items of the
    locked shows. Callers whose show stays locked for `lock_wait_s` get that result; Busy is raised.
    `lock_waits` is Postgres.lock_waits: all lanes of a process share these few connections.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item], int], Awaitable[Sequence[Result]]],
        lock_waits: asyncio.Semaphore,
        *,
        batch_max: int,
        waiting_max: int,
        lock_wait_s: float,
        is_locked: Callable[[Result | Exception], bool] = is_busy,
    ) -> None:
        self._send = send
        self._is_locked = is_locked
        self._lock_wait_s = lock_wait_s
        self._batches = {"batch_max": batch_max, "waiting_max": waiting_max}
        self._all: Batcher[Item, Result] = Batcher(self._send_all, **self._batches)
        self._all.name = getattr(send, "__name__", "").strip("_")
        # By show; empty on a good day. Each item with the time at which it met the lock.
        self._lanes: dict[int, Batcher[tuple[Item, float], Result]] = {}
        self._lock_waits = lock_waits

    @property
    def locked_shows(self) -> int:
        return len(self._lanes)

    def __call__(self, item: Item) -> asyncio.Future[Result]:
        if self._lanes and (lane := self._lanes.get(item.show_id)) is not None:
            return lane((item, time.monotonic()))
        return self._all(item)

    def follow(self, other: Batcher[Any, Any]) -> None:
        """The callers of the other batcher come on to this one: batch.py."""
        self._all.follow(other)

    def onward(self, item: Item) -> Onward:
        """For a batch whose callers go on to PostgreSQL without being woken."""
        if self._lanes and item.show_id in self._lanes:
            return self._to_lane(item)
        return Onward(item, self._all)

    async def send_alone(self, item: Item) -> Result:
        """In a statement of its own; waits for its show as a lane does."""
        (result,) = await self._send_patiently([(item, time.monotonic())])
        if isinstance(result, Exception):
            raise result
        return result

    async def _send_all(self, items: Sequence[Item]) -> list[Result | Exception | Onward]:
        results = await self._send_once(items, SHARED_LOCK_WAIT_MS)
        return [
            self._to_lane(item) if self._is_locked(result) else result
            for item, result in zip(items, results, strict=True)
        ]

    async def _send_once(self, items: Sequence[Item], lock_wait_ms: int) -> list[Result | Exception]:
        return await send_by_show(items, lambda part: self._send(part, lock_wait_ms))

    def _to_lane(self, item: Item) -> Onward:
        show_id = item.show_id
        if (lane := self._lanes.get(show_id)) is None:
            metrics.add("locked_shows_total")

            async def send(waiting: Sequence[tuple[Item, float]]) -> list[Result | Exception]:
                try:
                    return await self._send_patiently(waiting)
                finally:
                    # The show travels with the others again. Callers still in this lane are sent by it.
                    self._lanes.pop(show_id, None)

            lane = self._lanes[show_id] = Batcher(send, **self._batches)
            lane.name = f"{self._all.name} of a locked show"
        return Onward((item, time.monotonic()), lane)

    async def _send_patiently(self, items: Sequence[tuple[Item, float]]) -> list[Result | Exception]:
        """Try again while the show is locked; an item that has waited too long gets the locked result."""
        results: list[Result | Exception] = [Busy(retry_after_s=1) for _ in items]
        waiting, pause_s = list(range(len(items))), PAUSE_S
        while waiting:
            async with self._lock_waits:
                found = await self._send_once([items[i][0] for i in waiting], OWN_LOCK_WAIT_MS)
            for position, result in zip(waiting, found, strict=True):
                results[position] = result
            oldest_s = time.monotonic() - self._lock_wait_s
            waiting = [i for i in waiting if self._is_locked(results[i]) and items[i][1] > oldest_s]
            if waiting:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_S_MAX)
        return results
