"""What traces cost: holds with traces off, with one request in a hundred sampled, and with all of them.

Each has two web workers of its own, which take turns under the same load. Sampled spans go to a collector in
the bench's own process: it takes them and looks at nothing. CPU time per hold by process: tracing.json.
"""

import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from aiohttp import web

from bench.cpu import cpu_us_per_operation, find_groups, read_cpu_us
from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, load_holds
from bench.session import Session
from tests.support.shows import a_layout

SECONDS, WARM_S = 4, 2
SHOWS = 1_000  # of 200 seats: more than a run can sell
ACCOUNTS = 2_000
BAR = 0.98  # one in a hundred sampled: it costs a fiftieth at most
ALL_BAR = 0.50  # every request sampled, for a rehearsal: half of the rate stays
OFF, SOME, ALL = "traces off", "1 % sampled", "100 % sampled"
RATIOS = {SOME: 0.01, ALL: 1.0}
CPU_FILE = "tracing.json"


@dataclass
class Collector:
    url: str = ""
    requests: int = 0

    async def receive(self, request: web.Request) -> web.Response:
        await request.read()
        self.requests += 1
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def start_collector() -> AsyncIterator[Collector]:
    collector, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class TracingBench:
    env: Environment
    session: Session
    tokens: Path
    urls: dict[str, str]  # of the workers, by mode
    cpu: dict[str, list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))

    async def per_second(self, mode: str) -> float:
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS)
        url = self.urls[mode]
        warm = HoldLoad("warm", first, SHOWS, seconds=self.session.seconds(WARM_S))
        await load_holds(url, self.tokens, warm)
        groups = find_groups()
        before = read_cpu_us(groups)
        load = HoldLoad("hold", first, SHOWS, seconds=self.session.seconds(SECONDS))
        held = (await load_holds(url, self.tokens, load)).expect(201)
        self.cpu[mode].append(cpu_us_per_operation(before, read_cpu_us(groups), held.requests))
        return held.per_second

    def forget_attempt(self, rounds: int) -> None:
        """CPU times of an attempt that did not count."""
        for runs in self.cpu.values():
            del runs[rounds:]

    def write_cpu(self) -> None:
        found = {
            mode: {name: round(median(run[name] for run in runs), 1) for name in runs[0]}
            for mode, runs in self.cpu.items()
        }
        for groups in found.values():
            groups["sum"] = round(sum(groups.values()), 1)
        print(f"CPU µs per hold: {found}")
        (self.session.results / CPU_FILE).write_text(json.dumps(found, indent=2) + "\n")


async def measure_tracing(session: Session) -> list[Figure]:
    some = Figure("holds with 1 % of requests traced", "holds/s", OFF, BAR)
    all_of_them = Figure("holds with every request traced", "holds/s", OFF, ALL_BAR)
    async with AsyncExitStack() as stack:
        env = await stack.enter_async_context(start_environment())
        collector = await stack.enter_async_context(start_collector())
        urls = {OFF: await stack.enter_async_context(start_workers(env, 2))}
        for mode, ratio in RATIOS.items():
            workers = start_workers(env, 2, traces_url=collector.url, traces_ratio=ratio)
            urls[mode] = await stack.enter_async_context(workers)
        session.report("creating accounts")
        bench = TracingBench(env, session, await write_tokens(env, ACCOUNTS), urls)
        for mode in urls:
            await bench.per_second(mode)  # fills the caches of workers and plans
        bench.forget_attempt(0)
        async for attempt in session.repeat(some, all_of_them):
            session.report(f"holds with and without traces, attempt {attempt + 1}")
            bench.forget_attempt(len(some.runs))
            modes = deque(urls)
            modes.rotate(attempt)  # none is always the first, or always behind another
            found = {mode: await bench.per_second(mode) for mode in modes}
            some.add(found[SOME], found[OFF])
            all_of_them.add(found[ALL], found[OFF])
        require(collector.requests > 0, "the collector got no spans")
        bench.forget_attempt(len(some.runs))
        if some.is_measured:
            bench.write_cpu()
    return [some, all_of_them]
