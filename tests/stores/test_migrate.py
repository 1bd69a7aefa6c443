"""Steps are applied once, functions when they change; by one process at a time, whole or not at all."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import ClassVar

import asyncpg
import pytest

from holdfast.engines.embedded import Engines, engines
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import Change, Step, functions, migrate, plan, steps
from holdfast.engines.startup_checks import connect, find_ledger_faults, find_redis_faults
from tests.support.second_ledger import a_database
from tests.tidy.tree import SRC
from tools.dump_schema import dump_schema
from tools.write_docs import SCHEMA

PEOPLE = Step(1, "0001_people", "CREATE TABLE person (id int); CREATE TABLE pet (id int);")
TALLY = Step(2, "0002_tally", "CREATE TABLE tally (n int); INSERT INTO tally VALUES (1);")
OWN_TABLES = {"schema_step", "schema_functions"}
NUMBERS = count(1)


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engines]:
    async with engines(tmp_path_factory.mktemp("migrate")) as started:
        yield started


@pytest.fixture
async def empty_url(running: Engines) -> AsyncIterator[str]:
    """A database of this test's own."""
    async with a_database(running.database_url) as url:
        yield url


@pytest.fixture
async def empty(empty_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(empty_url)
    yield connection
    await connection.close()


async def tables(connection: asyncpg.Connection) -> set[str]:
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row["tablename"] for row in rows}


async def test_every_step_is_taken_in_order_and_once(empty: asyncpg.Connection) -> None:
    assert await migrate(empty, [PEOPLE, TALLY]) == [PEOPLE, TALLY]
    assert await migrate(empty, [PEOPLE, TALLY]) == []

    assert await tables(empty) == OWN_TABLES | {"person", "pet", "tally"}
    assert await empty.fetchval("SELECT count(*) FROM tally") == 1


async def test_a_plan_lists_missing_migrations_and_changes_nothing(empty: asyncpg.Connection) -> None:
    assert await plan(empty, [PEOPLE, TALLY]) == [PEOPLE, TALLY]
    assert await tables(empty) == set()

    await migrate(empty, [PEOPLE])
    assert await plan(empty, [PEOPLE, TALLY]) == [TALLY]


async def test_twenty_processes_at_once_take_each_step_once(empty_url: str) -> None:
    connections = await asyncio.gather(*(connect(empty_url) for _ in range(20)))
    try:
        taken = await asyncio.gather(*(migrate(connection, [PEOPLE, TALLY]) for connection in connections))
        assert sorted(step.name for each in taken for step in each) == ["0001_people", "0002_tally"]
        assert await connections[0].fetchval("SELECT count(*) FROM tally") == 1
    finally:
        await asyncio.gather(*(connection.close() for connection in connections))


async def test_a_step_that_fails_leaves_nothing_and_those_before_it_stay(
    empty: asyncpg.Connection,
) -> None:
    broken = Step(2, "0002_broken", "CREATE TABLE half (id int); SELECT 1 / 0;")

    with pytest.raises(OperatorError, match="0002_broken failed and was undone: division by zero"):
        await migrate(empty, [PEOPLE, broken])

    assert await tables(empty) == OWN_TABLES | {"person", "pet"}
    assert await migrate(empty, [PEOPLE, TALLY]) == [TALLY]


async def test_a_step_changed_after_it_was_applied_stops_the_program(empty: asyncpg.Connection) -> None:
    await migrate(empty, [PEOPLE])
    changed = Step(1, "0001_people", PEOPLE.sql + " -- a better idea")

    with pytest.raises(OperatorError, match="0001_people was changed after it was applied"):
        await migrate(empty, [changed, TALLY])


async def test_line_ends_do_not_count_as_a_change(empty: asyncpg.Connection) -> None:
    await migrate(empty, [Step(1, "0001_people", "SELECT 1;\nSELECT 2;\n")])

    assert await plan(empty, [Step(1, "0001_people", "SELECT 1;\r\nSELECT 2;\r\n")]) == []


async def test_an_older_program_on_a_newer_database_is_refused(empty: asyncpg.Connection) -> None:
    await migrate(empty, [PEOPLE, TALLY])

    with pytest.raises(OperatorError, match=r"ahead of this program \(step 0002_tally\): upgrade"):
        await migrate(empty, [PEOPLE])


async def test_a_step_does_not_make_others_wait_for_its_lock_for_long(
    empty: asyncpg.Connection, empty_url: str
) -> None:
    await migrate(empty, [PEOPLE])
    other = await connect(empty_url)
    hasty = Step(2, "0002_hasty", "SET LOCAL lock_timeout = '50ms'; ALTER TABLE person ADD COLUMN name text;")
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE person IN ACCESS SHARE MODE")
            with pytest.raises(OperatorError, match="0002_hasty did not get its lock"):
                await migrate(empty, [PEOPLE, hasty], patience_s=0.6)
        assert await migrate(empty, [PEOPLE, hasty]) == [hasty]
    finally:
        await other.close()


async def test_the_products_own_steps_apply_and_apply_once(empty: asyncpg.Connection) -> None:
    assert await migrate(empty) == [*steps(), *functions(steps())]
    assert await plan(empty) == []


def test_steps_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "0010_later.sql").write_text("SELECT 10;")
    (tmp_path / "0002_sooner.sql").write_text("SELECT 2;")
    (tmp_path / "schema.sql").write_text("SELECT 0;")

    assert [step.name for step in steps(tmp_path)] == ["0002_sooner", "0010_later"]


def a_package(root: Path, **folders: str) -> Path:
    """A package whose folders have these functions."""
    for folder, sql in folders.items():
        (root / folder).mkdir(exist_ok=True)
        (root / folder / "functions.sql").write_text(sql)
    return root


def a_copy_of_functions(root: Path) -> list[Path]:
    files = sorted(SRC.glob("*/functions*.sql"))
    for file in files:
        (root / file.parent.name).mkdir(exist_ok=True)
        (root / file.parent.name / file.name).write_text(file.read_text())
    return [root / file.parent.name / file.name for file in files]


def names(changes: list[Change]) -> list[str]:
    return [change.name for change in changes]


PETS = "DROP VIEW IF EXISTS pets CASCADE;\nCREATE VIEW pets AS SELECT id FROM pet;\n"
COUNT = "-- needs: pets\nCREATE OR REPLACE FUNCTION pet_count() RETURNS bigint LANGUAGE sql AS $$ {} $$;\n"


class TestFunctions:
    async def test_a_file_is_applied_after_the_steps_and_again_when_it_changes(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        first = functions([PEOPLE], a_package(tmp_path, a=COUNT[15:].format("SELECT 1::bigint")))
        assert names(await migrate(empty, [PEOPLE], first)) == ["0001_people", "a/functions"]
        assert await migrate(empty, [PEOPLE], first) == []

        second = functions([PEOPLE], a_package(tmp_path, a=COUNT[15:].format("SELECT 2::bigint")))
        assert names(await plan(empty, [PEOPLE], second)) == ["a/functions"]
        assert names(await migrate(empty, [PEOPLE], second)) == ["a/functions"]
        assert await empty.fetchval("SELECT pet_count()") == 2

    async def test_files_come_after_those_they_need_and_then_by_name(self, tmp_path: Path) -> None:
        package = a_package(tmp_path, c="", b="-- needs: z\n", a="-- needs: b, c\n", z="")
        (package / "b" / "functions_more.sql").write_text("")

        ordered = [file.name for file in functions([], package)]
        assert ordered == ["c/functions", "z/functions", "b/functions", "b/functions_more", "a/functions"]

    @pytest.mark.parametrize("needed, words", [("b", "need each other"), ("x", "needs x, which has no")])
    def test_a_circle_and_a_missing_folder_are_refused(self, tmp_path: Path, needed: str, words: str) -> None:
        with pytest.raises(OperatorError, match=words):
            functions([], a_package(tmp_path, a=f"-- needs: {needed}\n", b="-- needs: a\n"))

    async def test_steps_that_depend_on_a_changed_file_are_applied_again(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        """The view is dropped with everything that uses it; a file of another folder brings its part back."""
        package = a_package(
            tmp_path, pets=PETS, shop=COUNT.format("SELECT count(*) FROM pets"), other="SELECT 1;"
        )
        await migrate(empty, [PEOPLE], functions([PEOPLE], package))

        a_package(tmp_path, pets=PETS + "-- edited")
        edited = functions([PEOPLE], package)
        assert names(await migrate(empty, [PEOPLE], edited)) == ["pets/functions", "shop/functions"]
        assert await empty.fetchval("SELECT pet_count()") == 0

        later = functions([PEOPLE, TALLY], package)
        assert len(await migrate(empty, [PEOPLE, TALLY], later)) == 4

    async def test_twenty_processes_at_once_apply_a_file_once(self, empty_url: str, tmp_path: Path) -> None:
        files = functions([PEOPLE], a_package(tmp_path, pets=PETS))
        connections = await asyncio.gather(*(connect(empty_url) for _ in range(20)))
        try:
            applied = await asyncio.gather(*(migrate(one, [PEOPLE], files) for one in connections))
            assert sorted(name for each in applied for name in names(each)) == [
                "0001_people",
                "pets/functions",
            ]
        finally:
            await asyncio.gather(*(connection.close() for connection in connections))

    async def test_a_file_that_fails_leaves_every_file_as_it_was(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        package = a_package(tmp_path, a=COUNT[15:].format("SELECT 1::bigint"), b="SELECT 1;")
        await migrate(empty, [PEOPLE], functions([PEOPLE], package))

        a_package(tmp_path, a=COUNT[15:].format("SELECT 2::bigint"), b="SELECT 1 / 0;")
        with pytest.raises(
            OperatorError, match=r"\(a/functions, b/functions\) failed and was undone: division"
        ):
            await migrate(empty, [PEOPLE], functions([PEOPLE], package))
        assert await empty.fetchval("SELECT pet_count()") == 1

    async def test_an_older_program_does_not_replace_functions_of_a_newer_one(
        self, empty: asyncpg.Connection, tmp_path: Path
    ) -> None:
        """While a release is rolled out, an old worker that restarts must not bring its functions back."""
        await migrate(empty, [PEOPLE], functions([PEOPLE], a_package(tmp_path, a="SELECT 1;")))
        await empty.execute("UPDATE schema_functions SET program = '999.0.0', works_with = NULL")
        ours = functions([PEOPLE], a_package(tmp_path, a="SELECT 2;"))

        with pytest.raises(OperatorError, match=r"ahead of this program \(functions of 999.0.0\): upgrade"):
            await migrate(empty, [PEOPLE], ours)

    async def test_each_of_the_products_files_can_be_applied_again(
        self, empty: asyncpg.Connection, empty_url: str, tmp_path: Path
    ) -> None:
        """Whatever a file drops, it and the files that need it bring back."""
        files = a_copy_of_functions(tmp_path)
        await migrate(empty, steps(), functions(steps(), tmp_path))
        for file in files:
            file.write_text(file.read_text() + "-- edited\n")
            assert await migrate(empty, steps(), functions(steps(), tmp_path)) != []

        assert await asyncio.to_thread(dump_schema, empty_url) == SCHEMA.read_text(), "run `make docs`"


async def test_the_schema_file_matches_a_migrated_database(empty: asyncpg.Connection, empty_url: str) -> None:
    await migrate(empty)

    assert await asyncio.to_thread(dump_schema, empty_url) == SCHEMA.read_text(), "run `make docs`"


class TestWhatAnEngineMustBeLike:
    ledger: ClassVar = {
        "version": "16.4",
        "version_number": "160004",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "server_encoding": "UTF8",
        "is_standby": False,
    }
    holds: ClassVar = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "role": "master"}

    def test_fit_ones_have_no_faults(self) -> None:
        assert find_ledger_faults(self.ledger) == ()
        assert find_redis_faults(self.holds) == ()

    @pytest.mark.parametrize(
        ("setting", "value", "words"),
        [
            ("version_number", "140012", "use 15, 16, 17 or 18"),
            ("version_number", "190000", "use 15, 16, 17 or 18"),
            ("fsync", "off", "fsync = off and would lose bookings"),
            ("full_page_writes", "off", "full_page_writes = off"),
            ("synchronous_commit", "off", "synchronous_commit = off"),
            ("server_encoding", "LATIN1", "ENCODING 'UTF8'"),
            ("is_standby", True, "read-only standby"),
        ],
    )
    def test_an_unsuitable_postgres_error_names_the_setting_to_change(
        self, setting: str, value: object, words: str
    ) -> None:
        [fault] = find_ledger_faults({**self.ledger, setting: value})

        assert words in fault

    @pytest.mark.parametrize(
        ("setting", "value", "words"),
        [
            ("redis_version", "6.0.16", "use Redis 6.2 or newer"),
            ("maxmemory_policy", "allkeys-lru", "set it to noeviction"),
            ("role", "slave", "is a replica"),
        ],
    )
    def test_an_unsuitable_redis_error_names_the_setting_to_change(
        self, setting: str, value: str, words: str
    ) -> None:
        [fault] = find_redis_faults({**self.holds, setting: value})

        assert words in fault
