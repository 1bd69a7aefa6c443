"""Audits the files of past shows: they are whole, the ledger knows them, and the invariants hold in them.

The files of one show are loaded into temporary tables that hide those of the ledger, and the statements of
the audit run on them: there is one text of every invariant.
"""

from pathlib import Path

import asyncpg

from holdfast.archive import files
from holdfast.archive.contents import MANIFEST, Manifest, place_of
from holdfast.archive.store import load_manifest, verify
from holdfast.audit import ARCHIVED_CHECKS, Report, Violation, find_violations
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries

Q = Queries("holdfast.archive")
WHOLE, KNOWN = "archive_files_are_whole", "archive_as_in_the_ledger"


async def audit_archive(databases: dict[str, asyncpg.Connection], folder: Path) -> Report:
    """`databases`: home has no name. Raises OperatorError if the folder does not exist."""
    report = Report()
    for check in (WHOLE, KNOWN, *ARCHIVED_CHECKS):
        report.note(check, [])
    for place in files.find_folders(folder, MANIFEST):
        try:
            manifest = load_manifest(place)
            verify(place, manifest)
        except OperatorError as trouble:
            report.note(WHOLE, [Violation(WHOLE, None, str(trouble))])
        else:
            await _audit_show(databases[""], place, manifest, report)
    await _compare_with_ledger(databases, folder, report)
    return report


async def _audit_show(
    connection: asyncpg.Connection, place: Path, manifest: Manifest, report: Report
) -> None:
    async with connection.transaction():
        for table in manifest.tables:
            await connection.execute(Q.load.replace("{table}", table))
            for names, rows in files.read_rows(place / f"{table}.parquet"):
                await connection.copy_records_to_table(
                    table, records=rows, columns=names, schema_name="pg_temp"
                )
        for check in ARCHIVED_CHECKS:
            report.note(check, await find_violations(connection, check))


async def _compare_with_ledger(
    databases: dict[str, asyncpg.Connection], folder: Path, report: Report
) -> None:
    """Every show that was filed has its files, and no rows in the ledger."""
    for pod, connection in databases.items():
        for row in await connection.fetch(Q.filed_shows):
            show_id, found = row["show_id"], []
            if row["has_rows"]:
                found.append(f"{pod or 'home'} still has rows: run `holdfast archive` again")
            if not pod:
                try:
                    load_manifest(folder / place_of(show_id, row["ends_at"]), row["filed_as"])
                except OperatorError as trouble:
                    found.append(str(trouble))
            report.note(KNOWN, [Violation(KNOWN, show_id, what) for what in found])
