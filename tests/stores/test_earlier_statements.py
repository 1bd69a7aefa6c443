"""Programs of an earlier release run on today's schema: every statement they send still works (R36).

While a release is rolled out, and after the way back, processes of the one before it send the statements of
their own files. tools/write_statements.py recorded them, with their types, when that release was made.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from holdfast.config import Config
from holdfast.engines.migrate import FUNCTIONS_WORK_WITH, migrate
from holdfast.engines.startup_checks import connect
from tests.support.second_ledger import a_database
from tools.write_statements import RECORDED, Statement, describe, read_recorded, written

FILES = sorted(RECORDED.glob("*.statements"))
# Of programs of the first schema: they read rows of views by name, so these may have more columns now.
READ_BY_NAME = {
    *(
        "catalogue/listings.shows_by_id",
        "catalogue/queries.shows_playing",
        "catalogue/queries.shows_of_event",
    ),
    *("catalogue/queries.shows_of_venue", "catalogue/queries.show_detail"),
    *(f"refunds/queries.{name}" for name in ("settle", "taken", "refund", "refunds_of", "refunds")),
}


def misunderstood(
    before: list[Statement], now: Mapping[str, Statement | str], growing: Set[str] = frozenset()
) -> Iterator[str]:
    """Parameters and results must be the same. A statement that reads all columns of a table may get more."""
    for one in before:
        found = now[one.name]
        if isinstance(found, str):
            yield f"{one.name}: {found}"
        elif found.takes != one.takes:
            yield f"{one.name} took {one.takes} and takes {found.takes}"
        elif set(one.returns) - set(found.returns) or (
            found.returns != one.returns and one.name not in growing
        ):
            yield f"{one.name} returned {one.returns} and returns {found.returns}"


async def find_growing(ledger: asyncpg.Connection, statements: list[Statement]) -> set[str]:
    """Statements that return one more column when every table has one more."""
    now = await describe(ledger, statements)
    undone = ledger.transaction()
    await undone.start()
    for (table,) in await ledger.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        await ledger.execute(f'ALTER TABLE "{table}" ADD COLUMN one_more text')
    later = await describe(ledger, statements)
    await undone.rollback()
    return {one.name for one in statements if later[one.name] != now[one.name]}


def read_file(file: Path) -> list[Statement]:
    return list(read_recorded(file.read_text()))


@pytest.fixture
async def ledger(config: Config) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(config.database_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def upgraded_ledger(config: Config, file: Path) -> AsyncIterator[asyncpg.Connection]:
    """A database of the state beside the file, brought up to date: its views have their old columns. Without
    such a state, a new database."""
    state = file.with_suffix(".sql")
    if not state.exists():
        connection = await connect(config.database_url)
        yield connection
        await connection.close()
        return
    async with a_database(config.database_url) as url:
        loader = await connect(url)  # a connection of its own: a dump empties its search_path
        await loader.execute(state.read_text())
        await loader.close()
        connection = await connect(url)
        await migrate(connection)
        yield connection
        await connection.close()


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
async def test_todays_schema_understands_every_statement_of_an_earlier_release(
    file: Path, config: Config
) -> None:
    before = await asyncio.to_thread(read_file, file)
    assert len(before) > 300

    async with upgraded_ledger(config, file) as ledger:
        growing = await find_growing(ledger, before)
        if file.with_suffix(".sql").exists():
            growing |= READ_BY_NAME
        found = list(misunderstood(before, await describe(ledger, before), growing))

    assert found == [], (
        "keep the old signature for a release beside the new one, or raise FUNCTIONS_WORK_WITH, delete "
        f"{file.name} and say in the changelog that this upgrade needs a stop"
    )


async def test_a_function_and_a_column_that_went_or_changed_are_found(ledger: asyncpg.Connection) -> None:
    await ledger.execute(
        "CREATE TEMPORARY TABLE gone (a int, b int); CREATE TEMPORARY TABLE stays (a int);"
        "CREATE TEMPORARY VIEW seen AS SELECT a FROM stays;"
        "CREATE FUNCTION pg_temp.twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'"
    )
    calls = {"f": "SELECT pg_temp.twice($1) AS n", "c": "SELECT a, b FROM gone", "r": "SELECT * FROM gone"}
    calls |= {"v": "SELECT * FROM seen", "g": "SELECT * FROM stays"}
    before = list((await describe(ledger, [Statement(*call) for call in calls.items()])).values())
    recorded = list(read_recorded(written("0.1.0", [one for one in before if isinstance(one, Statement)])))
    assert recorded == before

    await ledger.execute(
        "ALTER TABLE gone DROP COLUMN b, ADD COLUMN c int; DROP FUNCTION pg_temp.twice(int);"
        "ALTER TABLE stays ADD COLUMN b int;"
        "CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT a, b FROM stays;"
        "CREATE FUNCTION pg_temp.twice(n bigint) RETURNS int LANGUAGE sql AS 'SELECT 2'"
    )

    found = misunderstood(recorded, await describe(ledger, recorded), growing={"r", "g"})
    assert [line.split()[0] for line in found] == ["f", "c:", "r", "v"]


def test_recorded_releases_are_supported_ones() -> None:
    """A file of a release that may not run beside this one proves nothing any more."""
    assert FILES
    for file in FILES:
        (release,) = re.findall(r"^-- release: (\d+\.\d+\.\d+)\. ", file.read_text())
        assert tuple(map(int, release.split("."))) >= tuple(map(int, FUNCTIONS_WORK_WITH.split(".")))
