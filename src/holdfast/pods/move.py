"""Moves a show to another pod while it sells.

    fence ─► drain ─► copy ─► switch ─► arrive ─► remove
      │        │        │        └ one row at home: from here on the show is the new pod's
      └────────┴────────┴─ a failure: the fence is taken away, and nothing has happened

The fence stays if the switch was tried: its reply may be lost, and the old pod learns late whose the show is.

Fenced, the old pod writes no row of the show: buyers get 503 with Retry-After for as long as it takes.
Drained means that every consumer has processed the show's facts: they
refer to rows of the old pod. The rows are copied in one snapshot and arrive in one transaction. The new pod
sells when it has received the directory's new row from home.

A mover that dies leaves a fenced show: `holdfast pod move` again goes on from there, and to the pod that has
the show, opens it again.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile

import asyncpg

from holdfast.bookings import move_sale
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries
from holdfast.engines.startup_checks import connect
from holdfast.outbox import Outbox
from holdfast.pods.close import FENCE_LOCK_WITHIN
from holdfast.pods.directory import Ownership, load_owner
from holdfast.pods.place import HOME
from holdfast.pods.setup import SHARES
from holdfast.pods.tables import NUMBERED, OF_A_SHOW
from holdfast.pods.waiting import wait_until

Q = Queries("holdfast.pods")
DRAINED_WITHIN_S = 20.0
ARRIVED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class PodDatabase:
    """One side of a move."""

    name: str  # empty: the home database
    number: int
    url: str
    outbox: Outbox
    drop_map: Callable[[int], Awaitable[None]]  # removes the show's map from the Redis of this pod


@dataclass(slots=True)
class MoveReport:
    show_id: int
    source: str
    target: str
    rows: int = 0
    gap_s: float = 0.0  # from the fence until the new pod sells
    steps_s: dict[str, float] = field(default_factory=dict)


class ShowMover:
    def __init__(self, home_url: str, pods: dict[str, PodDatabase]) -> None:
        self._home_url = home_url
        self._pods = pods

    async def move(self, show_id: int, to: str) -> MoveReport:
        if to not in self._pods:
            raise OperatorError(f"there is no pod {to!r}: see `holdfast pod list`")
        target = self._pods[to]
        async with _connected(self._home_url) as home:
            # For as long as this connection lives, over which the show is switched, too: another mover that
            # gives up would take away our fence.
            if not await home.fetchval(Q.try_lock_place, show_id):
                raise OperatorError(f"show {show_id} is being moved or deleted by another command: try again")
            owner = await load_owner(home, show_id)
            if owner.pod == to:
                await self._finish(show_id, owner, home)
                return MoveReport(show_id, owner.pod, to)
            if owner.pod not in self._pods:
                raise OperatorError(
                    f"show {show_id} is in the pod {owner.pod}, which HOLDFAST_PODS does not name"
                )
            source = self._pods[owner.pod]
            async with _connected(source.url) as old, _connected(target.url) as new:
                return await _Move(show_id, owner, (source, old), (target, new), home).run()

    async def _finish(self, show_id: int, owner: Ownership, home: asyncpg.Connection) -> None:
        """What a mover that died has left: rows in other databases, or a fence in the show's own.

        The fence may be that of another layout (close.py), which has to arrive before the show is sold.
        """
        async with _connected(self._pods[owner.pod].url) as own:
            await _require_copy(own, show_id, owner)
            if owner.pod != HOME:
                await _wait_for_layout(home, own, show_id)
            for pod in self._pods.values():
                if pod.name != owner.pod:
                    async with _connected(pod.url) as database:
                        await _remove_rows(database, show_id)
            await own.execute(Q.remove_fence, show_id, owner.epoch)


class _Move:
    def __init__(
        self,
        show_id: int,
        owner: Ownership,
        source: tuple[PodDatabase, asyncpg.Connection],
        target: tuple[PodDatabase, asyncpg.Connection],
        home: asyncpg.Connection,
    ) -> None:
        self._show_id, self._epoch = show_id, owner.epoch
        self._source, self._old = source
        self._target, self._new = target
        self._home = home
        self._report = MoveReport(show_id, self._source.name, self._target.name)

    async def run(self) -> MoveReport:
        began = time.monotonic()
        try:
            await self._timed("fence", self._fence())
            await self._timed("drain", self._drain())
            await self._timed("copy", self._copy())
        except BaseException:
            await self._old.execute(Q.remove_fence, self._show_id, self._epoch)
            raise
        await self._timed("switch", self._switch())
        await self._timed("arrive", self._arrive())
        self._report.gap_s = time.monotonic() - began
        await self._timed("remove", self._remove())
        return self._report

    async def _timed(self, step: str, work: Awaitable[None]) -> None:
        began = time.monotonic()
        await work
        self._report.steps_s[step] = time.monotonic() - began

    async def _fence(self) -> None:
        async with self._old.transaction():
            await self._old.execute(Q.wait_for_lock_at_most, FENCE_LOCK_WITHIN)
            try:
                await self._old.execute(Q.lock_copy, self._show_id)
            except asyncpg.LockNotAvailableError:
                raise OperatorError(
                    f"show {self._show_id} was not moved: a transaction has been writing to it for "
                    f"{FENCE_LOCK_WITHIN}; try again"
                ) from None
            await _require_copy(self._old, self._show_id, Ownership(self._source.name, self._epoch))
            await self._old.execute(Q.fence, self._show_id, self._epoch)

    async def _drain(self) -> None:
        """No new facts of this show can appear; wait until all have been processed."""
        behind: list[str] = []

        async def is_drained() -> bool:
            nonlocal behind
            behind = await self._source.outbox.groups_behind(self._show_id)
            return not behind

        try:
            await wait_until(is_drained, DRAINED_WITHIN_S)
        except TimeoutError:
            raise OperatorError(
                f"show {self._show_id} was not moved: its facts wait for {', '.join(behind)}; is a worker "
                "running? see `holdfast facts groups`"
            ) from None

    async def _copy(self) -> None:
        async with self._new.transaction():
            await self._new.execute(Q.copies_show)
            await self._new.execute(Q.remove_rows, list(OF_A_SHOW), self._show_id)  # of a move that died
            async with self._old.transaction(isolation="repeatable_read", readonly=True):
                for table in OF_A_SHOW:
                    self._report.rows += await self._copy_table(table)
                if not await move_sale(self._old, self._new, self._show_id):
                    raise OperatorError(f"the pod has not received show {self._show_id} yet: try again")
            await self._new.execute(
                Q.raise_numbers, list(NUMBERED), self._show_id, self._target.number, SHARES
            )
            last_fact = await self._target.outbox.last_of_show(self._show_id)
            await self._new.execute(Q.complete_copy, self._show_id, self._epoch + 1, last_fact)

    async def _copy_table(self, table: str) -> int:
        columns = [row["name"] for row in await self._old.fetch(Q.columns, table)]
        with TemporaryFile() as rows:
            names = ", ".join(f'"{name}"' for name in columns)
            query = f'SELECT {names} FROM "{table}" WHERE show_id = $1'  # noqa: S608  # names of our schema
            await self._old.copy_from_query(query, self._show_id, output=rows, format="binary")
            rows.seek(0)
            done = await self._new.copy_to_table(table, source=rows, columns=columns, format="binary")
        return int(done.removeprefix("COPY "))

    async def _switch(self) -> None:
        """The show is the new pod's. Compared with the epoch that was read: of two movers one succeeds."""
        if await self._home.fetchval(Q.switch, self._show_id, self._target.name, self._epoch) is None:
            raise OperatorError(f"show {self._show_id} was moved by another command meanwhile: try again")

    async def _arrive(self) -> None:
        async def is_here() -> bool:
            return bool(await self._new.fetchval(Q.show_is_here, self._show_id))

        try:
            await wait_until(is_here, ARRIVED_WITHIN_S)
        except TimeoutError:
            raise OperatorError(
                f"show {self._show_id} is in {self._target.name or 'the home database'}, which has not "
                "received that yet: it sells when replication from home catches up; see `holdfast pod list`"
            ) from None

    async def _remove(self) -> None:
        await _remove_rows(self._old, self._show_id)
        await self._source.drop_map(self._show_id)


async def _wait_for_layout(home: asyncpg.Connection, pod: asyncpg.Connection, show_id: int) -> None:
    layout = await home.fetchval(Q.layout_of_show, show_id)

    async def has_arrived() -> bool:
        return bool(await pod.fetchval(Q.layout_of_show, show_id) == layout)

    try:
        await wait_until(has_arrived, ARRIVED_WITHIN_S)
    except TimeoutError:
        raise OperatorError(
            f"the pod of show {show_id} has not received its new layout: try again when replication has "
            "caught up; see `holdfast pod list`"
        ) from None


async def _require_copy(database: asyncpg.Connection, show_id: int, owner: Ownership) -> None:
    """A database that was restored has the rows of another epoch, or none. Moved or opened again from there,
    the show would be sold as if no seat were taken, and its rows elsewhere would be removed."""
    if not await database.fetchval(Q.has_copy, show_id, owner.epoch):
        raise OperatorError(
            f"{owner.pod or 'the home database'} does not have the rows of show {show_id} that the directory "
            f"names (epoch {owner.epoch}): restore both databases to one moment; see `holdfast audit`"
        )


async def _remove_rows(database: asyncpg.Connection, show_id: int) -> None:
    async with database.transaction():
        await database.execute(Q.copies_show)
        await database.execute(Q.remove_rows, list(OF_A_SHOW), show_id)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(url)
    try:
        yield connection
    finally:
        await connection.close()
