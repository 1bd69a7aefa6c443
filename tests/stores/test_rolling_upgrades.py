"""An upgrade while the previous release sells: long steps do not block, compatible ones let it restart."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import Step, functions, migrate, plan
from holdfast.engines.startup_checks import connect
from tests.support.second_ledger import a_database
from tests.support.wait import until

TABLE = Step(1, "0001_table", "CREATE TABLE sold (seat int);")
INDEX = Step(
    2,
    "0002_index",
    "-- 0002_index.sql: finds seats.\n-- outside a transaction\n\n"
    "DROP INDEX CONCURRENTLY IF EXISTS sold_seats;\nCREATE INDEX CONCURRENTLY sold_seats ON sold (seat);\n",
)
COLUMN = Step(2, "0002_column", "-- works with: 0.1.0\nALTER TABLE sold ADD COLUMN price int;")
RENAMED = Step(2, "0002_renamed", "ALTER TABLE sold RENAME COLUMN seat TO place;")
NUMBERS = count(1)


@pytest.fixture
async def empty_url(config: Config) -> AsyncIterator[str]:
    async with a_database(config.database_url) as url:
        yield url


@pytest.fixture
async def empty(empty_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(empty_url)
    yield connection
    await connection.close()


class TestLongSteps:
    async def test_an_index_is_built_while_others_write(
        self, empty: asyncpg.Connection, empty_url: str
    ) -> None:
        """It waits for writers that were there before, and no writer waits for it."""
        await migrate(empty, [TABLE])
        writer, late = await connect(empty_url), await connect(empty_url)
        before = writer.transaction()
        await before.start()
        await writer.execute("INSERT INTO sold VALUES (1)")

        building = asyncio.create_task(migrate(empty, [TABLE, INDEX]))
        is_there = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'sold_seats')"
        await until(lambda: late.fetchval(is_there))
        await late.execute("SET statement_timeout = '5s'; INSERT INTO sold VALUES (2)")
        assert not building.done()
        await before.commit()

        assert await building == [INDEX]
        assert await late.fetchval(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'sold_seats'::regclass"
        )
        await writer.close()
        await late.close()

    async def test_twenty_processes_at_once_apply_it_once(self, empty_url: str) -> None:
        """Those that wait hold no snapshot: the build would wait for them, and they for the build."""
        connections = await asyncio.gather(*(connect(empty_url) for _ in range(20)))
        applied = await asyncio.gather(*(migrate(one, [TABLE, INDEX]) for one in connections))
        await asyncio.gather(*(one.close() for one in connections))

        assert [step.name for each in applied for step in each] == ["0001_table", "0002_index"]

    async def test_an_interrupted_one_is_repeated(self, empty: asyncpg.Connection) -> None:
        await migrate(empty, [TABLE])
        await empty.execute("INSERT INTO sold VALUES (1), (1)")
        unique = Step(2, INDEX.name, INDEX.sql.replace("CREATE INDEX", "CREATE UNIQUE INDEX"))

        with pytest.raises(OperatorError, match=r"step 0002_index failed: could not create unique index"):
            await migrate(empty, [TABLE, unique])
        await empty.execute("DELETE FROM sold")

        assert await migrate(empty, [TABLE, unique]) == [unique]


class TestThePreviousRelease:
    async def test_it_restarts_on_a_database_with_compatible_steps(self, empty: asyncpg.Connection) -> None:
        """Otherwise one upgraded machine would stop the others from ever starting again."""
        await migrate(empty, [TABLE, COLUMN])

        assert await plan(empty, [TABLE]) == []
        assert await migrate(empty, [TABLE]) == []

    async def test_it_is_refused_on_a_database_with_other_steps(self, empty: asyncpg.Connection) -> None:
        await migrate(empty, [TABLE, RENAMED])

        with pytest.raises(OperatorError, match=r"ahead of this program \(step 0002_renamed\): upgrade"):
            await migrate(empty, [TABLE])

    async def test_it_leaves_the_functions_of_the_newer_release_in_place(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        (tmp_path / "a").mkdir()
        file = tmp_path / "a" / "functions.sql"
        text = "CREATE OR REPLACE FUNCTION release() RETURNS int LANGUAGE sql AS 'SELECT {}';"
        file.write_text(text.format(2))
        await migrate(empty, [TABLE, COLUMN], functions([TABLE, COLUMN], tmp_path))
        await empty.execute("UPDATE schema_functions SET program = '999.0.0'")

        file.write_text(text.format(1))
        assert await migrate(empty, [TABLE], functions([TABLE], tmp_path)) == []
        assert await empty.fetchval("SELECT release()") == 2

        await empty.execute("UPDATE schema_functions SET works_with = '999.0.0'")
        with pytest.raises(OperatorError, match=r"ahead of this program \(functions of 999.0.0\): upgrade"):
            await migrate(empty, [TABLE], functions([TABLE], tmp_path))
