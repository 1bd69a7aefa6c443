"""Patroni with two servers of PostgreSQL, etcd, and PgBouncer in front, as operators run them.

    Holdfast ─► PgBouncer ─► HAProxy ─► the server whose Patroni says that it leads
        └────── both servers by name, for migrations and commands

Patroni alone starts, promotes and rewinds. Its shortest lease is 20 seconds: a dead machine leads as long.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from holdfast.engines.embedded.binaries import find_postgres
from holdfast.engines.embedded.privilege import User, child_setup, unprivileged
from holdfast.engines.migrate import migrate
from tests.support.cli_process import free_port
from tests.support.engine_folder import engine_folder
from tests.support.machines import end_all
from tests.support.postgres_server import SETTINGS
from tests.support.wait import is_listening, until

PATRONI = Path(sys.executable).parent / "patroni"
READY_WITHIN_S = 60.0
BOOTSTRAP = {
    "dcs": {
        "ttl": 20,
        "loop_wait": 1,
        "retry_timeout": 3,
        "maximum_lag_on_failover": 1_048_576,
        "synchronous_mode": True,
        "primary_start_timeout": 0,  # a primary that died is not started again: the standby takes over
        "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 60, "wal_log_hints": "on"}},
    },
    "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}],
}
HAPROXY = """
global
    maxconn 500
defaults
    mode tcp
    timeout connect 1s
    timeout client 1h
    timeout server 1h
    timeout check 1s
frontend primary
    bind 127.0.0.1:{port}
    default_backend ledger
backend ledger
    option httpchk
    http-check send meth OPTIONS uri /primary
    http-check expect status 200
    default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
"""
PGBOUNCER = """
[databases]
holdfast = host=127.0.0.1 port={haproxy} dbname=holdfast user=holdfast
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 300
default_pool_size = 30
server_login_retry = 1
server_check_delay = 0
pidfile = {folder}/pgbouncer.pid
logfile = {folder}/pgbouncer.log
"""


def missing_programs() -> list[str]:
    found = {name: shutil.which(name) for name in ("etcd", "haproxy", "pgbouncer")}
    return [name for name, path in found.items() if not path] + (["patroni"] * (not PATRONI.exists()))


@dataclass
class Program:
    """One process with its children, of a user that PostgreSQL accepts."""

    folder: Path
    words: Sequence[str]
    user: User | None
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self) -> None:
        with self.folder.with_suffix(".log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.words,
                cwd="/",
                env={"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C", "HOME": str(self.folder)},
                preexec_fn=child_setup(self.user, signal.SIGINT),
                stdout=log,
                stderr=log,
            )

    async def end(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)
            await asyncio.wait_for(self.process.wait(), READY_WITHIN_S)

    def last_words(self) -> str:
        return self.folder.with_suffix(".log").read_text()[-2000:]


@dataclass
class Member(Program):
    """Patroni and its PostgreSQL."""

    port: int = field(default_factory=free_port)
    api: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"postgresql://holdfast@{self.address}/holdfast"

    async def is_in_role(self, role: str) -> bool:
        """As its Patroni says: primary, replica or sync."""
        try:
            async with httpx2.AsyncClient(timeout=1) as client:
                answer = await client.get(f"http://127.0.0.1:{self.api}/{role}")
        except httpx2.TransportError:
            return False
        return answer.status_code == 200

    def postmaster(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    async def kill_postgres(self) -> None:
        end_all(self.postmaster())

    async def kill_machine(self) -> None:
        """Patroni, then PostgreSQL with all its processes."""
        assert self.process is not None
        postmaster = self.postmaster()
        self.process.kill()
        await self.process.wait()
        end_all(postmaster)

    async def come_back(self) -> None:
        """A Patroni that lives brings its PostgreSQL back by itself."""
        assert self.process is not None
        if self.process.returncode is not None:
            await self.start()


@dataclass(frozen=True)
class Pair:
    members: tuple[Member, Member]
    pooler: str  # the address of PgBouncer

    @property
    def direct(self) -> str:
        """Both servers, in one URL."""
        return f"postgresql://holdfast@{','.join(member.address for member in self.members)}/holdfast"

    async def in_role(self, role: str) -> Member:
        async def is_there() -> bool:
            return any([await member.is_in_role(role) for member in self.members])

        try:
            await until(is_there, within_s=READY_WITHIN_S)
        except TimeoutError:
            words = "\n".join(member.last_words() for member in self.members if member.process)
            raise AssertionError(f"no {role}: {words}") from None
        (found,) = [member for member in self.members if await member.is_in_role(role)]
        return found


def a_member(folder: Path, name: str, etcd: int) -> Member:
    program = find_postgres()
    user = unprivileged(program.path, folder)
    own = folder / name
    member = Member(own, (str(PATRONI), str(own / "patroni.yml")), user)
    make_folder(own, user)
    settings: dict[str, Any] = {
        "scope": "holdfast",
        "name": name,
        "restapi": {"listen": f"127.0.0.1:{member.api}", "connect_address": f"127.0.0.1:{member.api}"},
        "etcd3": {"host": f"127.0.0.1:{etcd}"},
        "bootstrap": BOOTSTRAP,
        "postgresql": {
            "listen": member.address,
            "connect_address": member.address,
            "data_dir": str(own / "data"),
            "bin_dir": str(program.path.parent),
            "pgpass": str(own / "pgpass"),
            "basebackup": {"checkpoint": "fast"},
            "authentication": {
                "superuser": {"username": "holdfast"},
                "replication": {"username": "holdfast"},
                "rewind": {"username": "holdfast"},
            },
            "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            "parameters": SETTINGS | {"autovacuum": "on"},
        },
    }
    # JSON is YAML, too.
    (own / "patroni.yml").write_text(json.dumps(settings))
    return member


def make_folder(folder: Path, user: User | None) -> None:
    folder.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(folder, user.uid, user.gid)


@asynccontextmanager
async def a_patroni_pair() -> AsyncIterator[Pair]:
    """Both are up, the standby is synchronous, and the ledger has its tables."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(engine_folder("holdfast-patroni-"))
        etcd = await _etcd(stack, folder)
        first, second = (a_member(folder, name, etcd) for name in ("db1", "db2"))
        pair = Pair((first, second), await _pooler(stack, folder, (first, second)))
        for member in pair.members:
            stack.push_async_callback(member.end)
        await first.start()
        await pair.in_role("primary")
        await second.start()
        connection = await asyncpg.connect(first.url, database="postgres")
        await connection.execute("CREATE DATABASE holdfast")
        await connection.close()
        connection = await asyncpg.connect(first.url)
        await migrate(connection)
        await connection.close()
        await pair.in_role("sync")
        yield pair


async def _etcd(stack: AsyncExitStack, folder: Path) -> int:
    port, peer = free_port(), free_port()
    here = [f"http://127.0.0.1:{one}" for one in (port, peer)]
    program = shutil.which("etcd")
    assert program
    words: tuple[str, ...] = (
        program,
        "--data-dir",
        str(folder / "etcd"),
        "--name",
        "one",
        "--log-outputs",
        "stderr",
    )
    words += ("--listen-client-urls", here[0], "--advertise-client-urls", here[0])
    words += ("--listen-peer-urls", here[1], "--initial-advertise-peer-urls", here[1])
    words += ("--initial-cluster", f"one={here[1]}")
    etcd = Program(folder / "etcd-log", words, None)
    await _started(stack, etcd, port)
    return port


async def _pooler(stack: AsyncExitStack, folder: Path, members: Sequence[Member]) -> str:
    """PgBouncer, and HAProxy behind it."""
    haproxy, pgbouncer = shutil.which("haproxy"), shutil.which("pgbouncer")
    assert haproxy
    assert pgbouncer
    behind, port = free_port(), free_port()
    servers = [f"    server {m.folder.name} {m.address} check port {m.api}\n" for m in members]
    (folder / "haproxy.cfg").write_text(HAPROXY.format(port=behind) + "".join(servers))
    balancer = Program(folder / "haproxy-log", (haproxy, "-db", "-f", str(folder / "haproxy.cfg")), None)
    await _started(stack, balancer, behind)
    user, own = unprivileged(Path(pgbouncer), folder), folder / "pgbouncer"
    make_folder(own, user)
    (own / "pgbouncer.ini").write_text(PGBOUNCER.format(port=port, haproxy=behind, folder=own))
    await _started(stack, Program(own, (pgbouncer, str(own / "pgbouncer.ini")), user), port)
    return f"postgresql://holdfast@127.0.0.1:{port}/holdfast"


async def _started(stack: AsyncExitStack, program: Program, port: int) -> None:
    await program.start()
    stack.push_async_callback(program.end, signal.SIGTERM)

    async def answers() -> bool:
        assert program.process is not None
        assert program.process.returncode is None, program.last_words()
        return await is_listening(port)

    await until(answers)
