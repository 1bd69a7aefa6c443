"""Our own PostgreSQL: created once in the data folder, reached by a socket that only this user can open."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.engines.embedded.binaries import Program, find_postgres
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.privilege import User, child_setup, unprivileged
from holdfast.engines.embedded.supervise import Recipe
from holdfast.engines.errors import OperatorError

NAME = "holdfast"  # of the role and of the database
LEFTOVER_WAIT_S = 15.0
MAKE_WITHIN_S = 120.0
STATUS_LINE = 7  # of postmaster.pid, counted from 0: what pg_ctl -w waits for

SETTINGS = {
    "listen_addresses": "",  # no TCP: the socket's folder says who may come in
    "port": "5432",
    "unix_socket_permissions": "0700",
    # What makes a booking durable. The start checks refuse a ledger without them.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # A small machine: all processes together stay under 400 MB.
    "shared_buffers": "128MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "max_parallel_workers_per_gather": "0",
    "autovacuum_max_workers": "2",
    "jit": "off",
    "huge_pages": "off",
    # No replicas to feed: less log to write and to flush.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "wal_buffers": "4MB",
    "min_wal_size": "80MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "log_checkpoints": "off",
    "log_min_messages": "warning",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "cluster_name": NAME,
}
# Asynchronous reads by extra processes pay on big disks; here they only cost memory.
SETTINGS_SINCE_18 = {"io_method": "sync"}


class EmbeddedPostgres:
    def __init__(
        self,
        folder: DataFolder,
        *,
        connections_max: int,
        program: Program | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings`: instead of those above."""
        self._folder = folder
        self._settings = settings or {}
        self._data = folder.postgres
        self._connections_max = connections_max
        self._program = program or find_postgres(_major_of(self._data))
        self._user = unprivileged(self._program.path, folder.path)
        self._sockets = folder.sockets()
        self.version = self._program.version
        self.url = f"postgresql://{NAME}@/{NAME}?host={self._sockets}"

    async def make(self) -> None:
        """Make the data folder if there is none; aside, then renamed: half of one is never taken for one."""
        if self._user is not None:
            os.chown(self._sockets, self._user.uid, self._user.gid)
        if (self._data / "PG_VERSION").exists():
            return
        draft = self._data.with_name("postgres.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if self._user is not None:
            os.chown(draft, self._user.uid, self._user.gid)
        await asyncio.to_thread(_initdb, self._program, draft, self._user)
        draft.rename(self._data)

    def recipe(self) -> Recipe:
        settings = {**SETTINGS, "max_connections": str(self._connections_max)}
        settings["unix_socket_directories"] = str(self._sockets)
        if self._program.major >= 18:
            settings |= SETTINGS_SINCE_18
        settings |= self._settings
        options = [f"--{name}={value}" for name, value in settings.items()]
        return Recipe(
            name="postgres",
            command=(str(self._program.path), "-D", str(self._data), *options),
            env=_environment(),
            user=self._user,
            before=self._wait_for_leftovers,
            ready=self._is_ready,
            stop_signal=signal.SIGINT,  # fast: open transactions are rolled back
            force_signal=signal.SIGQUIT,  # at once, with recovery at the next start
            death_signal=signal.SIGINT,
            ready_within_s=120.0,  # recovery after a crash takes its time
        )

    async def _is_ready(self, process_id: int) -> bool:
        lines = _lines(self._data / "postmaster.pid")
        return (
            len(lines) > STATUS_LINE
            and lines[0].strip() == str(process_id)
            and lines[STATUS_LINE].strip() == "ready"
        )

    async def _wait_for_leftovers(self) -> None:
        """No process may have the data folder open before a start: a killed server leaves backends behind.

        Then postmaster.pid says nothing any more. Left there, its number may by now be that of another
        process, and PostgreSQL would refuse to start for one that has nothing to do with it.
        """
        if sys.platform != "linux":  # PostgreSQL's own check has to do
            return
        deadline = asyncio.get_running_loop().time() + LEFTOVER_WAIT_S
        while leftovers := _processes_in(self._data):
            if asyncio.get_running_loop().time() > deadline:
                raise OperatorError(
                    f"process {leftovers[0]} still uses {self._data}: end it with `kill -INT {leftovers[0]}`"
                )
            await asyncio.sleep(0.02)
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        for stale in self._sockets.glob(".s.PGSQL.*"):
            stale.unlink()


def _initdb(program: Program, folder: Path, user: User | None) -> None:
    # By code point everywhere; since 17 independent of the machine's own locales.
    provider = ("--locale-provider=builtin",) if program.major >= 17 else ()
    who = ("-U", NAME, "--auth-local=trust", "--auth-host=reject")
    initdb = (str(program.path.with_name("initdb")), "-D", str(folder), "--encoding=UTF8", *who, *provider)
    made = _run((*initdb, "--locale=C.UTF-8"), user)
    if made.returncode and "locale" in made.stderr:  # a machine that does not know C.UTF-8
        builtin = ("--builtin-locale=C.UTF-8",) if provider else ()
        made = _run((*initdb, "--locale=C", *builtin), user)
    if not made.returncode:
        single = (str(program.path), "--single", "-D", str(folder), "postgres")
        made = _run(single, user, f"CREATE DATABASE {NAME}\n")
    if made.returncode:
        words = " ".join(made.stderr.split()) or f"code {made.returncode}"
        raise OperatorError(f"PostgreSQL could not make its data folder {folder}: {words}")


def _run(command: tuple[str, ...], user: User | None, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, **_environment()},
        preexec_fn=child_setup(user, signal.SIGKILL),
        timeout=MAKE_WITHIN_S,
        check=False,
    )


def _environment() -> dict[str, str]:
    # postgres itself reads PGPORT, PGDATA and the like; the operator's values are for other servers.
    strangers = {name: "" for name in os.environ if name in ("PGDATA", "PGHOST", "PGOPTIONS", "PGTZ")}
    return {**strangers, "PGPORT": "5432", "TZ": "UTC", "LC_ALL": "C"}


def _major_of(data: Path) -> int | None:
    lines = _lines(data / "PG_VERSION")
    return int(lines[0]) if lines else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []


def _processes_in(data: Path) -> list[int]:
    """Processes whose working folder is the data folder: all processes of a PostgreSQL server."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                place = os.readlink(entry / "cwd")
            except OSError:  # gone meanwhile, or not ours to look at
                continue
            if place == str(data):
                found.append(int(entry.name))
    return sorted(found)
