"""Holds, refusals and seat maps over HTTP: two web workers, 128 connections, everything on the same cores."""

import asyncio
import json
from pathlib import Path
from statistics import median

from bench.cpu import GROUPS, cpu_us_per_operation, find_groups, read_cpu_us
from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.figure import Figure
from bench.load import HoldLoad, LoadResult, load_holds
from bench.session import Session
from tests.support.shows import a_layout

SECONDS = 4
SHOWS_PER_RUN = 1_000  # of 200 seats: more than a run can sell
LARGE_SEATS, LARGE_ROW, LARGE_SHOWS = 50_000, 100, 4  # one after the other: more than a run can sell
MANY_SHOWS = 10_000
ACCOUNTS = 2_000
HOLD_CPU = "hold_cpu.json"

CpuPerHold = dict[str, float]  # µs by process group


class WebBench:
    """Two web workers under load, and what was measured."""

    def __init__(self, env: Environment, session: Session, tokens: Path) -> None:
        self.env = env
        self.session = session
        self.tokens = tokens
        self.holds = Figure("holds", "holds/s", "bare authenticated endpoint", 0.35, 0.50)
        self.refusals = Figure("refusals", "refusals/s", "bare authenticated endpoint", 0.50, 0.70)
        self.large = Figure("holds on 50 000 seats", "holds/s", "holds on 200 seats", 0.80)
        self.map = Figure("map of 50 000 seats", "reads/s", "bare GET of that size", 0.50)
        self.many = Figure(
            "holds with 10 000 shows loaded", "holds/s", "holds with one run's shows loaded", 0.80
        )
        self.cpu: list[CpuPerHold] = []  # one per run of `holds`

    async def load(self, url: str, mode: str, show: int = 0, **options: float) -> LoadResult:
        seconds = self.session.seconds(options.pop("seconds", SECONDS))
        numbers = {name: int(value) for name, value in options.items()}
        return await load_holds(url, self.tokens, HoldLoad(mode, show, seconds=seconds, **numbers))

    async def warm_up(self, url: str, sold_out: int) -> None:
        """Fill the plan caches of PostgreSQL and its log, and sell the show that refuses later."""
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS_PER_RUN)
        await self.load(url, "bare")
        await self.load(url, "sold_out", sold_out)
        await self.load(url, "warm", first, shows=SHOWS_PER_RUN)
        await self.load(url, "hold", first, shows=SHOWS_PER_RUN)

    async def run_round(self, url: str, sold_out: int) -> None:
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS_PER_RUN)
        (large, *_) = await create_shows(self.env, a_layout(LARGE_SEATS, row=LARGE_ROW), LARGE_SHOWS)
        bare = (await self.load(url, "bare")).expect(201)
        refused = (await self.load(url, "sold_out", sold_out)).expect(409)
        self.refusals.add(refused.per_second, bare.per_second)
        await self.load(url, "warm", first, shows=SHOWS_PER_RUN)
        groups = find_groups()
        before = read_cpu_us(groups)
        held = (await self.load(url, "hold", first, shows=SHOWS_PER_RUN)).expect(201)
        del self.cpu[len(self.holds.runs) :]  # of an attempt that did not count
        self.cpu.append(cpu_us_per_operation(before, read_cpu_us(groups), held.requests))
        self.holds.add(held.per_second, bare.per_second)
        self.holds.note = f"p50 {held.p50_ms:.1f} ms, p99 {held.p99_ms:.1f} ms"
        await self.load(url, "warm", large, shows=LARGE_SHOWS)
        hall = {"shows": LARGE_SHOWS, "pairs": LARGE_SEATS // 2, "pairs_per_row": LARGE_ROW // 2}
        self.large.add((await self.load(url, "hold", large, **hall)).expect(201).per_second, held.per_second)
        size = len((await self.env.app.seatmap.snapshot(large)).text)
        whole = (await self.load(url, f"bytes{size}")).expect(200)
        self.map.add((await self.load(url, "seats", large)).expect(200).per_second, whole.per_second)

    async def run_many_shows(self) -> None:
        """The same holds before and after ten thousand other shows are on sale with their maps in Redis."""
        few = Figure("", "", "", 0)
        async with start_workers(self.env, 2) as url:
            async for attempt in self.session.repeat(few):
                self.session.report(f"holds with few shows loaded, attempt {attempt + 1}")
                few.add(await self._warm_run(url), 1)
            self.session.report("loading 10 000 shows")
            await create_shows(self.env, a_layout(200), MANY_SHOWS)
            async for attempt in self.session.repeat(self.many):
                self.session.report(f"holds with 10 000 shows loaded, attempt {attempt + 1}")
                reference = few.runs[len(self.many.runs) % len(few.runs)][0] if few.runs else 0
                many = await self._warm_run(url)
                if reference:
                    self.many.add(many, reference)
        self.many.not_measured = self.many.not_measured or few.not_measured

    async def _warm_run(self, url: str) -> float:
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS_PER_RUN)
        await self.load(url, "warm", first, shows=SHOWS_PER_RUN, seconds=2)
        await asyncio.sleep(0.2)
        return (await self.load(url, "hold", first, shows=SHOWS_PER_RUN)).expect(201).per_second

    def write_cpu(self) -> None:
        """Write the median CPU time per hold, by process group."""
        rounds = self.cpu[: len(self.holds.runs)]
        found = {name: round(median(each[name] for each in rounds), 1) for name in GROUPS}
        (self.session.results / HOLD_CPU).write_text(json.dumps(found, indent=2) + "\n")


async def measure_web(session: Session) -> list[Figure]:
    async with start_environment() as env:
        session.report("creating shows and accounts")
        web = WebBench(env, session, await write_tokens(env, ACCOUNTS))
        (sold_out,) = await create_shows(env, a_layout(200), 1)
        measured = (web.holds, web.refusals, web.large, web.map)
        async with start_workers(env, 2) as url:
            await web.warm_up(url, sold_out)
            async for attempt in session.repeat(*measured):
                session.report(f"holds, refusals and maps, attempt {attempt + 1}")
                await web.run_round(url, sold_out)
        if web.holds.is_measured:
            web.write_cpu()
        await web.run_many_shows()
    return [*measured, web.many]
