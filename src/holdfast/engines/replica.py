"""Reads that may be some seconds old: from a replica of the ledger while it keeps up, else from the ledger.

    fetch ─┬─ the replica has what was written `lag_max_s` ago, and what we wrote ─► replica ─┬─ rows
           │                                                                                  └─ down ─┐
           └─ it lags, or it is down ──────────────────────────────────────────────► ledger ◄──────────┘

For lists, searches and reports only (app.py says which), never for a decision. The lag is not taken from
clocks: a job notes how long the ledger's log is, and sees later that the replica has replayed so much.
"""

import time
from collections import deque
from typing import Any, Protocol

import asyncpg
import structlog

from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries

Q = Queries("holdfast.engines")
LOOK_PAUSE_S = 1.0
NOTED_MAX = 600  # ten minutes of a replica that is away

log = structlog.get_logger(__name__)


class RowReader(Protocol):
    """The ledger itself, or a replica with the ledger behind it."""

    async def fetch(self, sql: str, /, *args: object) -> list[asyncpg.Record]: ...
    async def fetchrow(self, sql: str, /, *args: object) -> asyncpg.Record | None: ...


class ReplicaPostgres(Postgres):
    ROLE = "any"


class ReplicaLag:
    """What this process knows of the replica; its readers share it."""

    def __init__(self, lag_max_s: float) -> None:
        self._lag_max_s = lag_max_s
        self._noted: deque[tuple[float, int]] = deque(maxlen=NOTED_MAX)  # when the log was how long
        self._complete_at = self._wrote_at = float("-inf")  # all that was written before is there
        self.is_down = False

    @property
    def is_fit(self) -> bool:
        is_recent = time.monotonic() - self._complete_at <= self._lag_max_s
        return is_recent and not self.is_down and self._complete_at > self._wrote_at

    def note_write(self) -> None:
        """This process wrote what its caller looks for next: until the replica has it, the ledger is read."""
        self._wrote_at = time.monotonic()

    def note_position(self, at: float, length: int) -> None:
        """`at` is before the length was read: everything written before `at` is in it."""
        self._noted.append((at, length))

    def note_replayed(self, length: int) -> None:
        while self._noted and self._noted[0][1] <= length:
            self._complete_at = self._noted.popleft()[0]


def build_replica(
    ledger: Postgres, url: str, lag_max_s: float, *, pool_max: int, timeout_s: float
) -> "ReplicaReader | None":
    """None without a URL."""
    if not url:
        return None
    replica = ReplicaPostgres(url, pool_max=pool_max, timeout_s=timeout_s)
    return ReplicaReader(ledger, replica, ReplicaLag(lag_max_s))


class ReplicaReader:
    def __init__(self, ledger: Postgres, replica: Postgres, lag: ReplicaLag) -> None:
        """Closes the replica's connections, and not the ledger's."""
        self.lag = lag
        self._ledger = ledger
        self._replica = replica

    async def fetch(self, sql: str, *args: object) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self._read("fetch", sql, args)
        return rows

    async def fetchrow(self, sql: str, *args: object) -> asyncpg.Record | None:
        row: asyncpg.Record | None = await self._read("fetchrow", sql, args)
        return row

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog."""
        now = time.monotonic()
        self.lag.note_position(now, await self._ledger.fetchval(Q.ledger_position))
        try:
            self.lag.note_replayed(await self._replica.fetchval(Q.replica_position))
        except EngineDown:
            if not self.lag.is_down:
                log.warning("replica unreachable", fix="lists and reports are read from the ledger meanwhile")
            self.lag.is_down = True
        else:
            self.lag.is_down = False
        metrics.set("replica_used", int(self.lag.is_fit))
        return 0

    async def close(self) -> None:
        await self._replica.close()

    async def _read(self, how: str, sql: str, args: tuple[object, ...]) -> Any:
        if self.lag.is_fit:
            try:
                return await getattr(self._replica, how)(sql, *args)
            except EngineDown as down:
                if isinstance(down.__cause__, asyncpg.QueryCanceledError):
                    raise  # too slow: the ledger would be as slow
                self.lag.is_down = True  # until the next look: no other caller waits for it
            except asyncpg.SerializationError:
                pass  # what it replayed removed rows under the query
        return await getattr(self._ledger, how)(sql, *args)
