"""Room on disks: of the data folder, and of the ledger where its folder is on this machine."""

import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.engines.aside import run_aside
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row

Q = Queries("holdfast.engines")
DATA, LEDGER = "data", "ledger"  # values of the label `place`


@dataclass(frozen=True, slots=True)
class LedgerSize:
    bytes: int
    folder: str  # of the server; empty: our account may not know it
    host: str  # of the server as it sees itself; empty: a socket of this machine

    @property
    def local_folder(self) -> Path | None:
        """None: the folder is on another machine, or cannot be seen from here."""
        if not self.folder or not (self.host in ("", "127.0.0.1", "::1") or _is_our_address(self.host)):
            return None
        return Path(self.folder) if os.path.isdir(self.folder) else None


async def load_ledger_size(connection: Queryable) -> LedgerSize:
    row = require_row(await connection.fetchrow(Q.ledger_size))
    return LedgerSize(row["bytes"], row["folder"] or "", row["host"] or "")


def measure_room(folder: Path) -> int:
    """Free bytes for accounts without privileges. A folder that does not exist yet: on its parent's disk."""
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(existing).free


def _is_our_address(host: str) -> bool:
    """Can this machine listen there?"""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


class DiskGauge:
    """A job of every process: each machine has disks of its own."""

    def __init__(self, postgres: Postgres, data: Path, free_min_mb: int) -> None:
        self._postgres = postgres
        self._data = data
        self._free_min = free_min_mb * 1_000_000

    async def look(self) -> int:
        """Always returns 0: there is no backlog."""
        for place, free in (await run_aside(self._measure, await self._ledger_folder())).items():
            metrics.measure("disk_free_bytes", free, place=place)
            metrics.measure("disk_missing_bytes", max(self._free_min - free, 0), place=place)
        return 0

    def _measure(self, ledger: Path | None) -> Mapping[str, int]:
        found = {DATA: measure_room(self._data)}
        return found if ledger is None else {**found, LEDGER: measure_room(ledger)}

    async def _ledger_folder(self) -> Path | None:
        size = await load_ledger_size(self._postgres)
        metrics.measure("ledger_bytes", size.bytes)
        return size.local_folder
