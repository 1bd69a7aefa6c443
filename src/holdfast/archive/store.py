"""Moves past shows from the ledger to files.

    past show ─► files in a draft folder ─► read back, compared ─► folder gets its name
                                                                       │
              rows deleted, one transaction ◄── sale marked as filed ◄─┘

Killed anywhere, the next run goes on: a draft is written again; a folder whose show is not marked is compared
with the ledger again; a marked show whose rows are still there is deleted. Rows are deleted only if they are
those of the files: PostgreSQL sums them up in the transaction that deletes them.

With pods, the sale is marked at home, where organisers could open it again, and the pod that has the rows
deletes them when the mark has arrived. Without pods, both are one transaction.
"""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from holdfast.archive import files
from holdfast.archive.contents import (
    EMPTIED,
    FORM,
    LEFT_OUT,
    MANIFEST,
    SALE,
    TABLES,
    ArchivedTable,
    Manifest,
    place_of,
)
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries
from holdfast.pods import HOME, wait_until

Q = Queries("holdfast.archive")
ARRIVED_WITHIN_S = 30.0
DELETED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class Archived:
    show_id: int
    folder: str
    rows: int


class Archiver:
    """On connections of its own: statements take minutes, and a session has settings for them."""

    def __init__(self, databases: dict[str, asyncpg.Connection], folder: Path, program: str) -> None:
        self._databases = databases  # home has no name
        self._home = databases[HOME]
        self._folder = folder
        self._program = program

    async def run(
        self, after_d: int, shows_max: int, *, deletes: bool, note: Callable[[Archived], None]
    ) -> None:
        """The oldest first. One run at a time: two would write the same drafts."""
        if not await self._home.fetchval(Q.run_alone):  # until the connection is closed
            raise OperatorError("another `holdfast archive` is running")
        for pod, connection in self._databases.items():
            if deletes:
                await self._go_on(pod, connection)
            for row in await connection.fetch(Q.past_shows, after_d, shows_max):
                manifest = await self._write(pod, connection, row["show_id"], row["ends_at"])
                if deletes:
                    await self._delete(pod, connection, manifest)
                note(Archived(manifest.show_id, place_of(row["show_id"], row["ends_at"]), manifest.rows))

    async def _go_on(self, pod: str, connection: asyncpg.Connection) -> None:
        """Shows that an earlier run has marked and not deleted."""
        for row in await connection.fetch(Q.filed_shows):
            if row["is_here"] and row["has_rows"]:
                place = self._folder / place_of(row["show_id"], row["ends_at"])
                manifest = load_manifest(place, row["filed_as"])
                verify(place, manifest)  # the last run did, perhaps months ago
                await self._delete(pod, connection, manifest)

    async def _write(
        self, pod: str, connection: asyncpg.Connection, show_id: int, ends_at: datetime
    ) -> Manifest:
        final = self._folder / place_of(show_id, ends_at)
        if final.exists():
            found = load_manifest(final)
            if await self._is_unchanged(connection, found):
                verify(final, found)
                return found
            shutil.rmtree(final)  # the show has changed since: nothing was deleted
        draft = final.with_name(final.name + files.DRAFT)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        tables = {}
        async with _snapshot(connection):
            for table in (SALE, *TABLES):
                tables[table] = await self._write_table(connection, table, show_id, draft)
        manifest = Manifest(
            form=FORM,
            program=self._program,
            show_id=show_id,
            ends_at=ends_at,
            pod=pod,
            written_at=datetime.now(UTC),
            tables=tables,
        )
        files.write_whole(draft / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        verify(draft, manifest)
        files.publish(draft, final)
        return manifest

    async def _write_table(
        self, connection: asyncpg.Connection, table: str, show_id: int, draft: Path
    ) -> ArchivedTable:
        columns = [
            files.Column(row["name"], "text" if row["is_enum"] else row["type"])
            for row in await connection.fetch(Q.columns, table)
            if row["name"] not in LEFT_OUT.get(table, ())
        ]
        names = ", ".join(_select(table, column.name) for column in columns)
        query = Q.rows.replace("{columns}", names).replace("{table}", table)

        async def rows() -> AsyncIterator[list[tuple[Any, ...]]]:
            portion: list[tuple[Any, ...]] = []
            async for row in connection.cursor(query, show_id, prefetch=files.ROWS_AT_ONCE):
                portion.append(tuple(row))
                if len(portion) == files.ROWS_AT_ONCE:
                    yield portion
                    portion = []
            if portion:
                yield portion

        file = draft / f"{table}.parquet"
        count, content = await files.write_table(file, columns, rows())
        rows_sum = await _sum_rows(connection, table, show_id)
        return ArchivedTable(count, files.sum_file(file), content, rows_sum)

    async def _is_unchanged(self, connection: asyncpg.Connection, manifest: Manifest) -> bool:
        async with _snapshot(connection):
            return await _is_as_written(connection, manifest)

    async def _delete(self, pod: str, connection: asyncpg.Connection, manifest: Manifest) -> None:
        """Files are verified before."""
        show_id, sha256 = manifest.show_id, sum_manifest(self._place(manifest))
        if pod != HOME:
            await self._home.execute(Q.mark, show_id, sha256)

            async def has_arrived() -> bool:
                return bool(await connection.fetchval(Q.filed_as, show_id) == sha256)

            try:
                await wait_until(has_arrived, ARRIVED_WITHIN_S)
            except TimeoutError:
                raise OperatorError(
                    f"{pod} has not received the mark of show {show_id}: see `holdfast pod list`, then run "
                    "this again"
                ) from None
        try:
            async with connection.transaction(isolation="repeatable_read"):
                await connection.execute(Q.write_alike)
                if not await _is_as_written(connection, manifest):
                    raise _ChangedError
                if pod == HOME:
                    await connection.execute(Q.mark, show_id, sha256)
                for table in TABLES:
                    delete = Q.delete_rows.replace("{table}", table)
                    await connection.execute(delete, show_id, timeout=DELETED_WITHIN_S)
        except (_ChangedError, asyncpg.SerializationError):
            if pod != HOME:
                await self._home.execute(Q.unmark, show_id)
            raise OperatorError(
                f"show {show_id} has changed since its files were written, and stays in the ledger: run this "
                "again"
            ) from None

    def _place(self, manifest: Manifest) -> Path:
        return self._folder / place_of(manifest.show_id, manifest.ends_at)


class _ChangedError(Exception):
    pass


def _select(table: str, column: str) -> str:
    if (table, column) in EMPTIED:
        return f"CASE WHEN \"{column}\" IS NOT NULL THEN '' END"
    return f'"{column}"'


@asynccontextmanager
async def _snapshot(connection: asyncpg.Connection) -> AsyncIterator[None]:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(Q.write_alike)
        yield


async def _sum_rows(connection: asyncpg.Connection, table: str, show_id: int) -> str:
    return str(await connection.fetchval(Q.sum_rows.replace("{table}", table), show_id))


async def _is_as_written(connection: asyncpg.Connection, manifest: Manifest) -> bool:
    for name in TABLES:
        if await _sum_rows(connection, name, manifest.show_id) != manifest.tables[name].rows_sum:
            return False
    return True


def verify(folder: Path, manifest: Manifest) -> None:
    """Reads everything back; OperatorError if it is not what was written."""
    for name, table in manifest.tables.items():
        file = folder / f"{name}.parquet"
        if not file.exists():
            raise OperatorError(f"{file} is missing")
        if files.sum_file(file) != table.sha256 or files.sum_content(file) != (table.rows, table.content):
            raise OperatorError(f"{file} is not what was written: nothing was deleted")


def sum_manifest(folder: Path) -> str:
    return files.sum_file(folder / MANIFEST)


def load_manifest(folder: Path, sha256: str | None = None) -> Manifest:
    """OperatorError if it is not the one with this sum."""
    try:
        if sha256 is not None and sum_manifest(folder) != sha256:
            raise OperatorError(f"{folder / MANIFEST} is not the one that the ledger knows")
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise OperatorError(f"{folder / MANIFEST} cannot be read: {error}") from None
