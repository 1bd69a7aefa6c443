"""A connection to the ledger in a sampled request: each statement is a span, by the name of its query."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from holdfast.engines.named_queries import QUERY_NAMES
from holdfast.engines.tracing import Value, child


class TracedConnection:
    """As much of a connection as `Transaction` in postgres.py promises; the rest is the connection's own."""

    def __init__(self, connection: Any, waited_s: float) -> None:
        """`waited_s`: for the connection; an attribute of the first statement."""
        self._connection = connection
        self._waited_ms = round(waited_s * 1000, 1)

    async def fetch(self, sql: str, /, *args: object, timeout: float | None = None) -> list[asyncpg.Record]:
        with child("SQL", *self._describe(sql)):
            return list(await self._connection.fetch(sql, *args, timeout=timeout))

    async def fetchrow(self, sql: str, /, *args: object) -> asyncpg.Record | None:
        with child("SQL", *self._describe(sql)):
            return await self._connection.fetchrow(sql, *args)  # type: ignore[no-any-return]

    async def fetchval(self, sql: str, /, *args: object) -> Any:
        with child("SQL", *self._describe(sql)):
            return await self._connection.fetchval(sql, *args)

    async def execute(self, sql: str, /, *args: object) -> str:
        with child("SQL", *self._describe(sql)):
            return str(await self._connection.execute(sql, *args))

    async def executemany(self, sql: str, rows: list[tuple[object, ...]], /) -> None:
        with child("SQL", *self._describe(sql)):
            await self._connection.executemany(sql, rows)

    def transaction(self) -> AbstractAsyncContextManager[object]:
        return self._connection.transaction()  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _describe(self, sql: str) -> tuple[str, Any, dict[str, Value]]:
        """Arguments of `child`: name, kind, attributes."""
        name = QUERY_NAMES.get(sql, "unnamed")
        attributes: dict[str, Value] = {"db.system.name": "postgresql", "db.query.summary": name}
        if self._waited_ms:
            attributes["holdfast.pool_wait_ms"], self._waited_ms = self._waited_ms, 0
        return name, "client", attributes
