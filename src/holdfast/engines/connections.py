"""Connections that PostgreSQL allows, and who uses them."""

from dataclasses import dataclass

from holdfast.engines.postgres import Queries, Queryable, require_row

Q = Queries("holdfast.engines")


@dataclass(frozen=True, slots=True)
class LedgerConnections:
    most: int  # for accounts without privileges
    used: int
    ours: int

    @property
    def others(self) -> int:
        return self.used - self.ours


async def load_connections(connection: Queryable) -> LedgerConnections:
    return LedgerConnections(**require_row(await connection.fetchrow(Q.ledger_connections)))
