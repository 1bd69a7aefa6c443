"""The lease queue: rows of a table that workers take for a while, try, and try again later.

                  take: tries + 1, turn + 1, due_at = end of the lease
        ┌────────┐ ─────────────────────────────────────────────────► ┌────────┐
   ───► │ queued │                                                     │ leased │ ──┐ renew: due_at = later
        └────────┘ ◄───────────────────────────────────────────────── └────────┘ ◄─┘
          ▲   ▲     the lease ends: the worker died or is too slow      │    │
          │   └──── finish(pause_s): failed, next try after the pause ──┤    │
          │   └──── give_back: not tried, tries - 1, due at once ───────┘    │
          │                                                                  ▼
          └──────────────────────── replay: tries = 0 ─────────── finish(None): done or dead

A row is queued or leased exactly while `due_at` is not NULL; the two differ only in whether `due_at` has
passed. So nothing has to clean up after a worker that died: its rows become due when their leases end.

`turn` is the fence. It grows with every take, take_over and replay, and every write names the turn it was
made for. A worker that slept through its lease therefore changes nothing: its writes match no row.
What a worker did outside the database in that time happens twice; receivers get the same message id.

A subject supplies these fragments in its own queries file (the name may have a prefix, see `LeaseTable`):

lease_due       SELECT of the key columns of due rows, at most $1, own parameters from $3 on, FOR UPDATE SKIP
                LOCKED; further columns are returned with the taken rows
lease_result    optional: assignments when a try ends, parameters from $2 on
lease_returned  optional: assignments when rows are given back, one parameter, $1
lease_replayed  optional: assignments of a replay, without parameters
lease_dead      optional: condition of rows that only a person revives
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import structlog

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries, Queryable, Row, Transaction, require_row
from holdfast.engines.row_lease import Key, Lease

log = structlog.get_logger(__name__)

TEMPLATES = Queries("holdfast.engines", "leases")
PARAMETER = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTable:
    """Which table is leased, and how its rows are named."""

    name: str
    key: Mapping[str, str]  # column → SQL type
    queries: Queries  # has the fragments
    prefix: str = "lease"
    is_fenced: bool = True  # False: no `turn`; the last write wins, so results must be idempotent
    shown: str = "leased.*"  # columns of replayed rows

    def fragment(self, name: str, default: str = "") -> str:
        return str(self.queries.__dict__.get(f"{self.prefix}_{name}", default))


@dataclass(slots=True)
class LeaseQueue:
    """One leased table. Every method is one statement."""

    postgres: Postgres
    table: LeaseTable
    _sql: dict[str, str] = field(default_factory=dict)
    _replays: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table, keys = self.table, list(self.table.key)
        types = ["int[]"] * table.is_fenced + [f"{kind}[]" for kind in table.key.values()]
        matches = [f"leased.{key} = mine.{key}" for key in keys]
        common = {
            "table": table.name,
            "keys": ", ".join(keys),
            "leased_keys": ", ".join(f"leased.{key}" for key in keys),
            "fence_up": "turn = leased.turn + 1," if table.is_fenced else "",
            "fence_name": "turn, " if table.is_fenced else "",
            "leased_is_due": " AND ".join(f"leased.{key} = due.{key}" for key in keys),
            "leased_is_mine": " AND ".join(matches + ["leased.turn = mine.turn"] * table.is_fenced),
            "dead": table.fragment("dead", "false"),
        }
        result, returned = table.fragment("result"), table.fragment("returned")
        after_result = _last_parameter(result, 1)
        own = {
            "take": {"due": table.fragment("due")},
            "take_over": {"is_row": _matches(keys, 2)},
            "renew": {"arrays": _arrays(types, 2)},
            "give_back": {
                "returned": _also(returned),
                "arrays": _arrays(types, _last_parameter(returned) + 1),
            },
            "finish": {
                "result": _also(result),
                "is_fenced": f"leased.turn = ${after_result + 1}" if table.is_fenced else "true",
                "is_row": _matches(keys, after_result + 1 + table.is_fenced),
            },
            "count": {},
        }
        self._sql = {name: getattr(TEMPLATES, name).format_map(common | more) for name, more in own.items()}
        self._sql["replay"] = TEMPLATES.replay.format_map(
            common
            | {
                "replayed": _also(table.fragment("replayed")),
                "shown": table.shown,
                "condition": "{condition}",
            }
        )

    async def take(self, limit: int, leases_s: float | Sequence[float], *args: object) -> Sequence[Row]:
        """Due rows, now leased to the caller. `leases_s`: one length, or one per try; the last repeats."""
        lengths = [float(leases_s)] if isinstance(leases_s, int | float) else [float(one) for one in leases_s]
        return await self.postgres.fetch(self._sql["take"], limit, lengths, *args)

    async def take_over(self, key: Key, lease_s: float) -> Row | None:
        """This row, even if another worker has it; None: it is not queued."""
        rows = await self.postgres.fetch(self._sql["take_over"], float(lease_s), *key)
        return rows[0] if rows else None

    async def renew(self, leases: Sequence[Lease], lease_s: float) -> set[Key]:
        """The keys that the caller still has, for another `lease_s`."""
        rows = await self.postgres.fetch(self._sql["renew"], float(lease_s), *self._arrays(leases))
        return {tuple(row) for row in rows}

    async def give_back(self, leases: Sequence[Lease], *values: object) -> None:
        """Untried: the other side was not reached at all."""
        await self.postgres.execute(self._sql["give_back"], *values, *self._arrays(leases))

    async def finish(
        self, lease: Lease, pause_s: float | None, *values: object, tx: Transaction | None = None
    ) -> bool:
        """The result of a try. False: another worker has the row, or it has ended."""
        turn = [lease.turn] if self.table.is_fenced else []
        connection: Queryable = tx or self.postgres
        return bool(await connection.fetchval(self._sql["finish"], pause_s, *values, *turn, *lease.key))

    async def replay(self, condition: str, *args: object, tx: Queryable | None = None) -> Sequence[Row]:
        """Queue the rows that a condition from the subject's queries selects, ended or not."""
        if condition not in self._replays:
            self._replays[condition] = self._sql["replay"].replace("{condition}", condition)
        return await (tx or self.postgres).fetch(self._replays[condition], *args)

    async def count(self) -> dict[str, int]:
        """queued (leased rows included) and dead"""
        return dict(require_row(await self.postgres.fetchrow(self._sql["count"])))

    def _arrays(self, leases: Sequence[Lease]) -> list[list[Any]]:
        turns = [[lease.turn for lease in leases]] if self.table.is_fenced else []
        return [*turns, *([lease.key[i] for lease in leases] for i in range(len(self.table.key)))]


def _matches(keys: Iterable[str], first: int) -> str:
    return " AND ".join(f"leased.{key} = ${first + i}" for i, key in enumerate(keys))


def _arrays(types: Sequence[str], first: int) -> str:
    return ", ".join(f"${first + i}::{kind}" for i, kind in enumerate(types))


def _also(assignments: str) -> str:
    return f", {assignments}" if assignments else ""


def _last_parameter(sql: str, at_least: int = 0) -> int:
    return max([at_least, *(int(number) for number in PARAMETER.findall(sql))])


class Leased(Protocol):
    @property
    def lease(self) -> Lease: ...


Item = TypeVar("Item", bound=Leased)


class LeasedBatch(Generic[Item]):
    """Rows that one worker took together and carries out one after the other, for longer than a lease.

    The lease is renewed in the background. `next` and `has` answer from this process' own clock: if it slept,
    or the database was away for a whole lease, other workers may have the rows, and it must not go on.
    """

    def __init__(self, queue: LeaseQueue, taken: Sequence[Item], *, taken_at: float, lease_s: float) -> None:
        """`taken_at`: time.monotonic() from before the rows were taken, as the lease began after it."""
        self._queue = queue
        self._waiting = deque(taken)
        self._mine = {item.lease.key: item for item in taken}
        self._lease_s = lease_s
        self._until = taken_at + lease_s

    def next(self) -> Item | None:
        while self._waiting:
            if self.has(item := self._waiting.popleft()):
                return item
        return None

    def has(self, item: Item) -> bool:
        return item.lease.key in self._mine and time.monotonic() < self._until

    def done(self, item: Item) -> None:
        self._mine.pop(item.lease.key, None)

    async def give_back(self, *values: object) -> None:
        await self._queue.give_back(self._leases(), *values)
        self._mine.clear()

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Renews the leases until the block ends."""
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 4)  # three failed renewals still leave the lease intact
            started_at = time.monotonic()
            try:
                still = await self._queue.renew(self._leases(), self._lease_s)
            except EngineDown as down:
                log.warning("lease not renewed", engine=down.engine)
                continue
            # `done` may have removed rows while the statement ran: filter what is there now.
            self._mine = {key: item for key, item in self._mine.items() if key in still}
            self._until = started_at + self._lease_s

    def _leases(self) -> list[Lease]:
        return [item.lease for item in self._mine.values()]
