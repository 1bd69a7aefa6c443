"""Records every statement of the program, with the types it takes and returns: run once per release.

    .venv/bin/python -m tools.write_statements 0_2_0

Processes of that release will send these statements while the next one is rolled out beside them, to a schema
that the next one has migrated. tests/stores/test_earlier_statements.py prepares them on today's schema: a
function, a column or a type that they need may not go or change. A file is never written again; it is deleted
when its release is not supported any more (FUNCTIONS_WORK_WITH in engines/migrate.py).
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import asyncpg

from holdfast.engines.embedded import engines
from holdfast.engines.migrate import migrate
from holdfast.engines.named_queries import NAME

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"
RECORDED = ROOT / "tests" / "stores" / "upgrades"
NOT_SENT = re.compile(
    r"functions(_\w+)?\.sql|schema\.sql"
)  # applied by `holdfast migrate`; the sandbox's own
ENTRY = re.compile(
    r"^-- name: (?P<name>\S+)\n-- takes: (?P<takes>[^\n]*)\n-- returns: (?P<returns>[^\n]*)\n"
    r"(?P<sql>.*?)(?=^-- name: |\Z)",
    re.MULTILINE | re.DOTALL,
)
COMMENT_LINE = re.compile(r"^\s*--.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    name: str  # "bookings/queries.open_holds"
    sql: str
    takes: tuple[str, ...] = ()  # types of its parameters
    returns: tuple[str, ...] = ()  # "number bigint"


def read_package(package: Path = PACKAGE) -> Iterator[Statement]:
    """Every named query of the program."""
    for path in sorted(package.rglob("*.sql")):
        if path.parent.name == "migrations" or NOT_SENT.fullmatch(path.name):
            continue
        _, *parts = NAME.split(path.read_text())
        for name, _why, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            where = path.relative_to(package).with_suffix("").as_posix()
            yield Statement(f"{where}.{name}", COMMENT_LINE.sub("", body).strip().rstrip(";"))


def read_recorded(text: str) -> Iterator[Statement]:
    for found in ENTRY.finditer(text):
        takes, returns = (tuple(filter(None, found[part].split(", "))) for part in ("takes", "returns"))
        yield Statement(found["name"], found["sql"].strip(), takes, returns)


def written(release: str, statements: Iterable[Statement]) -> str:
    entries = (
        f"-- name: {one.name}\n-- takes: {', '.join(one.takes)}\n"
        f"-- returns: {', '.join(one.returns)}\n{one.sql}\n"
        for one in statements
    )
    return f"-- release: {release}. Written by tools/write_statements.py; do not edit.\n\n" + "\n".join(
        entries
    )


async def describe(
    connection: asyncpg.Connection, statements: Iterable[Statement]
) -> Mapping[str, Statement | str]:
    """Each statement with its types on this schema; or why PostgreSQL refuses it."""
    found: dict[str, Statement | str] = {}
    for one in statements:
        try:
            async with connection.transaction():  # a refusal ends no transaction of the caller's
                prepared = await connection.prepare(one.sql)
        except asyncpg.PostgresError as refused:
            found[one.name] = str(refused)
        else:
            takes = tuple(_type(kind) for kind in prepared.get_parameters())
            returns = tuple(f"{column.name} {_type(column.type)}" for column in prepared.get_attributes())
            found[one.name] = Statement(one.name, one.sql, takes, returns)
    return found


def _type(kind: asyncpg.Type) -> str:
    return kind.name if kind.schema == "pg_catalog" else f"{kind.schema}.{kind.name}"


async def record() -> list[Statement]:
    """Of a new database. What cannot be prepared by itself, such as two statements at once, is left out."""
    with tempfile.TemporaryDirectory() as folder:
        async with engines(folder) as running:
            connection = await asyncpg.connect(running.database_url)
            await migrate(connection)
            found = await describe(connection, read_package())
            await connection.close()
    for name, refused in found.items():
        if isinstance(refused, str):
            print(f"left out {name}: {refused}")
    return [one for one in found.values() if isinstance(one, Statement)]


def main() -> int:
    file = RECORDED / f"{sys.argv[1]}.statements"
    if file.exists():
        print(f"{file.name} exists: it is never written again")
        return 1
    statements = asyncio.run(record())
    file.write_text(written(version("holdfast"), statements))
    print(f"wrote {len(statements)} statements to {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
