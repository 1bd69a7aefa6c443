"""Closes a show in its pod while the catalogue decides something about it that depends on what is sold.

    home: transaction, lock of the show's place ─► pod: fence ─► look at what is sold ─► home: commit
                                                     └─ a failure: the fence is taken away first

The lock keeps movers away: theirs and ours are the same fence. A process that dies in between leaves the show
fenced; `holdfast pod list` names it, and `holdfast pod move` goes on from there.

A show that goes on selling after the change is opened again when the change has arrived: before, the pod
would sell what the catalogue does not have any more.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.errors import Busy
from holdfast.pods.catch_up import wait_for_home
from holdfast.pods.directory import load_owner
from holdfast.pods.place import HOME

Q = Queries("holdfast.pods")
FENCE_LOCK_WITHIN = "2s"  # writers wait behind us for that long
ARRIVES_WITHIN_S = 5.0  # of a request: its client waits

DatabaseFor = Callable[[str], Postgres | None]


@dataclass(frozen=True, slots=True)
class ClosedShow:
    """A show whose pod writes no row of it any more."""

    show_id: int
    epoch: int
    pod: str
    database: Postgres

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        """A transaction of the pod that writes rows of the show although it is closed."""
        async with self.database.transaction() as tx:
            await tx.execute(Q.copies_show)
            yield tx

    async def open(self) -> None:
        await self.database.execute(Q.remove_fence, self.show_id, self.epoch)

    async def open_changed(self, home: Postgres, act: Callable[[Transaction], Awaitable[None]]) -> None:
        """When the pod has what home has committed; `act` is done in the transaction that opens the show.

        Raises EngineDown if it does not arrive. The show stays closed then.
        """
        try:
            await wait_for_home(home, self.database, self.pod, ARRIVES_WITHIN_S)
        except TimeoutError:
            raise EngineDown("replication", unknown=True, retry_after_s=5) from None
        async with self.database.transaction() as tx:
            await tx.execute(Q.remove_fence, self.show_id, self.epoch)
            await act(tx)


class ShowCloser:
    """Of one transaction in the home database."""

    def __init__(self, tx: Transaction, database_for: DatabaseFor) -> None:
        self._tx = tx
        self._database_for = database_for
        self._closed: list[ClosedShow] = []

    async def close(self, show_id: int) -> ClosedShow | None:
        """None: home sells the show.

        Raises Busy while the show moves, or if its pod is not one of this machine's.
        """
        if not await self._tx.fetchval(Q.try_lock_place_in_transaction, show_id):
            raise Busy(retry_after_s=5)
        owner = await load_owner(self._tx, show_id)
        if owner.pod == HOME:
            return None
        database = self._database_for(owner.pod)
        if database is None:
            raise Busy(retry_after_s=5)
        async with database.transaction() as tx:
            await tx.execute(Q.wait_for_lock_at_most, FENCE_LOCK_WITHIN)
            await tx.execute(Q.lock_copy, show_id)
            if not await tx.fetchval(Q.show_is_here, show_id):
                raise Busy(retry_after_s=5)
            await tx.execute(Q.fence, show_id, owner.epoch)
        closed = ClosedShow(show_id, owner.epoch, owner.pod, database)
        self._closed.append(closed)
        return closed

    async def reopen(self) -> None:
        for closed in self._closed:
            await closed.open()


async def require_caught_up(home: Postgres, database_for: DatabaseFor, show_id: int) -> None:
    """Before a show is closed: its pod receives changes. Raises EngineDown if it is behind."""
    owner = await load_owner(home, show_id)
    database = database_for(owner.pod)
    if database is None:
        return  # home sells it; or `close` refuses it
    try:
        await wait_for_home(home, database, owner.pod, ARRIVES_WITHIN_S)
    except TimeoutError:
        raise EngineDown("replication", retry_after_s=5) from None


@asynccontextmanager
async def closing_shows(tx: Transaction, database_for: DatabaseFor) -> AsyncIterator[ShowCloser]:
    """In a transaction of the home database: shows that were closed are opened again if the block raises."""
    closer = ShowCloser(tx, database_for)
    try:
        yield closer
    except BaseException:
        await closer.reopen()
        raise
