"""A house of real processes whose shows are spread over pods, each with engines of its own.

crowd ─► web ─┬─► home: PostgreSQL, Valkey ──logical replication──┐
         work ┼─► east: PostgreSQL, Valkey ◄──────────────────────┤
              └─► west: PostgreSQL, Valkey ◄──────────────────────┘
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg

from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from tests.support.box_office import ACCESS_TTL_S, Office
from tests.support.cli_process import free_port
from tests.support.engine_folder import engine_folder
from tests.support.killable_transport import client_of_killed
from tests.support.machines import Machine, WebMachine, work_machine
from tests.support.pod_house import add_pods
from tests.support.postgres_server import Server as Ledger
from tests.support.postgres_server import a_primary, servers
from tests.support.redis_servers import Server as Valkey
from tests.support.redis_servers import make_server, running
from tests.support.sandbox_server import SECRET, a_process

LOGICAL = {"wal_level": "logical", "max_connections": "100", "shared_buffers": "64MB"}
SETTINGS: dict[str, int | str] = {
    "gateway": "sandbox",
    "gateway_secret": SECRET,
    "postgres_pool_max": 4,
    "compare_pause_s": 1,
    "sale_lock_wait_ms": 300,
}


@dataclass(frozen=True)
class SpreadHouse:
    """`home` has the empty name."""

    office: Office
    ledgers: dict[str, Ledger]
    valkeys: dict[str, Valkey]

    @property
    def app(self) -> App:
        return self.office.app

    def in_pod(self, name: str) -> Office:
        """The test's way into one pod."""
        return replace(self.office, app=self.app.router.by_name[name])

    async def bring_back(self, name: str) -> None:
        await asyncio.gather(self.ledgers[name].start(**LOGICAL), self.valkeys[name].start())

    async def by_owner(self, shows: Iterable[int]) -> dict[str, list[int]]:
        await self.app.router.directory.follow()
        found: dict[str, list[int]] = defaultdict(list)
        for show in shows:
            found[self.app.router.directory.pod_of(show)].append(show)
        return found

    async def rows_elsewhere(self, shows: Iterable[int]) -> list[str]:
        """Rows of bookings in a database that does not own their show."""
        owned = await self.by_owner(shows)
        found = []
        for name, ledger in self.ledgers.items():
            others = [show for pod, its in owned.items() if pod != name for show in its]
            connection = await asyncpg.connect(ledger.url)
            for table in ("booking", "taken_seat", "payment", "ticket"):
                rows = f"SELECT count(*) FROM {table} WHERE show_id = ANY ($1)"  # noqa: S608  # our tables
                if count := await connection.fetchval(rows, others):
                    found.append(f"{count} rows of {table} in {name or 'home'}")
            await connection.close()
        return found


@dataclass(frozen=True)
class SpreadEngines:
    folder: Path
    config: Config
    ledgers: dict[str, Ledger]
    valkeys: dict[str, Valkey]
    settings: dict[str, int | str]  # of the processes


@asynccontextmanager
async def open_engines(*pods: str) -> AsyncIterator[SpreadEngines]:
    """Of the home database and of these pods, which are added to it."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(engine_folder("holdfast-spread-"))
        valkeys = {name: make_server(folder, f"valkey-{name or 'home'}") for name in ("", *pods)}
        await stack.enter_async_context(running(*valkeys.values()))
        (home,) = await stack.enter_async_context(a_primary(**LOGICAL))
        ledgers = {"": home} | {name: await _empty(stack) for name in pods}
        gateway = await stack.enter_async_context(a_process(folder / "sandbox"))
        settings = SETTINGS | {
            "database_url": home.url,
            "redis_url": valkeys[""].url,
            "gateway_url": gateway.url,
            "pods": " ".join(f"{name}={ledgers[name].url},{valkeys[name].url}" for name in pods),
        }
        config = Config(**settings, access_ttl_s=ACCESS_TTL_S)  # type: ignore[arg-type]
        await add_pods(config)
        yield SpreadEngines(folder, config, ledgers, valkeys, settings)


@asynccontextmanager
async def a_spread_house(*pods: str, workers: int = 2) -> AsyncIterator[SpreadHouse]:
    async with AsyncExitStack() as stack:
        engines = await stack.enter_async_context(open_engines(*pods))
        web = _web_machine(engines.folder, engines.settings, workers)
        machines: list[Machine] = [web, work_machine(engines.folder / "work", engines.settings)]
        for machine in machines:
            stack.push_async_callback(machine.stop)
        await asyncio.gather(*(machine.start() for machine in machines))
        app = await stack.enter_async_context(open_app(engines.config))
        url = f"http://{web.address}"
        api = await stack.enter_async_context(client_of_killed(url))
        office = Office(DataFolder(engines.folder / "commands"), url, app, api, engines.settings)
        office.folder.make()
        yield SpreadHouse(office, engines.ledgers, engines.valkeys)


async def _empty(stack: AsyncExitStack) -> Ledger:
    """A server with an empty database for a pod."""
    (ledger,) = await stack.enter_async_context(servers())
    await ledger.start(**LOGICAL)
    connection = await asyncpg.connect(ledger.url, database="postgres")
    await connection.execute("CREATE DATABASE holdfast")
    await connection.close()
    return ledger


def _web_machine(folder: Path, settings: dict[str, int | str], workers: int) -> WebMachine:
    port = free_port()
    words = ("serve", "--port", str(port), "--workers", str(workers))
    return WebMachine(folder / "web", words, settings, port=port)
