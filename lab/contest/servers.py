"""The engines: one PostgreSQL; one Valkey with a replica, five for Redlock, one with a clock to turn.

The clients reach the single Valkey by a link to its socket. A failover points the link to the replica.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
from redis.asyncio import Redis

from bench.environment import find_free_port
from holdfast.engines.embedded import DataFolder, engines
from holdfast.engines.embedded.supervise import Child, Supervisor
from holdfast.engines.embedded.valkey import EmbeddedValkey
from holdfast.engines.migrate import migrate
from lab.strategies.strategy import Q
from tests.support.wait import until

CONNECTIONS_MAX = 200
VOTERS = 5
FAKETIME = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
FAKETIME_VARIABLE = "LAB_LIBFAKETIME"  # another place of the library


@dataclass(frozen=True)
class Valkey:
    child: Child
    path: Path  # of its socket
    clock: Path | None = None  # a file with what libfaketime adds to its clock

    @property
    def url(self) -> str:
        return f"unix://{self.path}"

    async def call(self, *command: str | int) -> Any:
        async with Redis(unix_socket_path=str(self.path)) as redis:
            return await redis.execute_command(*command)  # type: ignore[no-untyped-call]

    async def restart(self) -> None:
        """Killed, and started again by its supervisor: empty."""
        process_id = self.child.pid
        self.child.kill()
        await self.child.up(after=process_id)

    def turn_clock(self, seconds: int) -> None:
        assert self.clock is not None
        draft = self.clock.with_suffix(".draft")
        draft.write_text(f"{seconds:+d}\n")
        draft.replace(self.clock)


@dataclass(frozen=True)
class Servers:
    database_url: str
    postgres: Child | None  # None: another process has started it
    main: Valkey
    replica: Valkey
    voters: tuple[Valkey, ...]
    turned: Valkey | None  # None: libfaketime is not installed
    link: Path

    @property
    def redis_url(self) -> str:
        return f"unix://{self.link}"

    def point_to(self, server: Valkey) -> None:
        draft = self.link.with_suffix(".draft")
        draft.symlink_to(server.path)
        draft.replace(self.link)

    async def follow(self) -> None:
        """The replica copies the main server, and has all that it has."""
        port = find_free_port()
        await self.main.call("CONFIG", "SET", "bind", "127.0.0.1", "repl-diskless-sync-delay", "0")
        await self.main.call("CONFIG", "SET", "port", port)
        await self.replica.call("REPLICAOF", "127.0.0.1", port)

        async def is_synced() -> bool:
            info = await self.replica.call("INFO", "replication")
            return bool(info["master_link_status"] == "up")

        await until(is_synced)

    async def empty(self) -> None:
        for server in (self.main, *self.voters):
            await server.call("FLUSHALL")


@asynccontextmanager
async def start_servers(folder: Path, *, database_url: str = "") -> AsyncIterator[Servers]:
    """`database_url`: of a ledger that is there already, with all its tables."""
    async with AsyncExitStack() as stack:
        main = await stack.enter_async_context(start_valkey(folder / "main"))
        both = await stack.enter_async_context(
            engines(
                folder / "postgres",
                database_url=database_url,
                redis_url=main.url,
                connections_max=CONNECTIONS_MAX,
            )
        )
        connection = await asyncpg.connect(both.database_url)
        if not database_url:
            await migrate(connection)
        await connection.execute(Q.create_tables)
        await connection.close()
        found = find_faketime()
        started = [
            await stack.enter_async_context(start_valkey(folder / name))
            for name in ("replica", *(f"voter{i}" for i in range(VOTERS)))
        ]
        servers = Servers(
            database_url=both.database_url,
            postgres=None if database_url else both.postgres,
            main=main,
            replica=started[0],
            voters=tuple(started[1:]),
            turned=await stack.enter_async_context(start_valkey(folder / "turned", found)) if found else None,
            link=main.path.with_name("current.sock"),
        )
        servers.point_to(main)
        yield servers


@asynccontextmanager
async def start_valkey(path: Path, faketime: Path | None = None) -> AsyncIterator[Valkey]:
    folder = DataFolder(path)
    folder.make()
    supervisor = Supervisor(folder)
    engine = EmbeddedValkey(folder)
    recipe, clock = engine.recipe(), None
    if faketime is not None:
        clock = path / "clock"
        clock.write_text("+0\n")
        variables = {
            "LD_PRELOAD": str(faketime),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        recipe = replace(recipe, env=variables)
    try:
        (child,) = await supervisor.start(recipe)
        yield Valkey(child, Path(engine.url.removeprefix("unix://")), clock)
    finally:
        await supervisor.stop()
        folder.unlock()


def find_faketime() -> Path | None:
    """Debian's libfaketime, which turns the clock of one process."""
    if chosen := os.environ.get(FAKETIME_VARIABLE):
        return Path(chosen)
    return next((path for pattern in FAKETIME for path in sorted(Path("/").glob(pattern.lstrip("/")))), None)
