"""Background jobs: run, pause, run again, until stopped."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger(__name__)

Job = Callable[[], Awaitable[int]]


async def every(pause_s: float, job: Job, stop: asyncio.Event) -> None:
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
        if not done:
            await pause(pause_s * random.uniform(0.8, 1.2), stop)


@asynccontextmanager
async def running(jobs: Sequence[tuple[float, Job]]) -> AsyncIterator[None]:
    """Jobs, each with its pause, run until the block ends; one under way is finished first."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for pause_s, job in jobs:
            group.create_task(every(pause_s, job, stop))
        try:
            yield
        finally:
            stop.set()


async def pause(seconds: float, stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
