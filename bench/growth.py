"""A long past beside a sale: 2 000 000 sold and 1 000 000 lapsed bookings against an empty box office.

Two box offices run side by side, so that both meet the same machine. PostgreSQL has the memory that the kit
for one server gives it (deploy/compose.yaml): a house with such a past is not on a laptop. The lapsed holds
are those of the very shows that are listed, as after a night of bots.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.figure import Figure
from bench.load import HoldLoad, LoadResult, hold_new_shows
from bench.session import Session
from holdfast.audit.oversold import SALES_MAX, OversoldGauge
from holdfast.background import build_retention
from holdfast.engines.postgres import Queries
from tests.support.shows import a_layout

Q = Queries("bench", "growth_queries")

SECONDS = 4
TURNS = 3
LISTED = 100  # shows with lapsed holds
SHOWS_PER_RUN = 1_000  # seats for more holds than a run makes
ACCOUNTS = 1_000
SOLD_PER_SHOW = 100
SOLD, LAPSED = 2_000_000, 1_000_000
SOLD_SHORT, LAPSED_SHORT = 20_000, 10_000  # only to see that the bench works
MEMORY = {"shared_buffers": "512MB"}
EMPTY = "the same in an empty box office"
BAR, P99_BAR = 0.9, 0.83


@dataclass(frozen=True)
class House:
    env: Environment
    session: Session
    tokens: Path
    listed: list[int]
    url: str = ""

    async def calls_per_second(self, call: Callable[[], Awaitable[object]]) -> float:
        for _ in range(6):  # its plans are settled then
            await call()
        until, calls = (began := time.perf_counter()) + self.session.seconds(0.7), 0
        while time.perf_counter() < until or calls == 0:
            await call()
            calls += 1
        return calls / (time.perf_counter() - began)

    async def holds(self, *, connections: int = 128, pause_ms: int = 0) -> LoadResult:
        seconds = self.session.seconds(SECONDS)
        load = HoldLoad(
            "hold", shows=SHOWS_PER_RUN, connections=connections, pause_ms=pause_ms, seconds=seconds
        )
        return await hold_new_shows(self.env, self.url, self.tokens, load)

    def jobs(self) -> dict[str, Callable[[], Awaitable[float]]]:
        """Each measures how much it does in a second."""
        app = self.env.app
        return {
            "lists of 100 shows": self._rate(lambda: app.bookings.counts_many(self.listed)),
            "gauge of oversold seats": self._checked_per_second,
            "gauge of refunds": self._rate(app.refund_store.waiting),
            "sweep": self._rate(lambda: app.bookings.sweep(500)),
            "tally of the search": self._rate(app.search.count_all),
        }

    def _rate(self, call: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[float]]:
        return partial(self.calls_per_second, call)

    async def _checked_per_second(self) -> float:
        """Bookings: in the rounds before, the house that sells faster has sold more to check.

        In whole passes over the open sales: those that one call checks are not as full in both houses.
        """
        postgres = self.env.app.postgres
        gauge, checked = OversoldGauge(postgres), await postgres.fetchval(Q.live)
        calls = math.ceil(await postgres.fetchval(Q.open_sales) / SALES_MAX)

        async def check_all() -> None:
            for _ in range(calls):
                await gauge.count()

        return int(checked) * await self.calls_per_second(check_all)

    @asynccontextmanager
    async def retention(self) -> AsyncIterator[None]:
        """As a worker runs it."""
        retention, pause_s = build_retention(self.env.app), self.env.config.retention_pause_ms / 1000

        async def run() -> None:
            while True:
                await retention.step()
                await asyncio.sleep(pause_s)

        task = asyncio.ensure_future(run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def measure_growth(session: Session) -> list[Figure]:
    holds = Figure("holds with a long past", "holds/s", EMPTY, BAR)
    beside = Figure("slowest holds beside retention", "1/p99", "the same holds without it", P99_BAR)
    async with (
        start_environment(postgres_settings=MEMORY) as empty_env,
        start_environment(postgres_settings=MEMORY) as grown_env,
    ):
        empty, grown = await _open(empty_env, session), await _open(grown_env, session)
        session.report("writing a long past")
        await _grow(grown)
        jobs = {name: Figure(f"{name}, long past", "per second", EMPTY, BAR) for name in grown.jobs()}
        async with start_workers(empty_env, 2) as empty_url, start_workers(grown_env, 2) as grown_url:
            empty, grown = _at(empty, empty_url), _at(grown, grown_url)
            for house in (empty, grown):
                await house.holds()  # fills the caches of workers and plans
            async for attempt in session.repeat(holds, beside, *jobs.values()):
                session.report(f"a long past, attempt {attempt + 1}")
                for name, figure in jobs.items():
                    ours, theirs = await _in_turn(grown.jobs()[name], empty.jobs()[name])
                    figure.add(ours, theirs)
                theirs = (await empty.holds()).per_second
                holds.add((await grown.holds()).per_second, theirs)
                found, calm = await _in_turn(
                    partial(_slowest_beside_retention, empty, grown), partial(_slowest, empty, grown)
                )
                beside.add(1000 / found, 1000 / calm)
                beside.note = f"p99 {found:.1f} ms, {calm:.1f} ms without"
    return [holds, *jobs.values(), beside]


async def _in_turn(
    ours: Callable[[], Awaitable[float]], theirs: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """The medians of both, measured by turns: what disturbs the machine for a second disturbs both."""
    pairs = [(await theirs(), await ours()) for _ in range(TURNS)]
    return median(one for _, one in pairs), median(one for one, _ in pairs)


async def _slowest(empty: House, grown: House) -> float:
    # Both houses get the same holds: jobs of the next round read those of open sales.
    await empty.holds(connections=32, pause_ms=20)
    return (await grown.holds(connections=32, pause_ms=20)).p99_ms


async def _slowest_beside_retention(empty: House, grown: House) -> float:
    async with grown.retention():
        return await _slowest(empty, grown)


async def _open(env: Environment, session: Session) -> House:
    tokens = await write_tokens(env, ACCOUNTS)
    return House(env, session, tokens, list(await create_shows(env, a_layout(200), LISTED)))


def _at(house: House, url: str) -> House:
    return House(house.env, house.session, house.tokens, house.listed, url)


async def _grow(house: House) -> None:
    is_short = house.session.seconds_max is not None
    sold, lapsed = (SOLD_SHORT, LAPSED_SHORT) if is_short else (SOLD, LAPSED)
    async with house.env.app.postgres.lease() as connection:
        rows = await connection.fetch(Q.past_shows, house.listed[0], sold // SOLD_PER_SHOW)
        past = [row["id"] for row in rows]
        for first in range(0, len(past), 500):  # each statement within the time-out
            some = past[first : first + 500]
            await connection.execute(Q.past_sales, some)
            await connection.fetch(Q.sold, some, SOLD_PER_SHOW, timeout=60)
            for statement in (Q.taken, Q.counted, Q.moved):
                await connection.fetch(statement, some, timeout=60)
        for show in house.listed:
            await connection.fetch(Q.lapsed, [show], lapsed // len(house.listed), timeout=60)
            await connection.fetch(Q.moved, [show], timeout=60)
        await connection.fetch(Q.settle, timeout=600)
