"""The data folder of the embedded engines.

DATA/postgres                what the ledger keeps between runs
DATA/valkey                  where Valkey runs; it keeps nothing
DATA/log/<name>.log          what a child process says
DATA/run/<name>.pid          the process id of a child
DATA/run/<name>.ready        the same once it is ready, where the child says so itself
DATA/run/<name>.hold         put there by an operator: the child is not started again while it is there
DATA/run/lock                held by the process that runs the engines; a second one is refused
DATA/run/engines.json        where the running engines answer, for other commands
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.engines.errors import OperatorError

# A socket's path may have 107 bytes; PostgreSQL adds "/.s.PGSQL.5432.lock" to the folder's.
SOCKET_FOLDER_BYTES_MAX = 85
LOG_BYTES_MAX = 8_000_000
STARTING_MAX_S = 20.0


@dataclass(frozen=True, slots=True)
class Running:
    """Engines that another process of this program has started."""

    process_id: int
    database_url: str
    redis_url: str


class DataFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.postgres = self.path / "postgres"
        self.valkey = self.path / "valkey"
        self.log = self.path / "log"
        self.run = self.path / "run"
        self.meter = self.run / "meter"  # every process' sums, for /metrics
        self._lock = self.run / "lock"
        self._engines = self.run / "engines.json"
        self._sockets: Path | None = None
        self._lock_file: int | None = None

    def make(self) -> None:
        # Others may pass, not list: the ledger's own user must get to its folder when root started us.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        try:
            self.path.mkdir(mode=mode, parents=True, exist_ok=True)
            for folder in (self.log, self.run):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OperatorError(
                f"cannot make the data folder {self.path}: {error.strerror}; choose one with --data"
            ) from None

    def lock(self) -> None:
        """Ours alone from here on. The kernel lets go of it however we end."""
        file = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not _locks(file):
            owner = os.read(file, 20).decode() or "unknown"
            os.close(file)
            raise OperatorError(
                f"{self.path} is in use by Holdfast process {owner}: stop it, or choose another with --data"
            )
        os.truncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        self._lock_file = file

    def unlock(self) -> None:
        self._engines.unlink(missing_ok=True)
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def running(self) -> Running | None:
        """The engines another process has up in this folder, if one has."""
        try:
            file = os.open(self._lock, os.O_RDWR)
        except OSError:
            return None
        try:
            return None if _locks(file) else self._read_engines()
        finally:
            os.close(file)

    def tell_engines(self, running: Running) -> None:
        self.write("engines.json", json.dumps([running.process_id, running.database_url, running.redis_url]))

    def write(self, name: str, text: str) -> None:
        """A file in run/, whole or not at all: others read it meanwhile."""
        draft = self.run / f"{name}.draft"
        draft.write_text(text)
        draft.rename(self.run / name)

    def _read_engines(self) -> Running | None:
        """Who holds the lock may be starting still: then wait for it."""
        deadline = time.monotonic() + STARTING_MAX_S
        while not self._engines.exists():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        return Running(*json.loads(self._engines.read_text()))

    def sockets(self) -> Path:
        """A private folder with a short path. Named after ours: a killed run leaves no second one."""
        if self._sockets is None:
            self._sockets = self._socket_folder()
        return self._sockets

    def _socket_folder(self) -> Path:
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > SOCKET_FOLDER_BYTES_MAX - len("/holdfast-0123456789"):
            place = "/tmp"
        name = hashlib.sha256(f"{self.path} {os.geteuid()}".encode()).hexdigest()[:10]
        folder = Path(place) / f"holdfast-{name}"
        if _is_private(folder):
            shutil.rmtree(folder)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:  # another user's: not to be trusted with our sockets
            folder = Path(tempfile.mkdtemp(prefix="holdfast-", dir=place))
        return folder

    def log_of(self, name: str) -> Path:
        return self.log / f"{name}.log"

    def open_log(self, name: str) -> int:
        """A file for a child's words; the caller closes it. A long log makes room first."""
        path = self.log_of(name)
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _locks(file: int) -> bool:
    """Tried a few times: another command may hold the lock for the moment it takes to look."""
    for _ in range(5):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _is_private(folder: Path) -> bool:
    """A real folder that only its owner may enter, and that we (or root for us) created."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    is_closed = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return is_closed and (os.geteuid() in (0, found.st_uid))
