"""A whole house on several machines: web machines behind nginx, workers, pairs of engines, a bus, a gateway.

    buyers ─► nginx ─► web 1 … 3 ─┬─► PostgreSQL primary ══► synchronous standby
                       work 1, 2 ─┼─► Valkey primary ──► replica, watched by Sentinels
                                  ├─► NATS, three nodes, a copy of every message on each
                                  └─► the gateway, which notifies nginx

Each of them can be taken away: `async with house.without("a web machine")` kills one, and brings it back at
the end of the block.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from holdfast.app import open_app
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from tests.support.box_office import ACCESS_TTL_S, Office
from tests.support.engine_folder import engine_folder
from tests.support.killable_transport import client_of_killed
from tests.support.machines import Machine, Nginx, WebMachine, web_machine, work_machine
from tests.support.nats_cluster import NatsCluster, a_nats_cluster
from tests.support.postgres_server import Server as PostgresServer
from tests.support.postgres_server import a_pair, url_of
from tests.support.redis_servers import Server as ValkeyServer
from tests.support.redis_servers import Watched, watched_servers
from tests.support.sandbox_server import SECRET, a_process
from tests.support.wait import until

WHOLE_WITHIN_S = 60.0
SETTINGS: dict[str, int | str] = {
    "gateway": "sandbox",
    "gateway_secret": SECRET,
    "ledger_standbys_min": 1,
    "postgres_pool_max": 4,
    "compare_pause_s": 1,
    "reconcile_pause_s": 5,
}


class Mortal(Protocol):
    async def kill(self) -> None: ...


@dataclass
class House:
    folder: Path
    nginx: Nginx
    web: list[WebMachine]
    workers: list[Machine]
    valkeys: Watched
    ledgers: list[PostgresServer]  # the primary first
    bus: NatsCluster
    settings: Mapping[str, int | str]
    killed_at: float = field(default=0.0, init=False)  # the last one
    _turns: dict[str, int] = field(default_factory=dict, init=False)

    def without(self, what: str) -> AbstractAsyncContextManager[None]:
        return self.FAULTS[what](self)

    async def _kill(self, node: "Mortal") -> None:
        self.killed_at = time.monotonic()
        await node.kill()

    def _next(self, what: str, count: int) -> int:
        """Which of them is killed: each in its turn."""
        number = self._turns.get(what, 0)
        self._turns[what] = number + 1
        return number % count

    @asynccontextmanager
    async def _without_web(self) -> AsyncIterator[None]:
        machine = self.web[self._next("web", len(self.web))]
        await self._kill(machine)
        yield
        await machine.start()

    @asynccontextmanager
    async def _without_worker(self) -> AsyncIterator[None]:
        machine = self.workers[self._next("worker", len(self.workers))]
        await self._kill(machine)
        yield
        await machine.start()

    @asynccontextmanager
    async def _without_valkey_primary(self) -> AsyncIterator[None]:
        """Sentinels promote the replica, and make a replica of the one that comes back."""
        primary, replica = await self._valkeys()
        await self._kill(primary)
        yield
        await until(lambda: is_role(replica, "master"), within_s=WHOLE_WITHIN_S)
        await primary.start()
        await until(lambda: is_linked(primary), within_s=WHOLE_WITHIN_S)

    @asynccontextmanager
    async def _without_valkey_replica(self) -> AsyncIterator[None]:
        _, replica = await self._valkeys()
        await self._kill(replica)
        yield
        await replica.start()
        await until(lambda: is_linked(replica), within_s=WHOLE_WITHIN_S)

    @asynccontextmanager
    async def _without_ledger_primary(self) -> AsyncIterator[None]:
        """docs/operating/standby.md: promoted by hand; the old primary follows the new one."""
        old, new = self.ledgers
        await self._kill(old)
        await new.promote()
        self.ledgers.reverse()
        yield
        await old.follow(new)
        await new.wait_for_standby()

    @asynccontextmanager
    async def _without_ledger_standby(self) -> AsyncIterator[None]:
        """Nothing is sold without it: it comes back at once, as a service that is restarted."""
        _, standby = self.ledgers
        await self._kill(standby)
        await standby.start()
        yield

    @asynccontextmanager
    async def _without_bus_node(self) -> AsyncIterator[None]:
        node = self.bus.nodes[self._next("bus", len(self.bus.nodes))]
        await self._kill(node)
        yield
        await node.start()
        await until(self.bus.is_ready, within_s=WHOLE_WITHIN_S)

    @asynccontextmanager
    async def _without_nginx(self) -> AsyncIterator[None]:
        """Restarted at once."""
        await self._kill(self.nginx)
        await self.nginx.start()
        yield

    async def _valkeys(self) -> tuple[ValkeyServer, ValkeyServer]:
        both = self.valkeys.primary, self.valkeys.replica
        return both if await is_role(both[0], "master") else (both[1], both[0])

    FAULTS: ClassVar[dict[str, Callable[["House"], AbstractAsyncContextManager[None]]]] = {
        "web machine": _without_web,
        "worker": _without_worker,
        "Valkey replica": _without_valkey_replica,
        "Valkey primary": _without_valkey_primary,
        "PostgreSQL standby": _without_ledger_standby,
        "PostgreSQL primary": _without_ledger_primary,
        "NATS node": _without_bus_node,
        "nginx": _without_nginx,
    }


async def is_role(server: ValkeyServer, role: str) -> bool:
    return (await server.fields("INFO", "replication"))["role"] == role


async def is_linked(server: ValkeyServer) -> bool:
    return (await server.fields("INFO", "replication")).get("master_link_status") == "up"


@asynccontextmanager
async def a_house(web_count: int = 3, work_count: int = 2) -> AsyncIterator[tuple[House, Office]]:
    """The house, and the test's way into its engines and through its nginx."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(engine_folder("holdfast-house-"))
        ledgers = list(await stack.enter_async_context(a_pair()))
        valkeys = await stack.enter_async_context(watched_servers(folder))
        bus = await stack.enter_async_context(a_nats_cluster(folder))
        nginx = Nginx(folder / "nginx", ())
        gateway = await stack.enter_async_context(
            a_process(folder / "sandbox", f"{nginx.url}/webhooks/sandbox")
        )
        settings = SETTINGS | {
            "database_url": url_of(*ledgers),
            "redis_url": valkeys.url,
            "gateway_url": gateway.url,
            "bus_url": bus.url,
            "bus_replicas": len(bus.nodes),
        }
        web = [web_machine(folder / f"web-{i}", settings) for i in range(web_count)]
        workers = [work_machine(folder / f"work-{i}", settings) for i in range(work_count)]
        nginx.apps = [machine.address for machine in web]
        machines: list[Machine | Nginx] = [*web, *workers, nginx]
        for machine in machines:
            stack.push_async_callback(machine.stop)
        await asyncio.gather(*(machine.start() for machine in machines))
        app = await stack.enter_async_context(
            open_app(Config(**settings, access_ttl_s=ACCESS_TTL_S))  # type: ignore[arg-type]
        )
        api = await stack.enter_async_context(client_of_killed(nginx.url))
        house = House(folder, nginx, web, workers, valkeys, ledgers, bus, settings)
        office = Office(DataFolder(folder / "commands"), nginx.url, app, api, settings)
        office.folder.make()
        yield house, office
