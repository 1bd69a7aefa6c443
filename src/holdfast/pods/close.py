"""Closes a show in its pod while the catalogue decides something about it that depends on what is sold.

    home: transaction, lock of the show's place ─► pod: fence ─► look at what is sold ─► home: commit
                                                     └─ a failure: the fence is taken away first

The lock keeps movers away: theirs and ours are the same fence. A process that dies in between leaves the show
fenced; `holdfast pod list` names it, and `holdfast pod move` goes on from there.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.errors import Busy
from holdfast.pods.directory import load_owner
from holdfast.pods.place import HOME

Q = Queries("holdfast.pods")
FENCE_LOCK_WITHIN = "2s"  # writers wait behind us for that long


class ShowCloser:
    """Of one transaction in the home database."""

    def __init__(self, tx: Transaction, database_for: Callable[[str], Postgres | None]) -> None:
        self._tx = tx
        self._database_for = database_for
        self._closed: list[tuple[Postgres, int, int]] = []  # database, show, epoch

    async def close(self, show_id: int) -> Postgres | None:
        """The database of the pod, which writes no row of the show any more; None: home sells it.

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
        self._closed.append((database, show_id, owner.epoch))
        return database

    async def reopen(self) -> None:
        for database, show_id, epoch in self._closed:
            await database.execute(Q.remove_fence, show_id, epoch)


@asynccontextmanager
async def closing_shows(
    tx: Transaction, database_for: Callable[[str], Postgres | None]
) -> AsyncIterator[ShowCloser]:
    """In a transaction of the home database: shows that were closed are opened again if the block raises."""
    closer = ShowCloser(tx, database_for)
    try:
        yield closer
    except BaseException:
        await closer.reopen()
        raise
