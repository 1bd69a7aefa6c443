"""Reads the audit log. Entries are written by web/audit_log.py, in the transactions of the changes."""

from collections.abc import AsyncIterator

from holdfast.audit_log.entry import PAGE_MAX, AuditFilter, AuditHead, AuditLine, build_line
from holdfast.engines.postgres import Postgres, Queries
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.audit_log")


class AuditLog:
    def __init__(self, postgres: Postgres, pod: str = "") -> None:
        """`pod`: the name of this database among several."""
        self._postgres = postgres
        self._pod = pod

    async def lines(self, chain: int, wanted: AuditFilter, before: int, limit: int) -> list[AuditLine]:
        """Newest first, before a number."""
        filters = wanted.action, wanted.actor, wanted.subject, wanted.id, wanted.since, wanted.until
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(Q.entries, chain, *filters, before, limit)
        return [build_line(row, self._pod) for row in rows]

    async def lines_until(
        self, head: AuditHead | None, chain: int, wanted: AuditFilter
    ) -> AsyncIterator[AuditLine]:
        """Newest first, read page by page; later ones than `head` are left out."""
        before = head.number + 1 if head else 0
        while lines := await self.lines(chain, wanted, before, PAGE_MAX):
            for line in lines:
                yield line
            before = lines[-1].number

    async def head(self, chain: int) -> AuditHead | None:
        """The last entry."""
        row = await self._postgres.fetchrow(Q.head, chain)
        return AuditHead(row["number"], row["hash"]) if row else None

    async def heads(self) -> dict[int, AuditHead]:
        """The last entry of every chain."""
        return {
            row["chain"]: AuditHead(row["number"], row["hash"]) for row in await self._postgres.fetch(Q.heads)
        }

    async def has_entry(self, chain: int, head: AuditHead) -> bool:
        return bool(await self._postgres.fetchval(Q.has_entry, chain, head.number, head.hash))

    async def note_export(self, chain: int, wanted: AuditFilter) -> None:
        """That entries are exported is an entry."""
        given = {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name))}
        exported = AuditEntry(
            action="audit_log.exported", organiser_id=chain, subject=("audit_log", chain), after=given
        )
        await record(self._postgres, exported)
