"""Tables of a show as Parquet files. pyarrow is imported here alone: pip install 'holdfast[archive]'."""

import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.engines.errors import OperatorError

ROWS_AT_ONCE = 5_000
READ_BYTES = 1 << 20
DRAFT = ".draft"
TYPES = {
    "smallint": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "real": pa.float32(),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "integer[]": pa.list_(pa.int32()),
    "bigint[]": pa.list_(pa.int64()),
    "text[]": pa.list_(pa.string()),
}
encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # PostgreSQL's; that of an enum is text


async def write_table(
    file: Path, columns: Sequence[Column], rows: AsyncIterator[Sequence[tuple[Any, ...]]]
) -> tuple[int, str]:
    """How many, and the sum of their content."""
    schema = pa.schema([(column.name, TYPES[column.type]) for column in columns])
    summed, count = hashlib.sha256(), 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        async for some in rows:
            for row in some:
                summed.update(encoder.encode(row))
            count += len(some)
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(zip(*some, strict=True), schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    _sync(file)
    return count, summed.hexdigest()


def read_rows(file: Path) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """In portions: names of the columns, and rows."""
    try:
        with pq.ParquetFile(file) as opened:
            names = opened.schema_arrow.names
            for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE):
                values = [column.to_pylist() for column in batch.columns]
                yield names, list(zip(*values, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise OperatorError(f"{file} cannot be read: {error}") from None


def find_folders(folder: Path, name: str) -> list[Path]:
    """Those of shows that have a file with this name, without drafts."""
    if not folder.is_dir():
        raise OperatorError(f"the folder {folder} does not exist")
    found = [one.parent for one in folder.glob(f"*/show-*/{name}")]
    return sorted(one for one in found if one.suffix != DRAFT)


def sum_content(file: Path) -> tuple[int, str]:
    summed, count = hashlib.sha256(), 0
    for _, rows in read_rows(file):
        for row in rows:
            summed.update(encoder.encode(row))
        count += len(rows)
    return count, summed.hexdigest()


def sum_file(file: Path) -> str:
    summed = hashlib.sha256()
    with file.open("rb") as opened:
        while data := opened.read(READ_BYTES):
            summed.update(data)
    return summed.hexdigest()


def write_whole(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    _sync(file)


def _sync(path: Path) -> None:
    """A file or a folder: it is on the disk before anything is deleted."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def publish(draft: Path, final: Path) -> None:
    """A folder with this name is whole."""
    _sync(draft)
    draft.rename(final)
    for folder in (final.parent, final.parent.parent):  # that of the month may be new, too
        _sync(folder)
