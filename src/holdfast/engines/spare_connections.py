"""Connections between two leases, without the way through asyncpg's pool.

    lease ends ──► spare ──► next lease
                     └─ not used for SPARE_S ──► the pool, which closes it if it stays idle

The pool checks a connection in and out with a task, three timers and three turns of the loop. The callers of
a batch would wait for that before they get their results.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    PooledConnection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

SPARE_S = 2.0
# Every so many leases the pool sees a connection after all: it replaces those that are old (max_queries).
LEASES_MAX = 200


class SpareConnections:
    """Of one pool. `give_back` returns a connection to it."""

    def __init__(
        self, give_back: "Callable[[PooledConnection], Awaitable[None]]", *, spare_s: float = SPARE_S
    ) -> None:
        self._give_back = give_back
        self._spare_s = spare_s
        self._spare: list[tuple[PooledConnection, float]] = []  # with the end of its lease, oldest first
        self._leases = 0
        self._is_retired = False
        self._timer: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Future[None]] = set()

    def take(self) -> "PooledConnection | None":
        """The one that was used last, so that the others become idle; None: ask the pool."""
        while self._spare:
            connection, _ = self._spare.pop()
            if _is_usable(connection):
                return connection
        return None

    def put(self, connection: "PooledConnection") -> bool:
        """False: it is not to be used again, or not without the pool; the caller gives it back."""
        self._leases += 1
        if self._is_retired or self._leases % LEASES_MAX == 0 or not _is_usable(connection):
            return False
        self._spare.append((connection, time.monotonic()))
        if self._timer is None:
            self._look_later()
        return True

    def retire(self) -> "list[PooledConnection]":
        """Those that are spare now; the caller ends them. Those of leases under way will not become spare."""
        self._is_retired = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        spare, self._spare = self._spare, []
        return [connection for connection, _ in spare if _is_usable(connection)]

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._spare_s, self._look)

    def _look(self) -> None:
        self._timer = None
        oldest = time.monotonic() - self._spare_s
        while self._spare and self._spare[0][1] <= oldest:
            returning = asyncio.ensure_future(self._give_back(self._spare.pop(0)[0]))
            self._returning.add(returning)
            returning.add_done_callback(self._returning.discard)
        if self._spare:
            self._look_later()


def _is_usable(connection: "PooledConnection") -> bool:
    try:
        return not connection.is_closed() and not connection.is_in_transaction()
    except asyncpg.InterfaceError:  # it was lost meanwhile, and the pool has it back already
        return False
