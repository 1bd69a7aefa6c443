"""Writes and reads a backup: the ledger by COPY, the file as a zip.

COPY and not pg_dump: it is there with every driver, and a backup of an older server goes into a newer one.

The last part, contents.json, lists what a backup contains:

FILE (zip) ─┬─ ledger/<table>      rows as COPY writes them, in the order in which they can go back
            ├─ pods/<pod>/ledger/… the same of a pod: house.py
            ├─ folder/<path>       files of the data folder: the sandbox's database and secret
            ├─ settings.env        the HOLDFAST_… settings, without the addresses of engines
            └─ contents.json       version, steps of the schema, sums, rows, sequences
"""

import hashlib
import os
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import IO

import asyncpg
import msgspec

from holdfast.accounts import replace_signing_keys
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import Step, migrate, plan, steps
from holdfast.engines.postgres import Queries

CONTENTS = "contents.json"
LEDGER = "ledger/"
PODS = "pods/"
FOLDER = "folder/"
SETTINGS = "settings.env"
FORM = 1  # version of the file format; an unknown one is refused
# Numbers of bookings and tickets are never issued twice (new_number in bookings/functions.sql). Those of
# accounts, shows and facts come from sequences: tokens and caches may still have the ones that were lost.
NUMBERS_SKIPPED = 1_000_000


class SchemaStep(msgspec.Struct, frozen=True):
    number: int
    name: str
    checksum: str


class BackupPart(msgspec.Struct, frozen=True):
    name: str
    sha256: str
    size: int
    rows: int = 0  # of a table
    columns: tuple[str, ...] = ()

    @property
    def pod(self) -> str:
        return self.name.split("/")[1] if self.name.startswith(PODS) else ""

    @property
    def table(self) -> str:
        beneath = ledger_of(self.pod)
        return self.name.removeprefix(beneath) if self.name.startswith(beneath) else ""


def ledger_of(pod: str) -> str:
    """The folder with the tables of a pod; of the home database, without a name."""
    return f"{PODS}{pod}/{LEDGER}" if pod else LEDGER


class BackupContents(msgspec.Struct, frozen=True, kw_only=True):
    form: int
    program: str  # its version
    made_at: str
    steps: tuple[SchemaStep, ...]
    parts: tuple[BackupPart, ...]
    sequences: dict[str, int]
    pods: dict[str, dict[str, int]] = {}  # sequences of each pod

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def tables(self) -> tuple[BackupPart, ...]:
        return tuple(part for part in self.parts if part.table)

    def tables_of(self, pod: str) -> tuple[BackupPart, ...]:
        return tuple(part for part in self.tables if part.pod == pod)


Q = Queries("holdfast.backup")
READ_BYTES = 1 << 20
CONTENTS_BYTES_MAX = 16_000_000

Progress = Callable[[str, int, int], None]  # what, done, of how many


@dataclass(frozen=True, slots=True)
class ExtraFile:
    """What belongs to a box office and is not in its ledger."""

    name: str
    data: bytes


class PartWriter:
    """One part, summed while it is written."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        info = zipfile.ZipInfo(name, date_time=datetime.now(UTC).timetuple()[:6])
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
        self._file = archive.open(info, "w", force_zip64=True)
        self._name, self._sum, self._size, self._rows = name, hashlib.sha256(), 0, 0

    async def write_rows(self, data: bytes) -> None:
        """COPY ends a row with a line feed, and writes one within a row as two characters."""
        self._rows += data.count(b"\n")
        self.write(data)

    def write(self, data: bytes) -> None:
        self._sum.update(data)
        self._size += len(data)
        self._file.write(data)

    def close(self, columns: Iterable[str] = ()) -> BackupPart:
        self._file.close()
        return BackupPart(self._name, self._sum.hexdigest(), self._size, self._rows, tuple(columns))


async def create(
    connection: asyncpg.Connection,
    file: Path,
    program: str,
    extras: Callable[[datetime], Iterable[ExtraFile]],
    progress: Progress,
    wanted: Sequence[Step] | None = None,
) -> BackupContents:
    """Every table as of one instant, while people go on buying. The file is there whole, or not at all.

    `extras` gets that instant, so that it can return files as of then.
    """
    wanted = steps() if wanted is None else wanted
    if pending := await plan(connection, wanted):
        raise OperatorError(f"the schema is not up to date ({pending[0].name}): run `holdfast migrate` first")
    with open_draft(file) as draft, zipfile.ZipFile(draft, "w", compresslevel=6) as archive:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            instant = await connection.fetchval(Q.instant)  # the first question: what it sees, all others see
            parts = await write_tables(connection, archive, progress)
        parts += write_extras(archive, extras(instant))
        contents = build_contents(program, parts, await load_sequences(connection), wanted)
        write_contents(archive, contents)
    return contents


def write_extras(archive: zipfile.ZipFile, extras: Iterable[ExtraFile]) -> list[BackupPart]:
    parts = []
    for extra in extras:
        part = PartWriter(archive, extra.name)
        part.write(extra.data)
        parts.append(part.close())
    return parts


async def load_sequences(connection: asyncpg.Connection) -> dict[str, int]:
    return {row["name"]: row["number"] for row in await connection.fetch(Q.sequences)}


def build_contents(
    program: str, parts: Iterable[BackupPart], sequences: dict[str, int], taken: Sequence[Step]
) -> BackupContents:
    return BackupContents(
        form=FORM,
        program=program,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        steps=tuple(SchemaStep(step.number, step.name, step.checksum) for step in taken),
        parts=tuple(parts),
        sequences=sequences,
    )


def write_contents(archive: zipfile.ZipFile, contents: BackupContents) -> None:
    archive.writestr(CONTENTS, msgspec.json.format(msgspec.json.encode(contents)))


def verify(file: Path, progress: Progress) -> BackupContents:
    """Read all of it and compare every sum; Trouble when it is not what was written."""
    with _opened(file) as archive:
        contents = _contents_of(archive, file)
        listed = {part.name for part in contents.parts} | {CONTENTS}
        if set(archive.namelist()) != listed:
            raise OperatorError(f"{file} is not a whole backup: its parts are not those of its contents")
        for done, part in enumerate(contents.parts):
            progress("parts", done, len(contents.parts))
            summed, size, rows = hashlib.sha256(), 0, 0
            for data in _read(archive, part.name, file):
                summed.update(data)
                size, rows = size + len(data), rows + data.count(b"\n")
            if summed.hexdigest() != part.sha256 or size != part.size or (part.table and rows != part.rows):
                raise OperatorError(
                    f"{file} is damaged: {part.name} is not what was written; use another backup"
                )
    return contents


async def restore(connection: asyncpg.Connection, file: Path, progress: Progress) -> BackupContents:
    """Into a database without a table; then on to our own schema. All rows or none."""
    contents = verify(file, progress)
    await refuse_used(connection)
    await restore_tables(connection, file, contents, progress)
    return contents


async def refuse_used(connection: asyncpg.Connection) -> None:
    if await connection.fetchval(Q.is_used):
        raise OperatorError("the database is not empty: a backup is restored into an empty one only")


async def restore_tables(
    connection: asyncpg.Connection, file: Path, contents: BackupContents, progress: Progress, pod: str = ""
) -> None:
    """Those of the home database, or of a pod."""
    tables = contents.tables_of(pod)
    await migrate(connection, _known_steps(contents, file))
    with _opened(file) as archive:
        async with connection.transaction():
            await connection.execute(Q.make_room)
            for done, part in enumerate(tables):
                progress("tables", done, len(tables))
                await _put_back(connection, archive, part, file)
    for name, number in (contents.pods[pod] if pod else contents.sequences).items():
        await connection.fetchval(Q.set_sequence, name, max(1, number))
    await finish_restore(connection)


async def finish_restore(connection: asyncpg.Connection) -> None:
    """Keeps what was lost apart from what comes, whichever way the ledger was put back. Safe to repeat.

    What is outside of the ledger may have seen lost rows: seat maps in Redis, facts on the bus, access tokens
    in the hands of clients, the mark on other machines.
    """
    await migrate(connection)
    async with connection.transaction():
        await connection.fetch(Q.skip_numbers, NUMBERS_SKIPPED)
        await connection.execute(Q.distrust_caches)
        await replace_signing_keys(connection)
        await connection.execute(Q.raise_beat)
        await connection.execute(Q.note_restore)
    await connection.execute(Q.look_at_sizes)


def extra_parts(file: Path, beneath: str) -> Iterator[ExtraFile]:
    """What is in it besides the ledger; the names without `beneath`. The file has been verified."""
    with _opened(file) as archive:
        for part in _contents_of(archive, file).parts:
            if part.name.startswith(beneath) and not part.table:
                yield ExtraFile(part.name.removeprefix(beneath), b"".join(_read(archive, part.name, file)))


async def write_tables(
    connection: asyncpg.Connection, archive: zipfile.ZipFile, progress: Progress, pod: str = ""
) -> list[BackupPart]:
    columns = {row["name"]: row["columns"] for row in await connection.fetch(Q.tables)}
    order: TopologicalSorter[str] = TopologicalSorter({name: set() for name in columns})
    for row in await connection.fetch(Q.references):
        order.add(row["name"], row["needs"])
    parts = []
    for done, name in enumerate(order.static_order()):
        progress("tables", done, len(columns))
        part = PartWriter(archive, ledger_of(pod) + name)
        await connection.copy_from_table(name, output=part.write_rows, columns=columns[name])
        parts.append(part.close(columns[name]))
    return parts


async def _put_back(
    connection: asyncpg.Connection, archive: zipfile.ZipFile, part: BackupPart, file: Path
) -> None:
    async def rows() -> AsyncIterator[bytes]:
        for data in _read(archive, part.name, file):
            yield data

    done = await connection.copy_to_table(part.table, source=rows(), columns=list(part.columns))
    if done != f"COPY {part.rows}":
        raise OperatorError(f"{part.table}: {part.rows} rows were to go back, PostgreSQL says {done}")


def _known_steps(contents: BackupContents, file: Path) -> list[Step]:
    """Our own steps up to those of the backup; Trouble when they are not the same."""
    ours = {step.number: step for step in steps()}
    for taken in contents.steps:
        if taken.number not in ours:
            raise OperatorError(f"{file} is of a newer program ({contents.program}): upgrade this one first")
        if ours[taken.number].checksum != taken.checksum:
            raise OperatorError(
                f"{file} was made with another step {taken.name} than ours: use the program it is of"
            )
    return [ours[taken.number] for taken in contents.steps]


def _contents_of(archive: zipfile.ZipFile, file: Path) -> BackupContents:
    try:
        if archive.getinfo(CONTENTS).file_size > CONTENTS_BYTES_MAX:
            raise KeyError(CONTENTS)
        contents = msgspec.json.decode(archive.read(CONTENTS), type=BackupContents)
    except (KeyError, msgspec.MsgspecError, zipfile.BadZipFile):
        raise OperatorError(f"{file} is not a Holdfast backup, or is incomplete") from None
    if contents.form != FORM:
        raise OperatorError(
            f"{file} has form {contents.form}, and we know {FORM}: use the program it was made with"
        )
    return contents


def _read(archive: zipfile.ZipFile, name: str, file: Path) -> Iterator[bytes]:
    try:
        with archive.open(name) as part:
            while data := part.read(READ_BYTES):
                yield data
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise OperatorError(f"{file} is damaged at {name}: {error}; use another backup") from None


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(file)
    except OSError as error:
        raise OperatorError(f"cannot read {file}: {error.strerror}") from None
    except zipfile.BadZipFile:
        raise OperatorError(f"{file} is not a Holdfast backup, or is incomplete") from None
    with archive:
        yield archive


@contextmanager
def open_draft(file: Path) -> Iterator[IO[bytes]]:
    """Beside it, for its owner alone; renamed when everything is on the disk. Nothing is overwritten."""
    if file.exists():
        raise OperatorError(f"{file} exists already: choose another name")
    draft = file.with_name(f"{file.name}.draft")
    try:
        made = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise OperatorError(f"cannot write {draft}: {error.strerror}") from None
    try:
        with os.fdopen(made, "w+b") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        draft.rename(file)
    finally:
        draft.unlink(missing_ok=True)
