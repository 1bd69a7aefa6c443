"""Background jobs: run, pause, run again, until stopped."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from holdfast.engines.metrics import POD

log = structlog.get_logger(__name__)

REST_MAX_S = 30.0  # a job runs this often even if no look finds work for it

Job = Callable[[], Awaitable[int]]
Seconds = float | Callable[[], float]  # a function, if it depends on what there is to do


class WhenDue:
    """The pause of a job that waits until a look (engines/due_look.py) finds work for it.

    `query`: a SELECT of one value, how many things are due (or whether any is). `above`: fewer are left to
    other jobs with the same query. `pause_s`: at least, after a run that found nothing to do. `rest_s`: at
    most, whatever the looks say.
    """

    def __init__(self, query: str, pause_s: Seconds, *, above: int = 0, rest_s: Seconds = REST_MAX_S) -> None:
        self.query = query
        self._pause_s = pause_s
        self._above = above
        self._rest_s = rest_s
        self._is_due = asyncio.Event()

    def note(self, count: int) -> None:
        """What a look has found."""
        if count > self._above:
            self._is_due.set()

    def wake(self) -> None:
        self._is_due.set()

    async def wait(self, stop: asyncio.Event) -> None:
        # Work that a look finds during the pause is done after it: rows that another worker has in hand are
        # found by every look, and must not keep this one busy.
        await pause(_jittered(self._pause_s), stop)
        if not stop.is_set():
            await pause(_jittered(self._rest_s), self._is_due)
        self._is_due.clear()


Pause = Seconds | WhenDue


async def every(pause_s: Pause, job: Job, stop: asyncio.Event) -> None:
    """`job` returns how many things it did. Runs again immediately if it did work, otherwise pauses.

    An exception is logged and waited out: a job reads its state from the ledger each time,
    so the next run picks up where this one fell.
    """
    while not stop.is_set():
        try:
            done = await job()
        except Exception as error:
            log.warning("job failed", job=job.__qualname__, error=repr(error))
            done = 0
        if done:
            continue
        if isinstance(pause_s, WhenDue):
            await pause_s.wait(stop)
        else:
            await pause(_jittered(pause_s), stop)


@asynccontextmanager
async def running(jobs: Sequence[tuple[Pause, Job]]) -> AsyncIterator[None]:
    """Jobs, each with its pause, run until the block ends; one under way is finished first."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for pause_s, job in jobs:
            group.create_task(every(pause_s, job, stop))
        try:
            yield
        finally:
            stop.set()
            for pause_s, _ in jobs:
                if isinstance(pause_s, WhenDue):
                    pause_s.wake()


def _jittered(seconds: Seconds) -> float:
    return (seconds() if callable(seconds) else seconds) * random.uniform(0.8, 1.2)


def label_with_pod(pod: str, jobs: Sequence[tuple[Pause, Job]]) -> list[tuple[Pause, Job]]:
    """The same jobs; what they measure has the label `pod`."""
    return [(pause_s, _label(pod, job)) for pause_s, job in jobs]


def _label(pod: str, job: Job) -> Job:
    async def run() -> int:
        token = POD.set(pod)
        try:
            return await job()
        finally:
            POD.reset(token)

    run.__qualname__ = job.__qualname__
    return run


async def pause(seconds: float, stop: asyncio.Event) -> None:
    try:
        # Not wait_for, which would make a task each time: an idle house has 200 per second.
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
