"""One show never slows another: holds beside a show that is locked, and beside a stadium that is rebuilt.

The load is paced, so that what is measured is waiting for the other show and not for a processor. Each figure
is a speed, 1 / p99: at 0.83 the slowest holds take 1.2 times as long as without the disturbance.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.figure import Figure
from bench.load import HoldLoad, LoadResult, load_holds
from bench.session import Session
from tests.support.shows import a_layout

SECONDS = 10  # p99 is of some 4 000 holds: of fewer it would be luck
WARM_S = 3
LOCKED_S = 3.0
OTHERS = 50  # shows of 200 seats
LARGE_SEATS = 50_000
ACCOUNTS = 500
BAR = 0.83
CALM = "the same holds without it"


@dataclass(frozen=True)
class IsolationBench:
    env: Environment
    session: Session
    tokens: Path
    url: str

    async def p99_ms(self, disturbed: int, disturbance: AbstractAsyncContextManager[None]) -> float:
        """Of holds in other shows, while buyers of the disturbed show keep coming."""
        (first, *_) = await create_shows(self.env, a_layout(200), OTHERS)
        await self._load(first, OTHERS, "warm", connections=32, pause_ms=20, seconds=WARM_S)
        async with disturbance:
            # Its own buyers may wait for longer than the generator does, or be refused. Not measured.
            waiting = asyncio.gather(
                self._load(disturbed, 1, "hold", connections=8, pause_ms=200), return_exceptions=True
            )
            others = await self._load(first, OTHERS, "hold", connections=32, pause_ms=80)
            await waiting
        return others.expect(201).p99_ms

    async def _load(
        self, first: int, shows: int, mode: str, *, connections: int, pause_ms: int, seconds: float = SECONDS
    ) -> LoadResult:
        seconds = self.session.seconds(seconds)
        load = HoldLoad(mode, first, shows, connections=connections, pause_ms=pause_ms, seconds=seconds)
        return await load_holds(self.url, self.tokens, load)

    @asynccontextmanager
    async def nothing(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def locked(self, show_id: int) -> AsyncIterator[None]:
        """As a change of the show or a slow rebuild has it, again and again."""

        async def lock() -> None:
            while True:
                async with self.env.app.postgres.transaction() as tx:
                    await tx.execute("SELECT 1 FROM sale WHERE show_id = $1 FOR UPDATE", show_id)
                    await asyncio.sleep(self.session.seconds(LOCKED_S))

        async with _beside(lock):
            yield

    @asynccontextmanager
    async def rebuilt(self, show_id: int) -> AsyncIterator[None]:
        """Again and again, as fast as it goes."""

        async def rebuild() -> None:
            while True:
                await self.env.app.bookings.mark_map_stale(show_id)
                await self.env.app.seatmap.rebuild(show_id, "bench")

        async with _beside(rebuild):
            yield


@asynccontextmanager
async def _beside(work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def measure_isolation(session: Session) -> list[Figure]:
    locked = Figure("holds beside a locked show", "per second", CALM, BAR)
    rebuilt = Figure("holds beside a rebuilt stadium", "per second", CALM, BAR)
    async with start_environment() as env:
        session.report("creating shows and accounts")
        tokens = await write_tokens(env, ACCOUNTS)
        (show,) = await create_shows(env, a_layout(200), 1)
        (large,) = await create_shows(env, a_layout(LARGE_SEATS, row=100), 1)
        async with start_workers(env, 2) as url:
            bench = IsolationBench(env, session, tokens, url)
            await bench.p99_ms(show, bench.nothing())  # fills the caches of workers and plans
            async for attempt in session.repeat(locked, rebuilt):
                session.report(f"holds beside a disturbed show, attempt {attempt + 1}")
                for figure, disturbed, disturb in (
                    (locked, show, bench.locked),
                    (rebuilt, large, bench.rebuilt),
                ):
                    calm = await bench.p99_ms(disturbed, bench.nothing())
                    found = await bench.p99_ms(disturbed, disturb(disturbed))
                    figure.add(1000 / found, 1000 / calm)
                    figure.note = f"p99 {found:.1f} ms, {calm:.1f} ms without"
    return [locked, rebuilt]
