"""FOLDER/sandbox.db   the database
FOLDER/secret          drawn once, readable by its owner alone, the same after every restart
FOLDER/lock            held by the sandbox that runs here
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.engines.errors import OperatorError

SECRET = "secret"
LOCK = "lock"


def load_or_create_secret(folder: Path) -> str:
    """The same for every process, also for processes that start at the same time."""
    _make(folder)
    file = folder / SECRET
    if not file.exists():
        draft = folder / f"{SECRET}.{os.getpid()}"
        made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(made, f"whsec_{secrets.token_urlsafe(32)}".encode())
            os.fsync(made)
            os.link(draft, file)  # atomic, and fails if another process was first
        except FileExistsError:
            return load_or_create_secret(folder)
        finally:
            os.close(made)
            draft.unlink()
    return file.read_text().strip()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """One sandbox per folder: a second would not see the keys that the first has in progress."""
    _make(folder)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _locks(lock):
            raise OperatorError(f"another sandbox is using {folder}: stop it, or choose a folder with --data")
        yield
    finally:
        os.close(lock)  # the kernel releases it however the process ends


def is_in_use(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _locks(lock)
    finally:
        os.close(lock)


def _locks(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(
            f"cannot make the folder {folder}: {error.strerror}; choose another with --data"
        ) from None
