"""An upgrade while the previous release sells: long steps do not block, compatible ones let it restart."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.config import Config
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.migrate import Step, bring_functions_back, functions, migrate, plan
from holdfast.engines.postgres import Postgres
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
SEATS = "{}CREATE OR REPLACE VIEW seats AS\nSELECT {} FROM sold;\n"
WAITS = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active')"


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


class TestShortLocks:
    async def test_a_step_tries_again_until_a_long_transaction_ends(
        self, empty: asyncpg.Connection, empty_url: str
    ) -> None:
        """A report that reads for a second must not stop the upgrade, and the upgrade not the sale."""
        await migrate(empty, [TABLE])
        reader, buyer = await connect(empty_url), await connect(empty_url)
        reading = reader.transaction()
        await reading.start()
        await reader.execute("SELECT FROM sold")

        upgrading = asyncio.create_task(migrate(empty, [TABLE, COLUMN]))
        await until(lambda: buyer.fetchval(WAITS))
        await buyer.execute("INSERT INTO sold VALUES (1)")  # behind the step: it waits for half a second
        assert not upgrading.done()
        await reading.commit()

        assert await upgrading == [COLUMN]
        await reader.close()
        await buyer.close()

    async def test_a_transaction_with_an_outdated_plan_can_be_repeated(
        self, empty: asyncpg.Connection, empty_url: str
    ) -> None:
        """Its row has a column more than when the statement was prepared: not an error of the program."""
        await migrate(empty, [TABLE])
        postgres = Postgres(empty_url, pool_max=1, timeout_s=5)

        async def read() -> int:
            async with postgres.transaction() as tx:
                return len(await tx.fetch("SELECT * FROM sold"))

        await read()
        await migrate(empty, [TABLE, COLUMN])
        with pytest.raises(EngineDown) as refused:
            await read()

        assert not refused.value.unknown
        assert await read() == 0
        await postgres.close()


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

        # The way back: tables stay, functions are those of the release that runs again.
        await bring_functions_back(empty, [TABLE], functions([TABLE], tmp_path))
        assert await empty.fetchval("SELECT release()") == 1
        assert await plan(empty, [TABLE], functions([TABLE], tmp_path)) == []

        file.write_text(text.format(2))
        again = functions([TABLE, COLUMN], tmp_path)
        assert [change.name for change in await migrate(empty, [TABLE, COLUMN], again)] == ["a/functions"]

    async def test_functions_do_not_come_before_their_tables(self, empty: asyncpg.Connection) -> None:
        with pytest.raises(OperatorError, match="run `holdfast migrate` first"):
            await bring_functions_back(empty, [TABLE], [])


class TestViews:
    """Processes of the old release select from views, and functions return their rows as values."""

    async def replace(
        self, empty: asyncpg.Connection, package: Path, columns: str, mark: str = ""
    ) -> list[str]:
        (package / "a").mkdir(exist_ok=True)
        (package / "a" / "functions.sql").write_text(SEATS.format(mark, columns))
        await migrate(empty, [TABLE], functions([TABLE], package))
        return list((await empty.fetchrow("SELECT * FROM seats") or {}).keys())

    async def test_new_columns_come_last_wherever_the_file_has_them(
        self, empty: asyncpg.Connection, empty_url: str, tmp_path: Path
    ) -> None:
        await self.replace(empty, tmp_path, "seat, 1 AS row")
        await empty.execute("INSERT INTO sold VALUES (1)")
        old = await connect(empty_url)
        its_statement = await old.prepare("SELECT seat, row FROM seats")
        its_view = await old.fetchval("SELECT 'seats'::regclass::oid")

        assert await self.replace(empty, tmp_path, "2 AS price, 3 AS row, seat") == ["seat", "row", "price"]
        assert tuple(await its_statement.fetchrow() or ()) == (1, 3)
        assert await old.fetchval("SELECT 'seats'::regclass::oid") == its_view, "replaced, not created again"
        await old.close()

    async def test_a_view_that_keeps_its_columns_gets_no_new_ones(
        self, empty: asyncpg.Connection, empty_url: str, tmp_path: Path
    ) -> None:
        """asyncpg remembers the columns of a row that is a value, and refuses one with more of them."""
        await self.replace(empty, tmp_path, "seat")
        await empty.execute("INSERT INTO sold VALUES (1)")
        old = await connect(empty_url)
        assert await old.fetchval("SELECT one FROM seats AS one") == (1,)

        columns = await self.replace(
            empty, tmp_path, "seat + 1 AS seat, 2 AS price", "-- keeps its columns: x\n"
        )

        assert columns == ["seat"]
        assert await old.fetchval("SELECT one FROM seats AS one") == (2,)
        await old.close()

    async def test_a_view_that_loses_a_column_is_created_again(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        await self.replace(empty, tmp_path, "seat, 1 AS row")
        await empty.execute("INSERT INTO sold VALUES (1)")

        assert await self.replace(empty, tmp_path, "2 AS price, seat") == ["price", "seat"]
