"""Holds beside hostile clients: long heads, long bodies, half-open connections, the largest maps.

The load is 1 000 holds per second, with and without. Each figure is a speed, 1 / p99: at 0.67 the slowest
holds take 1.5 times as long. The attackers run on the same machine and use a part of it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.attackers import start_attack
from bench.cpu import WEB, find_groups
from bench.environment import Environment, create_shows, start_environment, start_workers, write_tokens
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, PageLoad, hold_new_shows, load_pages
from bench.session import Session
from tests.support.shows import a_layout

SECONDS = 8
SHOWS = 100  # of 200 seats: more than are held in a run
CONNECTIONS, PAUSE_MS = 32, 30  # about 1 000 holds per second
ACCOUNTS = 1_000
LARGE_SEATS = 50_000
MAPS_PER_SECOND = 20
MEMORY_MB_MAX = 300  # that all workers together may grow by
BAR = 0.67
CALM = "the same holds without it"

Disturbance = Callable[[], AbstractAsyncContextManager[object]]


@dataclass(frozen=True)
class PressureBench:
    env: Environment
    session: Session
    tokens: Path
    large: int  # a show of 50 000 seats
    url: str

    async def p99_ms(self) -> float:
        seconds = self.session.seconds(SECONDS)
        load = HoldLoad("hold", shows=SHOWS, connections=CONNECTIONS, pause_ms=PAUSE_MS, seconds=seconds)
        return (await hold_new_shows(self.env, self.url, self.tokens, load)).p99_ms

    def attacks(self) -> dict[str, Disturbance]:
        holds = f"/api/v1/shows/{self.large}/holds"
        return {
            "60 MB heads": lambda: self._attack("heads", "/"),
            "16 MB bodies": lambda: self._attack("bodies", holds),
            "10 000 half-open connections": lambda: self._attack("half-open", "/"),
            "maps of 50 000 seats": self._read_maps,
        }

    def _attack(self, kind: str, path: str) -> AbstractAsyncContextManager[None]:
        return start_attack(kind, self.url, path, self.tokens.read_text().partition("\n")[0])

    @asynccontextmanager
    async def _read_maps(self) -> AsyncIterator[None]:
        load = PageLoad(
            connections=8,
            seconds=self.session.seconds(SECONDS),
            per_second=MAPS_PER_SECOND,
            headers={"Accept": "application/json"},
        )
        path = f"/api/v1/shows/{self.large}/seats"
        reading = asyncio.ensure_future(load_pages(self.url, [path], load, self.env.folder))
        try:
            yield
        finally:
            require((await reading).requests > 0, "no map was read")


def workers_mb() -> float:
    """The most memory that the workers ever used, together."""
    return sum(
        int(line.split()[1]) / 1000
        for pid in find_groups()[WEB]
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )


async def measure_pressure(session: Session) -> list[Figure]:
    async with start_environment() as env:
        session.report("creating shows and accounts")
        tokens = await write_tokens(env, ACCOUNTS)
        (large,) = await create_shows(env, a_layout(LARGE_SEATS, row=100), 1)
        async with start_workers(env, 2) as url:
            bench = PressureBench(env, session, tokens, large, url)
            figures = {name: Figure(f"holds beside {name}", "1/p99", CALM, BAR) for name in bench.attacks()}
            await bench.p99_ms()  # fills the caches of workers and plans
            async for attempt in session.repeat(*figures.values()):
                for name, begin in bench.attacks().items():
                    session.report(f"holds beside {name}, attempt {attempt + 1}")
                    calm, before_mb = await bench.p99_ms(), workers_mb()
                    async with begin():
                        found = await bench.p99_ms()
                    grown_mb = workers_mb() - before_mb
                    require(grown_mb <= MEMORY_MB_MAX, f"{name}: the workers grew by {grown_mb:.0f} MB")
                    memory = f"workers {before_mb:.0f} MB + {grown_mb:.0f}"
                    figures[name].note = f"p99 {found:.1f} ms, {calm:.1f} ms without; {memory}"
                    figures[name].add(1000 / found, 1000 / calm)
    return list(figures.values())
