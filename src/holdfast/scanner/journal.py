"""A scanner's folder: who it is, its pack, and what it has decided.

device.json    who we are, and whose keys we trust
pack.bin       sealed, as it came
scans.jsonl    a line a scan: what the next pack, or the box office, does not know yet
refused.jsonl  scans that the box office would not take: for a person to look at
lock           of the one process that may write here
"""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.checkin import OfflineScan
from holdfast.engines.errors import OperatorError

OWNER_ONLY = 0o600


class ScannerDevice(Struct):
    """Who we are."""

    server: str
    code: str
    private: str
    keys: dict[str, str] = {}


class JournalEntry(Struct):
    """A line of scans.jsonl."""

    scan: OfflineScan
    is_uploaded: bool
    place: tuple[int, int] | None = None  # (show, serial), once the code was read
    check_in_id: str = ""  # the box office's, once it knows


class Journal:
    def __init__(self, folder: Path) -> None:
        """One process a folder: two would write over each other's scans."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        except OSError as error:
            raise OperatorError(f"cannot use {folder}: {error.strerror}; give another --folder") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise OperatorError(f"another gate runs in {folder}: stop it, or give another --folder") from None

    def close(self) -> None:
        os.close(self._lock)

    def device(self) -> ScannerDevice | None:
        file = self.folder / "device.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=ScannerDevice)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise OperatorError(f"{file} is damaged: give another --folder, and ask for a new pass") from None

    def save_device(self, device: ScannerDevice) -> None:
        _write(self.folder / "device.json", msgspec.json.encode(device))

    def pack(self) -> bytes | None:
        file = self.folder / "pack.bin"
        return file.read_bytes() if file.exists() else None

    def save_pack(self, raw: bytes | None) -> None:
        """None: there is none any more."""
        if raw is None:
            (self.folder / "pack.bin").unlink(missing_ok=True)
        else:
            _write(self.folder / "pack.bin", raw)

    def scans(self) -> list[JournalEntry]:
        """Scans of earlier runs. Half a line at the end is a scan whose verdict was never shown."""
        file = self.folder / "scans.jsonl"
        found = []
        for line in file.read_bytes().splitlines() if file.exists() else ():
            try:
                found.append(msgspec.json.decode(line, type=JournalEntry))
            except msgspec.DecodeError:
                continue
        return found

    def add(self, entry: JournalEntry) -> None:
        """On disk when this returns."""
        _append(self.folder / "scans.jsonl", entry)

    def rewrite(self, scans: Iterable[JournalEntry]) -> None:
        _write(self.folder / "scans.jsonl", b"".join(_line(entry) for entry in scans))

    def set_aside(self, entry: JournalEntry) -> None:
        _append(self.folder / "refused.jsonl", entry)


def _line(entry: JournalEntry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def _append(file: Path, entry: JournalEntry) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWNER_ONLY), "ab") as out:
        out.write(_line(entry))
        out.flush()
        os.fsync(out.fileno())


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all, and for our eyes only."""
    draft = file.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
