"""What pods cost: holds per second of CPU time of a house with one, two and three pods, on the same cores.

With one pod, home and pod are the same database. With more, the home database has people and catalogue, which
reach the pods by replication, and every hold is guarded by its pod. All processes of the house count: web,
PostgreSQL and Valkey of every pod. The load generator does not.

Each pod has the same load, as in a house that needs pods: so many connections for each. With those of one pod
for all, batches would be smaller, and a hold dearer.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.cpu import LOAD, cpu_us_per_operation, find_groups, read_cpu_us
from bench.environment import Environment, create_shows, start_workers, write_tokens
from bench.figure import Figure
from bench.load import HoldLoad, load_holds
from bench.session import Session
from holdfast.app import open_app
from tests.support.pod_house import wait_for_show
from tests.support.shows import a_layout
from tests.support.spread_house import open_engines

SECONDS, WARM_S = 4, 2
SHOWS = 1_000  # of 200 seats: more than a run can sell
CONNECTIONS = 128  # for each pod
ACCOUNTS = 2_000
PODS = {1: (), 2: ("east", "west"), 3: ("east", "west", "north")}  # one: home alone
BAR = 0.90


@dataclass(frozen=True)
class PodsBench:
    env: Environment
    session: Session
    tokens: Path
    url: str
    connections: int

    async def holds_per_cpu_second(self) -> tuple[float, str]:
        """And the CPU time of a hold by process."""
        shows = await create_shows(self.env, a_layout(200), SHOWS, with_maps=False)
        for show in shows:
            await wait_for_show(self.env.app, show)
            await self.env.app.router.for_show(show).seatmap.rebuild(show, "bench")
        warm = HoldLoad("warm", shows[0], SHOWS, seconds=self.session.seconds(WARM_S))
        await load_holds(self.url, self.tokens, warm)
        groups = {name: found for name, found in find_groups().items() if name != LOAD}
        before, seconds = read_cpu_us(groups), self.session.seconds(SECONDS)
        load = HoldLoad("hold", shows[0], SHOWS, connections=self.connections, seconds=seconds)
        held = (await load_holds(self.url, self.tokens, load)).expect(201)
        used_us = cpu_us_per_operation(before, read_cpu_us(groups), held.requests)
        described = ", ".join(f"{name} {each:.0f}" for name, each in used_us.items())
        return 1_000_000 / sum(used_us.values()), f"{described} µs per hold"


@asynccontextmanager
async def start_house(session: Session, pods: tuple[str, ...]) -> AsyncIterator[PodsBench]:
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_engines(*pods))
        config = replace(opened.config, requests_per_second_max=0)
        app = await stack.enter_async_context(open_app(config))
        env = Environment(config, app, opened.folder)
        tokens = await write_tokens(env, ACCOUNTS)
        url = await stack.enter_async_context(start_workers(env, 2, pods=config.pods))
        yield PodsBench(env, session, tokens, url, CONNECTIONS * max(1, len(pods)))


async def measure_pods(session: Session) -> list[Figure]:
    figures = {
        count: Figure(f"work with {count} pods", "holds per CPU second", "the same with one pod", BAR)
        for count in PODS
        if count > 1
    }
    async for attempt in session.repeat(*figures.values()):
        rates: dict[int, tuple[float, str]] = {}
        for count, pods in PODS.items():
            session.report(f"holds with {count} pods, attempt {attempt + 1}")
            async with start_house(session, pods) as house:
                await house.holds_per_cpu_second()  # warms up plans and caches
                rates[count] = await house.holds_per_cpu_second()
        for count, figure in figures.items():
            figure.add(rates[count][0], rates[1][0])
            figure.note = f"{rates[count][1]}; one pod: {rates[1][1]}"
    return list(figures.values())
