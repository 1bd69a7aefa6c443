"""Reads the audit log. Entries are written by web/audit_log.py, in the transactions of the changes."""

from collections.abc import AsyncIterator

from holdfast.audit_log.entry import (
    CSV_COLUMNS,
    PAGE_MAX,
    AuditFilter,
    AuditHead,
    AuditLine,
    AuditPage,
    AuditQuery,
    build_line,
    csv_row,
)
from holdfast.engines.postgres import Postgres, Queries
from holdfast.web.audit_log import AuditEntry, record
from holdfast.web.csv_export import to_csv

Q = Queries("holdfast.audit_log")


class AuditLog:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def page(self, chain: int, wanted: AuditQuery) -> AuditPage:
        lines = await self._lines(chain, wanted, wanted.before, wanted.size + 1)
        more = len(lines) > wanted.size
        row = await self._postgres.fetchrow(Q.head, chain)
        head = AuditHead(row["number"], row["hash"]) if row else None
        return AuditPage(lines[: wanted.size], lines[wanted.size - 1].number if more else None, head)

    async def export(self, chain: int, wanted: AuditFilter) -> AsyncIterator[bytes]:
        """CSV, newest first. That it was exported is an entry, which comes first."""
        given = {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name))}
        exported = AuditEntry(
            action="audit_log.exported", organiser_id=chain, subject=("audit_log", chain), after=given
        )
        await record(self._postgres, exported)
        head = await self._postgres.fetchrow(Q.head, chain)
        return self._sheet(chain, wanted, head["number"] + 1 if head else 0)

    async def heads(self) -> dict[int, AuditHead]:
        """The last entry of every chain."""
        return {
            row["chain"]: AuditHead(row["number"], row["hash"]) for row in await self._postgres.fetch(Q.heads)
        }

    async def has_entry(self, chain: int, head: AuditHead) -> bool:
        return bool(await self._postgres.fetchval(Q.has_entry, chain, head.number, head.hash))

    async def _sheet(self, chain: int, wanted: AuditFilter, before: int) -> AsyncIterator[bytes]:
        yield to_csv([CSV_COLUMNS])
        while lines := await self._lines(chain, wanted, before, PAGE_MAX):
            yield to_csv(csv_row(line) for line in lines)
            before = lines[-1].number

    async def _lines(self, chain: int, wanted: AuditFilter, before: int, limit: int) -> list[AuditLine]:
        filters = wanted.action, wanted.actor, wanted.subject, wanted.id, wanted.since, wanted.until
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(Q.entries, chain, *filters, before, limit)
        return [build_line(row) for row in rows]
