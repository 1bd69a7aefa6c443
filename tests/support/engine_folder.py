"""Folders for the engines of tests: in memory where there is room, so that no commit waits for a disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # a file system of Linux
ROOM_MIN = 4 * 2**30  # bytes; a ledger of the tests with its log has some 80 MB


@contextmanager
def engine_folder(prefix: str = "holdfast-test-") -> Iterator[Path]:
    """Removed at the end, with what is in it."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=find_room()))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def find_room() -> Path | None:
    """None: where temporary files usually are."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_MIN
    return MEMORY if has_room else None
