"""PostgreSQL servers of a test's own, on ports of this machine: a primary, its standby, a restored copy."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from holdfast.engines.embedded.binaries import Program, find_postgres
from holdfast.engines.embedded.privilege import User, child_setup, unprivileged
from holdfast.engines.migrate import migrate
from tests.support.cli_process import free_port
from tests.support.documented_commands import documented_commands
from tests.support.empty_ledger import PLACE, copy_ledger
from tests.support.engine_folder import engine_folder
from tests.support.wait import until

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "autovacuum": "off",
    "wal_log_hints": "on",  # pg_rewind needs it
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "100ms",
}
ALL_MAY_ENTER = """\
local all,replication all              trust
host  all,replication all 127.0.0.1/32 trust
"""
COMMAND_WITHIN_S = 60
STANDBY_PAGE = "operating/standby.md"  # whose commands are run here


@dataclass
class Server:
    data: Path
    program: Program
    user: User | None
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"postgresql://holdfast@{self.address}/holdfast"

    async def start(self, **settings: str) -> None:
        given = SETTINGS | {"port": str(self.port), "cluster_name": self.name} | settings
        with self.data.with_suffix(".log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(str(self.program.path), "-D", str(self.data)),
                *(f"--{name}={value}" for name, value in given.items()),
                **self._as_user(),
                stdout=log,
                stderr=log,
            )
        await until(self._answers)

    async def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, self.data.with_suffix(".log").read_text()[-2000:]
        try:
            connection = await asyncpg.connect(self.url, database="postgres", timeout=2)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return False
        await connection.close()
        return True

    async def sql(self, *statements: str) -> Any:
        """The value of the last one."""
        connection = await asyncpg.connect(self.url, timeout=5, command_timeout=20)
        try:
            return [await connection.fetchval(one) for one in statements][-1]
        finally:
            await connection.close()

    async def run(self, script: str, **env: str) -> str:
        """A shell with PostgreSQL's programs, as the user of the server."""
        path = f"{self.program.path.parent}:{os.environ['PATH']}"
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", script),
            **self._as_user(PATH=path, **env),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(shell.communicate(), COMMAND_WITHIN_S)
        assert shell.returncode == 0, output.decode()
        return output.decode()

    def signal(self, sign: signal.Signals) -> None:
        """To all its processes: the machine stands still, goes on, or is gone."""
        assert self.process is not None
        first = self.process.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process_id in (first, *map(int, children)):
            os.kill(process_id, sign)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self._ended()

    async def stop(self) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
            await self._ended()

    async def _ended(self) -> None:
        assert self.process is not None
        await asyncio.wait_for(self.process.wait(), COMMAND_WITHIN_S)

    def beside(self, name: str) -> "Server":
        """Another one, in a folder that is still empty."""
        return an_empty_server(self.data.parent, name)

    async def add_standby(self, name: str) -> "Server":
        """It receives the log; commits do not wait for it yet."""
        standby = self.beside(name)
        prepare, copy, _ = documented_commands(STANDBY_PAGE, "Create the standby")
        await self.run(prepare, PRIMARY=self.url)
        await standby.run(copy, PGDATA=str(standby.data), PRIMARY=self.url)
        await standby.start()
        return standby

    async def wait_for_standby(self) -> None:
        """From now on, commits wait for a standby."""
        *_, wait = documented_commands(STANDBY_PAGE, "Create the standby")
        await self.run(wait, PRIMARY=self.url)
        is_sync = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'"
        await until(lambda: self.sql(is_sync))

    async def promote(self) -> None:
        (promote,) = documented_commands(STANDBY_PAGE, "When the primary dies")
        await self.run(promote, STANDBY=self.url)

    async def follow(self, primary: "Server") -> None:
        """Back as a standby of the server that took over."""
        (rewind,) = documented_commands(STANDBY_PAGE, "Bring the old primary back")
        await self.run(rewind, PGDATA=str(self.data), PRIMARY=primary.url)
        await self.start()

    def _as_user(self, **env: str) -> dict[str, Any]:
        return {
            "cwd": "/",
            "env": {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C", **env},
            "preexec_fn": child_setup(self.user, signal.SIGINT),
        }


def an_empty_server(folder: Path, name: str) -> Server:
    program = find_postgres()
    user = unprivileged(program.path, folder)
    data = folder / name
    data.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(data, user.uid, user.gid)
    return Server(data, program, user)


@asynccontextmanager
async def servers(*, with_ledger: bool = False) -> AsyncIterator[list[Server]]:
    """The first is not yet started, and empty unless it is to have the tables of the ledger.

    Those that a test appends are ended, too.
    """
    with engine_folder("holdfast-servers-") as folder:
        first = an_empty_server(folder, "db1")
        if with_ledger:
            first.data.rmdir()
            await copy_ledger(first.data)
            (first.data / "pg_hba.conf").write_text(ALL_MAY_ENTER)
        else:
            await first.run(f"initdb --pgdata={first.data} --username=holdfast --auth=trust --encoding=UTF8")
        started = [first]
        try:
            yield started
        finally:
            for server in started:
                if server.process is not None and server.process.returncode is None:
                    server.signal(signal.SIGKILL)
                    await server.process.wait()


@asynccontextmanager
async def a_primary(**settings: str) -> AsyncIterator[list[Server]]:
    """`servers()`, the first of them running, with the tables of the ledger."""
    has_ledger = PLACE in os.environ  # in a run of tests: no first start, no migrations
    async with servers(with_ledger=has_ledger) as started:
        (first,) = started
        await first.start(**settings)
        if has_ledger:
            await first.sql("UPDATE ledger_mark SET ledger_id = gen_random_uuid()")
        else:
            await _make_ledger(first)
        yield started


async def _make_ledger(server: Server) -> None:
    connection = await asyncpg.connect(server.url, database="postgres")
    await connection.execute("CREATE DATABASE holdfast")
    await connection.close()
    connection = await asyncpg.connect(server.url)
    await migrate(connection)
    await connection.close()


@asynccontextmanager
async def a_pair() -> AsyncIterator[tuple[Server, Server]]:
    """A primary whose commits wait for its standby."""
    async with a_primary() as started:
        (primary,) = started
        standby = await primary.add_standby("db2")
        started.append(standby)
        await primary.wait_for_standby()
        yield primary, standby


def url_of(*hosts: Server) -> str:
    """All of them in one URL, as an operator sets it."""
    return f"postgresql://holdfast@{','.join(host.address for host in hosts)}/holdfast"
