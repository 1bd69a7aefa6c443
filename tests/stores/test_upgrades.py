"""A database of every released state is upgraded with its data: nothing is lost, and the schema is the same.

Each file in tests/stores/upgrades is such a state: the dump of a database with a row in every table, written
once by tools/write_upgrade_state.py and never again. Without this a step could work on an empty database and
fail, or lose rows, on one with real sales.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.app import open_app
from holdfast.audit import audit
from holdfast.config import Config
from holdfast.engines.migrate import migrate, plan, steps
from holdfast.engines.startup_checks import connect
from holdfast.organisers.forms import Paging
from holdfast.web.caller import Caller, Right, Role
from tests.support.second_ledger import a_database, beside
from tools.dump_schema import count_rows, dump_schema
from tools.write_docs import SCHEMA
from tools.write_upgrade_state import STATES, STORY

DUMPS = sorted(path for path in STATES.glob("*.sql") if path != STORY)
NUMBERS = count(1)
DROPPED = re.compile(r"^DROP TABLE (\w+)", re.MULTILINE)
# Views that have other columns in a new database, or have them in another order (engines/view_columns.py).
OTHER_ORDER = {
    "account_profile",
    "booking_history",
    "issued_ticket",
    "payment_detail",
    "refund_detail",
    "show_detail",
}
VIEW = re.compile(r"^CREATE VIEW (\w+) AS\n.*?;\n\n", re.MULTILINE | re.DOTALL)
VIEW_COLUMNS = """
    SELECT relname, array_agg(attname::text ORDER BY attnum) AS columns
      FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
     WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace AND attnum > 0
  GROUP BY relname"""


@pytest.fixture(params=DUMPS, ids=lambda path: path.stem)
async def loaded_url(request: pytest.FixtureRequest, config: Config) -> AsyncIterator[str]:
    """A database as that release left it."""
    async with a_database(config.database_url) as url:
        loader = await connect(url)  # a connection of its own: a dump empties its search_path
        await loader.execute(_read(request.param))
        await loader.close()
        yield url


@pytest.fixture
async def loaded(loaded_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect(loaded_url)
    yield connection
    await connection.close()


def _read(path: Path) -> str:
    return path.read_text()


def _removed_tables() -> set[str]:
    """What a step removes on purpose, with a line `-- removes: …`: tests/tidy/test_migrations.py."""
    return {table for step in steps() for table in DROPPED.findall(step.sql)}


def _without_view_columns(schema: str) -> str:
    return VIEW.sub(lambda found: "" if found[1] in OTHER_ORDER else found[0], schema)


async def test_no_row_is_lost_and_the_schema_is_that_of_a_new_database(
    loaded: asyncpg.Connection, loaded_url: str
) -> None:
    before = await count_rows(loaded)
    views = {row["relname"]: row["columns"] for row in await loaded.fetch(VIEW_COLUMNS)}
    assert all(before.values()), "a table without rows proves nothing"

    await migrate(loaded)

    after = await count_rows(loaded)
    other = {"schema_step", "schema_functions"} | _removed_tables()
    assert {name: after.get(name) for name in before if name not in other} == {
        name: rows for name, rows in before.items() if name not in other
    }
    assert await plan(loaded) == []
    now = {row["relname"]: row["columns"] for row in await loaded.fetch(VIEW_COLUMNS)}
    assert {name: now[name][: len(columns)] for name, columns in views.items()} == views
    schema = await asyncio.to_thread(dump_schema, loaded_url)
    assert _without_view_columns(schema) == _without_view_columns(SCHEMA.read_text())


async def test_the_invariants_hold_and_the_sale_goes_on(
    loaded: asyncpg.Connection, loaded_url: str, config: Config
) -> None:
    await migrate(loaded)

    async with open_app(await beside(config, loaded_url, 9)) as app:
        report = await audit(app.postgres, app.bookings)
        states = await app.postgres.fetch("SELECT state::text, count(*) FROM booking GROUP BY 1 ORDER BY 1")

    assert [(found.check, found.what) for found in report.violations] == []
    assert {row["state"]: row["count"] for row in states} == {
        "blocked": 1,
        "cancelled": 1,
        "confirmed": 2,
        "expired": 1,
        "failed": 1,
        "refunded": 1,
    }


async def test_what_an_organiser_owned_belongs_to_an_organisation_of_theirs(
    loaded: asyncpg.Connection, loaded_url: str, config: Config
) -> None:
    """Every id in `organiser_id` keeps its meaning; the organiser owns it all with all rights."""
    before = await loaded.fetch(
        "SELECT organiser_id FROM event UNION SELECT organiser_id FROM layout_organiser"
        " UNION SELECT organiser_id FROM gate_pass UNION SELECT organiser_id FROM webhook_endpoint"
        " UNION SELECT organiser_id FROM organiser_sender UNION SELECT organiser_id FROM invoice"
    )

    await migrate(loaded)

    async with open_app(await beside(config, loaded_url, 9)) as app:
        for organiser_id in {row[0] for row in before}:
            (own,) = await app.organisations.mine(organiser_id)
            caller = Caller(organiser_id, Role.ORGANISER, 1)
            scope = await app.organisations.find_scope(caller, Right.OWNER, None)
            total, _ = await app.catalogue_editor(scope).events(Paging())
            assert (own.organisation_id, own.is_owner, total) == (organiser_id, True, 1)
        new = await app.organisations.create("New", organiser_id)
        assert new.organisation_id > await app.postgres.fetchval("SELECT max(id) FROM account")


async def test_people_with_a_pass_work_at_the_door_of_the_organisation_that_gave_it(
    loaded: asyncpg.Connection,
) -> None:
    await migrate(loaded)

    staff = await loaded.fetch(
        "SELECT organisation_id, account_id FROM membership WHERE rights = ARRAY['door']"
    )
    passes = await loaded.fetch("SELECT organiser_id, account_id FROM good_pass WHERE code_hash IS NULL")

    assert staff
    assert {tuple(row) for row in staff} == {tuple(row) for row in passes}
