"""The audit log of a house with pods: each database has a chain of its changes, and readers get one list."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from holdfast.audit_log.entry import (
    CSV_COLUMNS,
    PAGE_MAX,
    AuditFilter,
    AuditHead,
    AuditLine,
    AuditPage,
    AuditQuery,
    csv_row,
)
from holdfast.web.csv_export import to_csv
from holdfast.web.every_pod import ask_every_pod, merge_streams, require_every_pod
from holdfast.web.pod_pages import LAST, merge_page, parse_positions

if TYPE_CHECKING:
    from holdfast.app import App


async def load_audit_page(app: "App", chain: int, wanted: AuditQuery) -> AuditPage:
    """Newest first, of every database that can be reached."""
    positions = parse_positions(wanted.before)

    async def load(each: "App") -> tuple[list[AuditLine], AuditHead | None]:
        before = positions.get(each.pod, LAST)
        lines = await each.audit_log.lines(chain, wanted, before, wanted.size + 1)
        return lines, await each.audit_log.head(chain)

    answers = await ask_every_pod(app, load)
    entries, following = merge_page(
        {each.pod: lines for each, (lines, _) in answers.found},
        wanted.size,
        wanted.before,
        time_of=lambda one: one.at,
        number_of=lambda one: one.number,
    )
    heads = {each.pod: head for each, (_, head) in answers.found if head is not None}
    head = heads.pop("", None)
    return AuditPage(entries, following, head, heads, answers.is_complete, answers.away)


async def export_audit_log(app: "App", chain: int, wanted: AuditFilter) -> AsyncIterator[bytes]:
    """CSV, newest first; its first entry is this export. Refused while a database cannot be reached: a sheet
    has everything."""
    await require_every_pod(app)
    await app.audit_log.note_export(chain, wanted)
    streams = {
        name: each.audit_log.lines_until(await each.audit_log.head(chain), chain, wanted)
        for name, each in app.router.by_name.items()
    }
    return _write_sheet(streams)


async def _write_sheet(streams: Mapping[str, AsyncIterator[AuditLine]]) -> AsyncIterator[bytes]:
    yield to_csv([CSV_COLUMNS])
    rows = []
    async for _, line in merge_streams(streams, lambda one: one.at, reverse=True):
        rows.append(csv_row(line))
        if len(rows) == PAGE_MAX:
            yield to_csv(rows)
            rows = []
    yield to_csv(rows)
