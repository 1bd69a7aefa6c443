"""The chains of the audit log: tampering is found, erasing is not tampering, and appending never forks."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.app import App
from holdfast.audit import Report
from holdfast.audit.store import AUDIT_LOG_CHECKS, audit_log_violations
from holdfast.background import build_retention
from holdfast.cli.audit import compare_ends
from holdfast.engines.postgres import Postgres, Queryable
from holdfast.web.audit_log import AuditEntry, erase_person, record
from holdfast.web.caller import Origin

_chains = count(8_000_000_000)  # no account has such a number
ADDRESS = "203.0.113.77"


def an_entry(chain: int, what: str = "x", actor_id: int = 77) -> AuditEntry:
    return AuditEntry(
        action="event.changed",
        organiser_id=chain,
        subject=("event", 1),
        after={"title": what},
        origin=Origin(actor_id, "api", ADDRESS, "Desk/1.0"),
    )


@pytest.fixture
async def chain(postgres: Postgres) -> AsyncIterator[int]:
    """A log of five entries, which is gone afterwards."""
    number = next(_chains)
    for what in "abcde":
        await record(postgres, an_entry(number, what))
    yield number
    async with postgres.transaction() as tx:
        await as_attacker(tx, "DELETE FROM audit_entry WHERE chain = $1", number)
        await tx.execute("DELETE FROM audit_chain WHERE chain = $1", number)


async def as_attacker(tx: Queryable, sql: str, *args: object) -> None:
    """With a superuser's rights, past the triggers."""
    await tx.execute("SET LOCAL session_replication_role = replica")
    await tx.execute(sql, *args)


async def found(app: App, chain: int) -> dict[str, list[str]]:
    report = Report()
    for check in AUDIT_LOG_CHECKS:
        report.note(check, await audit_log_violations(app.postgres, check))
    return of(chain, report)


def of(chain: int, report: Report) -> dict[str, list[str]]:
    seen: dict[str, list[str]] = {}
    for violation in report.violations:
        if violation.check.startswith("audit_log") and violation.what.startswith(f"log {chain}:"):
            seen.setdefault(violation.check, []).append(violation.what.removeprefix(f"log {chain}: "))
    return seen


MUTATIONS = {
    "a changed word": 'UPDATE audit_entry SET after = \'{"title": "z"}\' WHERE chain = $1 AND number = 3',
    "another actor": "UPDATE audit_entry SET actor_id = 78 WHERE chain = $1 AND number = 3",
    "another time": "UPDATE audit_entry SET at = at - interval '1 day' WHERE chain = $1 AND number = 3",
    "another digest": "UPDATE audit_entry SET digest = sha256('x') WHERE chain = $1 AND number = 3",
    "a missing entry": "DELETE FROM audit_entry WHERE chain = $1 AND number = 3",
    "a missing first entry": "DELETE FROM audit_entry WHERE chain = $1 AND number = 1",
    "a missing last entry": "DELETE FROM audit_entry WHERE chain = $1 AND number = 5",
    "a closed gap": "DELETE FROM audit_entry WHERE chain = $1 AND number = 3;"
    "UPDATE audit_entry SET number = number - 1 WHERE chain = $1 AND number > 3",
    "two swapped": "UPDATE audit_entry SET number = -number WHERE chain = $1;"
    "UPDATE audit_entry SET number = CASE number WHEN -2 THEN 3 WHEN -3 THEN 2 ELSE -number END"
    " WHERE chain = $1",
    "an entry of another log": "UPDATE audit_entry SET chain = chain + 1000000"
    " WHERE chain = $1 AND number = 5",
    "an inserted entry": "INSERT INTO audit_entry SELECT chain, 6, at, action, subject_kind, subject_id,"
    " subject_name, actor_id, person_id, via, before, after, personal, salt, digest, hash"
    " FROM audit_entry WHERE chain = $1 AND number = 5",
    "a changed address": 'UPDATE audit_entry SET personal = \'{"address": "127.0.0.1"}\''
    " WHERE chain = $1 AND number = 3",
    "an address removed by hand": "UPDATE audit_entry SET personal = NULL, salt = NULL"
    " WHERE chain = $1 AND number = 3",
    "a missing end": "DELETE FROM audit_chain WHERE chain = $1",
}


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_tampering_is_found(app: App, postgres: Postgres, chain: int, mutation: str) -> None:
    assert await found(app, chain) == {}

    async with postgres.transaction() as tx:
        for statement in MUTATIONS[mutation].split(";"):
            await as_attacker(tx, statement, chain)

    assert await found(app, chain) != {}
    async with postgres.transaction() as tx:
        await as_attacker(tx, "DELETE FROM audit_entry WHERE chain = $1", chain + 1_000_000)


async def test_the_tables_refuse_changes(postgres: Postgres, chain: int) -> None:
    for statement in (
        MUTATIONS["a changed word"],
        MUTATIONS["a missing entry"],
        MUTATIONS["a changed address"],
    ):
        with pytest.raises(asyncpg.CheckViolationError, match="never changed or deleted"):
            await postgres.execute(statement, chain)


async def test_a_log_cut_off_with_its_end_is_found_by_the_ends_of_an_earlier_audit(
    app: App, postgres: Postgres, chain: int, tmp_path: Path
) -> None:
    ends, report = tmp_path / "ends.json", Report()
    await compare_ends(app, report, ends)
    async with postgres.transaction() as tx:
        await as_attacker(tx, "DELETE FROM audit_entry WHERE chain = $1 AND number > 3", chain)
        await as_attacker(
            tx,
            "UPDATE audit_chain SET number = 3, hash = (SELECT hash FROM audit_entry"
            " WHERE audit_entry.chain = $1 AND number = 3) WHERE chain = $1",
            chain,
        )
    assert await found(app, chain) == {}, "the log is consistent in itself"
    noted = ends.read_bytes()

    again = Report()
    await compare_ends(app, again, ends)

    assert of(chain, again) == {"audit_log_continues": ["entry 5 of an earlier audit is gone"]}
    assert ends.read_bytes() == noted, "what is wrong is not overwritten"


class TestErasing:
    async def test_a_person_is_erased_and_the_chain_stays_whole(
        self, app: App, postgres: Postgres, chain: int
    ) -> None:
        person = chain + 500_000
        await record(postgres, an_entry(chain, "theirs", actor_id=person))

        async with postgres.transaction() as tx:
            await erase_person(tx, person)

        left = await postgres.fetch("SELECT number, personal::text FROM audit_entry WHERE chain = $1", chain)
        assert {row["number"] for row in left if row["personal"] is None} == {6}
        assert await found(app, chain) == {}
        last = await postgres.fetchrow("SELECT * FROM audit_entry WHERE chain = $1 AND number = 7", chain)
        assert last is not None
        assert last["action"] == "audit_log.personal_data_erased"

    async def test_nothing_of_the_erased_part_is_left(self, postgres: Postgres, chain: int) -> None:
        person = chain + 500_000
        about = AuditEntry(
            action="member.invited",
            organiser_id=chain,
            subject=("member", 1),
            personal={"email": "marker-of-a-person@example.org"},
            person_id=person,
            origin=Origin(77, "api", ADDRESS, "Desk/1.0"),
        )
        await record(postgres, about)

        async with postgres.transaction() as tx:
            await erase_person(tx, person)

        rows = await postgres.fetch(
            "SELECT audit_entry::text AS text FROM audit_entry WHERE chain = $1", chain
        )
        assert not [row for row in rows if "marker-of-a-person" in row["text"]]

    async def test_old_personal_data_is_erased_by_age(self, app: App, postgres: Postgres, chain: int) -> None:
        keep_d = app.config.audit_personal_keep_d
        async with postgres.transaction() as tx:
            await as_attacker(
                tx,
                "UPDATE audit_entry SET at = at - $2 * interval '1 day' WHERE chain = $1 AND number <= 2",
                chain,
                keep_d + 1,
            )
        retention = build_retention(app)
        await postgres.execute(
            "UPDATE retention_pass SET due_at = now() WHERE rule = 'audit_log.personal_data'"
        )

        while await retention.delete_batch():
            pass

        rows = await postgres.fetch(
            "SELECT number FROM audit_entry WHERE chain = $1 AND personal IS NULL ORDER BY number", chain
        )
        assert [row["number"] for row in rows] == [1, 2]


async def test_many_at_once_make_one_chain_without_gaps(app: App, postgres: Postgres) -> None:
    one, other = next(_chains), next(_chains)

    async def change(what: int) -> None:
        async with postgres.transaction() as tx:
            # Two logs in one transaction, named in either order: no deadlock.
            both = [an_entry(one, f"{what}"), an_entry(other, f"{what}")]
            await record(tx, *(both if what % 2 else reversed(both)))
            if what % 5 == 0:
                raise asyncio.CancelledError

    await asyncio.gather(*(change(what) for what in range(30)), return_exceptions=True)

    for chain in (one, other):
        numbers = await postgres.fetch("SELECT number FROM audit_entry WHERE chain = $1 ORDER BY 1", chain)
        assert [row["number"] for row in numbers] == list(range(1, 25))
        assert await found(app, chain) == {}
