"""The ledger's connections: a pool that knows when the engine is down.

Every statement is bounded in time. A connection lost after sending means *unknown*: the statement may
have been executed (EngineDown.unknown), and the caller repeats it with the same request id.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import asyncpg

from holdfast.engines.errors import EngineDown
from holdfast.engines.ledger_hosts import LedgerHosts, PatientConnection
from holdfast.engines.metrics import metrics
from holdfast.engines.named_queries import Queries as Queries
from holdfast.engines.spare_connections import SpareConnections
from holdfast.engines.traced_connection import TracedConnection
from holdfast.engines.tracing import CURRENT_SPAN, current_traceparent

Q = Queries("holdfast.engines")

# After a failed connection attempt no caller tries for this long: a dead ledger fails at once.
DOWN_FOR_S = 0.25
CONNECT_TIMEOUT_S = 2.0  # of all hosts together
CLIENT_GONE_AFTER = "1s"  # the server ends the statements of a client that left

LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.DatabaseDroppedError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DiskFullError,
    asyncpg.ReadOnlySQLTransactionError,
)
# What a statement meets that waits while tables or functions are replaced.
REPLACED = (asyncpg.InvalidCachedStatementError, asyncpg.InternalServerError, asyncpg.DatatypeMismatchError)
OUTDATED = re.compile(
    "cached (?:statement )?plan|cache lookup failed|could not open relation with OID"
    "|does not match function result type"
)
LOCK_WAITS_MAX = 2
AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)


if TYPE_CHECKING:
    PooledConnection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]


class Row(Protocol):
    """A row of a result, by the names of its columns: a Record, or a mapping in a test."""

    def __getitem__(self, column: str, /) -> Any: ...
    def keys(self) -> Iterable[str]: ...


class Queryable(Protocol):
    """Runs statements: the pool (each on its own), a connection, or a transaction."""

    async def fetch(self, sql: str, /, *args: object) -> list[asyncpg.Record]: ...
    async def fetchrow(self, sql: str, /, *args: object) -> asyncpg.Record | None: ...
    async def fetchval(self, sql: str, /, *args: object) -> Any: ...
    async def execute(self, sql: str, /, *args: object) -> str: ...
    async def executemany(self, sql: str, rows: list[tuple[object, ...]], /) -> None: ...


class Transaction(Queryable, Protocol):
    """One connection for several statements, which take effect together or not at all."""

    async def fetch(
        self, sql: str, /, *args: object, timeout: float | None = None
    ) -> list[asyncpg.Record]: ...

    def transaction(self) -> AbstractAsyncContextManager[object]:
        """Open a savepoint inside the transaction."""


def require_row(row: asyncpg.Record | None) -> asyncpg.Record:
    """The row of a statement that always returns one."""
    assert row is not None, "the statement returned no row"
    return row


class Postgres:
    ROLE = "primary"  # of the server, unless the URL has target_session_attrs

    def __init__(
        self,
        url: str,
        *,
        pool_max: int,
        timeout_s: float,
        settings: Mapping[str, str] | None = None,
        has_standbys: bool = False,
        is_shared: bool = False,
    ) -> None:
        """`settings`: of the server, for these connections alone.

        `has_standbys`: commits wait for a synchronous standby and are never cancelled (PatientConnection).
        `is_shared`: a pooler shares the server's sessions between clients; nothing is left in one.
        """
        self._url = url
        self._hosts = LedgerHosts(url, role=self.ROLE)
        self._has_standbys = has_standbys
        self._is_shared = is_shared
        leave = {"client_connection_check_interval": CLIENT_GONE_AFTER} if has_standbys else {}
        self._settings = {"jit": "off", **leave, **(settings or {})}
        self._pool_max = pool_max
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool | None = None
        self._spare: SpareConnections
        self._waiting = 0  # callers that the pool has no connection for yet
        self._opening = asyncio.Lock()
        self._down_until = 0.0
        # Statements that may wait for the rows of a locked show, at once: the other connections stay free.
        self.lock_waits = asyncio.Semaphore(LOCK_WAITS_MAX)

    async def open(self) -> None:
        """Connect now; raises EngineDown. Without it the first use connects."""
        await self._ready()

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            for connection in self._spare.retire():
                await self._give_back(pool, connection)
            try:
                await asyncio.wait_for(pool.close(), 2)
            except TimeoutError:
                pool.terminate()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Transaction]:
        """A connection; engine trouble inside the block becomes EngineDown."""
        pool = await self._ready()
        spare, began = self._spare, time.monotonic()
        connection = spare.take() or await self._acquire(pool)
        metrics.observe("postgres_wait_seconds", (got := time.monotonic()) - began)
        is_spare = False
        try:
            if CURRENT_SPAN.get() is None:
                yield connection
            else:
                yield TracedConnection(connection, got - began)
            # After an error only the pool finds out whether it can be used again.
            is_spare = not self._waiting and spare.put(connection)
        except asyncpg.ReadOnlySQLTransactionError as error:
            # A demoted primary. Behind a virtual address a new connection reaches the new one.
            connection.terminate()
            await self._replace_connections(pool)
            raise EngineDown("ledger", unknown=True) from error
        except REPLACED as error:
            # A newer release, rolled out beside us, has changed a table or function that this statement was
            # planned with. Nothing was done, and the next plan is a new one. (Outside a transaction asyncpg
            # prepares a statement with an outdated plan again by itself.)
            if not OUTDATED.search(str(error)):
                raise
            raise EngineDown("ledger") from error
        except LOST as error:
            if self._has_standbys and isinstance(error, TimeoutError):
                # Perhaps its machine is gone without a word: no other connection waits for it, too.
                await self._replace_connections(pool)
            raise EngineDown("ledger", unknown=True) from error
        finally:
            metrics.observe("postgres_use_seconds", time.monotonic() - got)
            if not is_spare:
                await self._give_back(pool, connection)

    async def _acquire(self, pool: asyncpg.Pool) -> "PooledConnection":
        self._waiting += 1
        try:
            return await pool.acquire(timeout=self._timeout_s)
        except LOST as error:
            self._down_until = time.monotonic() + DOWN_FOR_S
            raise EngineDown("ledger") from error
        finally:
            self._waiting -= 1

    async def _replace_connections(self, pool: asyncpg.Pool) -> None:
        """Every connection of now is closed at the end of its lease, spare ones at once and without a word:
        a silent server would not answer it."""
        retired, self._spare = self._spare, SpareConnections(partial(self._give_back, pool))
        await pool.expire_connections()
        for connection in retired.retire():
            connection.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.lease() as connection, connection.transaction():
            if traceparent := current_traceparent():
                await connection.execute(Q.set_trace, traceparent)
            yield connection

    @asynccontextmanager
    async def fresh_plans(self) -> AsyncIterator[Transaction]:
        """A transaction for a few large steps: each is planned for the tables as they are now.

        The plan that a connection keeps of a statement may be of a time when its tables were nearly empty,
        and reads them whole from then on, until there are new statistics: a minute, in the middle of a sale.
        """
        async with self.transaction() as tx:
            await tx.execute(Q.use_fresh_plans)
            yield tx

    async def fetch(self, sql: str, *args: object, timeout: float | None = None) -> list[asyncpg.Record]:
        """`timeout` in place of the setting, for a statement that reads whole tables."""
        async with self.lease() as connection:
            return list(await connection.fetch(sql, *args, timeout=timeout))

    async def fetchrow(self, sql: str, *args: object) -> asyncpg.Record | None:
        async with self.lease() as connection:
            return await connection.fetchrow(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        async with self.lease() as connection:
            return await connection.fetchval(sql, *args)

    async def execute(self, sql: str, *args: object) -> str:
        async with self.lease() as connection:
            return str(await connection.execute(sql, *args))

    async def executemany(self, sql: str, rows: list[tuple[object, ...]]) -> None:
        async with self.lease() as connection:
            await connection.executemany(sql, rows)

    async def _ready(self) -> asyncpg.Pool:
        if time.monotonic() < self._down_until:
            raise EngineDown("ledger")
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._pool is None:
                self._pool = await self._connect()
                self._spare = SpareConnections(partial(self._give_back, self._pool))
        return self._pool

    async def _connect(self) -> asyncpg.Pool:
        try:
            return await asyncpg.create_pool(
                connect=self._open_connection,
                connection_class=PatientConnection if self._has_standbys else asyncpg.Connection,
                min_size=0,  # also the last one is closed if it is not used: it takes 5 to 10 MB
                init_size=1,
                max_size=self._pool_max,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=self._timeout_s,
                max_inactive_connection_lifetime=60,
                reset=_nothing_to_reset,
                server_settings={"application_name": "holdfast"},
                **self._session_options(),
            )
        except (*LOST, asyncpg.PostgresError) as error:
            self._down_until = time.monotonic() + DOWN_FOR_S
            raise EngineDown("ledger") from error

    async def _open_connection(self, *_dsn: object, **options: Any) -> asyncpg.Connection:
        return await self._hosts.connect(**options)

    def _session_options(self) -> dict[str, Any]:
        """In a shared session, a prepared statement or a setting would be another client's, too."""
        return {"statement_cache_size": 0} if self._is_shared else {"init": self._set_session}

    async def _set_session(self, connection: asyncpg.Connection) -> None:
        await connection.execute(Q.set_session, list(self._settings), list(self._settings.values()))

    async def _give_back(self, pool: asyncpg.Pool, connection: "PooledConnection") -> None:
        try:
            await pool.release(connection, timeout=2)
        except (*LOST, asyncpg.PostgresError):
            connection.terminate()


async def _nothing_to_reset(connection: Any) -> None:
    """No statement leaves anything behind in a session; cleaning up would cost a round trip."""
