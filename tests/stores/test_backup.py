"""A backup of an older schema goes into a newer program; one of a newer program does not go into an older."""

from collections.abc import AsyncIterator
from datetime import datetime
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.backup import ExtraFile, create, restore
from holdfast.engines.embedded import Engines
from holdfast.engines.errors import OperatorError
from holdfast.engines.migrate import Step, migrate, plan, steps
from holdfast.engines.startup_checks import connect
from tests.support.second_ledger import a_database

NUMBERS = count(1)
OLD = 10  # steps that an older program had


def quiet(_what: str, _done: int, _total: int) -> None: ...


def nothing_else(_instant: datetime) -> list[ExtraFile]:
    return []


@pytest.fixture
async def databases(running_engines: Engines) -> AsyncIterator[list[asyncpg.Connection]]:
    """Two, and both empty."""
    url = running_engines.database_url
    async with a_database(url) as old_url, a_database(url) as new_url:
        both = [await connect(old_url), await connect(new_url)]
        yield both
        for connection in both:
            await connection.close()


async def add_accounts(connection: asyncpg.Connection, *names: str) -> list[int]:
    query = "INSERT INTO account (email, name, password_hash) VALUES ($1, $2, '') RETURNING id"
    return [await connection.fetchval(query, f"{next(NUMBERS)}@example.com", name) for name in names]


async def test_an_older_schema_is_brought_up_to_date(
    databases: list[asyncpg.Connection], tmp_path: Path
) -> None:
    old, new = databases
    known = steps()[:OLD]
    await migrate(old, known)
    names = ("plain", "back\\slash", "line\nfeed", "tab\there", "\\N", "Müller 🎟")
    ids = await add_accounts(old, *names)

    made = await create(old, tmp_path / "old.backup", "0.0.1", nothing_else, quiet, known)
    restored = await restore(new, tmp_path / "old.backup", quiet)

    rows = await new.fetch("SELECT id, name FROM account ORDER BY id")
    assert [(row["id"], row["name"]) for row in rows] == list(zip(ids, names, strict=True))
    assert await plan(new) == []
    assert (made, len(made.steps)) == (restored, OLD)
    assert (await add_accounts(new, "later"))[0] > ids[-1] + 1000


async def test_triggers_report_new_rows_and_not_restored_ones(
    databases: list[asyncpg.Connection], tmp_path: Path
) -> None:
    old, new = databases
    await migrate(old)
    await add_sale(old, 1)

    await create(old, tmp_path / "one.backup", "0.0.1", nothing_else, quiet)
    await restore(new, tmp_path / "one.backup", quiet)

    count_facts = "SELECT count(*) FROM outbox"
    assert await new.fetchval(count_facts) == await old.fetchval(count_facts) == 1
    assert await new.fetchval("SELECT map_stale FROM sale")
    assert await new.fetchval("SELECT name FROM fact_log") != await old.fetchval("SELECT name FROM fact_log")
    await add_sale(new, 2)
    assert await new.fetchval(count_facts) == 2


async def test_a_newer_programs_backup_and_a_used_database_are_refused(
    databases: list[asyncpg.Connection], tmp_path: Path
) -> None:
    old, new = databases
    known = [*steps(), Step(9999, "9999_later", "CREATE TABLE later (id int);")]
    await migrate(old, known)
    await create(old, tmp_path / "newer.backup", "9.0", nothing_else, quiet, known)

    with pytest.raises(OperatorError, match="upgrade this one"):
        await restore(new, tmp_path / "newer.backup", quiet)
    with pytest.raises(OperatorError, match="not empty"):
        await restore(old, tmp_path / "newer.backup", quiet)


async def add_sale(connection: asyncpg.Connection, show_id: int) -> None:
    await connection.execute(
        "INSERT INTO sale (show_id, revision, opens_at, closes_at, owner_seats_max)"
        " VALUES ($1, 1, now(), now() + interval '1 day', 10)",
        show_id,
    )
