"""Old rows are deleted in small batches; what has to do with money, and what is still in use, stays.

The house of these tests has a long past (tests/support/grown_house.sql). Retention runs there to its end
once, and each test looks at what is left.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from holdfast.app import App
from holdfast.audit import audit
from holdfast.background import build_retention
from holdfast.bookings import set_sale
from holdfast.config import Config
from holdfast.engines.retention import IDLE_S, Retention, RetentionRule
from tests.support.grown_house import GrownHouse, grown_house
from tests.support.show_fixture import Till

KEEP: dict[str, Any] = {
    "lapsed_keep_d": 30,
    "guests_keep_d": 90,
    "invitations_keep_d": 30,
    "past_shows_keep_d": 400,
    "queue_keep_d": 30,
    "personal_keep_d": 1,
    "audit_personal_keep_d": 730,
}
ROWS_MAX = 4000
YOUNG = "guest5000@guest.invalid"
NOTHING_TO_DELETE = "SELECT NULL::bigint AS reached, 0 AS deleted WHERE $1::bigint + $2::int + $3::int > 0"
NEWEST = "SELECT max(show_id) FROM booking WHERE state = 'confirmed'"
# What must stay although it is old: an unpaid booking that a gateway tried to charge, one whose facts are
# not consumed, and what is too young.
STAYS = """
UPDATE account SET created_at = now() - interval '100 days', contact_email = 'me@example.org', name = 'Maya'
 WHERE email LIKE 'guest%';
UPDATE account SET created_at = now() - interval '10 days' WHERE email = 'guest5000@guest.invalid';
INSERT INTO booking_move (show_id, number, move, state, fence, at)
SELECT show_id, number, 'pay', 'paying', 1, opened_at FROM booking WHERE claim_id = 'lapsed1';
UPDATE booking_move SET id = DEFAULT WHERE move = 'expire'
   AND number = (SELECT number FROM booking WHERE claim_id = 'lapsed1');
INSERT INTO outbox (show_id, number, kind)
SELECT show_id, number, 'refund.done' FROM booking WHERE claim_id = 'lapsed2';
UPDATE booking SET expires_at = now() - interval '1 day' WHERE claim_id = 'lapsed3';
INSERT INTO ticket_transfer (show_id, serial, edition, from_id, email)
SELECT show_id, serial, 2, 1, 'friend@example.org' FROM ticket ORDER BY serial LIMIT 10;
"""


@dataclass(frozen=True)
class Reduced:
    house: GrownHouse
    funnel_before: object
    past_show: int

    @property
    def app(self) -> App:
        return self.house.app

    async def count(self, table: str, where: str = "true") -> int:
        sql = f"SELECT count(*) FROM {table} WHERE {where}"  # noqa: S608
        return int(await self.app.postgres.fetchval(sql))


@pytest.fixture(scope="module")
async def reduced(config: Config) -> AsyncIterator[Reduced]:
    async with grown_house(replace(config, retention_rows_max=ROWS_MAX, **KEEP)) as house:
        connection = await asyncpg.connect(house.app.config.database_url)
        await connection.execute(STAYS)
        await connection.close()
        past = await house.app.postgres.fetchval(NEWEST)
        funnel = (await house.app.reports.of_show(past, None)).figures.funnel
        await run(house.app)
        await house.app.postgres.execute("UPDATE sale SET archived_at = archived_at - interval '2 days'")
        await run(house.app)
        yield Reduced(house, funnel, past)


async def run(app: App) -> None:
    """Every rule, from its beginning to its end."""
    await app.postgres.execute("UPDATE retention_pass SET due_at = now(), reached = 0")
    retention = build_retention(app)
    while await retention.delete_batch():
        continue


async def test_unpaid_bookings_go_with_their_moves(reduced: Reduced) -> None:
    left = await reduced.app.postgres.fetch("SELECT claim_id FROM booking WHERE state = 'expired' ORDER BY 1")

    assert [row["claim_id"] for row in left] == ["lapsed1", "lapsed2", "lapsed3"]
    assert await reduced.count("booking_move", "state = 'expired'") == 3


async def test_bookings_that_were_paid_for_stay(reduced: Reduced) -> None:
    assert await reduced.count("booking", "state = 'confirmed'") == 14_000
    assert await reduced.count("payment") == await reduced.count("ticket") / 2 == 14_000


async def test_guests_without_a_purchase_go_and_the_others_are_anonymous(reduced: Reduced) -> None:
    left = await reduced.app.postgres.fetch(
        "SELECT email, name, contact_email FROM account WHERE email LIKE 'guest%' ORDER BY id"
    )

    buyers = [f"guest{number}@guest.invalid" for number in range(1, 20)]
    assert [tuple(row) for row in left] == [(one, "Guest", None) for one in [*buyers, YOUNG]]


async def test_seat_keys_counters_and_scans_of_past_shows_go(reduced: Reduced) -> None:
    past = f"show_id <> {reduced.house.show_id}"

    left = [
        await reduced.count(table, past)
        for table in ("taken_seat", "owner_count", "check_in", "report_stage")
    ]

    assert left == [0, 0, 0, 0]


async def test_the_report_of_a_past_show_is_what_it_was(reduced: Reduced) -> None:
    assert (
        await reduced.app.reports.of_show(reduced.past_show, None)
    ).figures.funnel == reduced.funnel_before
    await reduced.app.reports.rebuild_show(reduced.past_show)
    assert (
        await reduced.app.reports.of_show(reduced.past_show, None)
    ).figures.funnel == reduced.funnel_before


async def test_addresses_of_transferred_tickets_go(reduced: Reduced) -> None:
    assert (
        await reduced.count("ticket_transfer"),
        await reduced.count("ticket_transfer", "email <> ''"),
    ) == (
        10,
        0,
    )


async def test_a_past_show_says_how_many_seats_were_sold(reduced: Reduced) -> None:
    counts = await reduced.app.bookings.counts_many([reduced.past_show])

    assert counts == {reduced.past_show: {"H": 0, "B": 40, "X": 0}}


async def test_the_ledger_is_still_consistent(reduced: Reduced) -> None:
    report = await audit(reduced.app.postgres, reduced.app.bookings)

    assert {v.check for v in report.violations} <= {
        "journal_matches_payments",
        "moves_follow_the_state_machine",
    }


async def test_a_check_in_of_a_show_that_is_not_archived_cannot_be_deleted(reduced: Reduced) -> None:
    await reduced.app.postgres.execute(
        "INSERT INTO check_in (show_id, pass_id, scan_id, gate, way, verdict, scanned_at)"
        " VALUES ($1, 1, 'new', 'North', 'entry', 'unknown', now())",
        reduced.house.show_id,
    )

    with pytest.raises(asyncpg.CheckViolationError):
        await reduced.app.postgres.execute("DELETE FROM check_in")


async def test_a_past_show_that_is_sold_again_knows_its_seats(reduced: Reduced) -> None:
    """Without its keys every seat that was sold before would be sold a second time."""
    app, now = reduced.app, datetime.now(UTC)
    show = await app.postgres.fetchval("SELECT min(show_id) FROM booking WHERE state = 'confirmed'")

    async with app.postgres.transaction() as tx:
        times = {"opens_at": now - timedelta(days=1), "closes_at": now + timedelta(days=1)}
        await set_sale(tx, show_id=show, cancelled=False, owner_seats_max=10, revision=1, **times)
    (refused, opened) = await Till(app, show).open_many(
        [Till(app, show).opening(0), Till(app, show).opening(45)]
    )

    assert (type(refused).__name__, type(opened).__name__) == ("SeatsLost", "Booking")


async def test_a_batch_deletes_a_bounded_number_of_rows(reduced: Reduced) -> None:
    app = reduced.app
    await app.postgres.execute(
        "INSERT INTO account (email, name, created_at) SELECT 'old' || i || '@guest.invalid', 'Guest',"
        " now() - interval '1 year' FROM generate_series(1, 30) AS i"
    )
    await app.postgres.execute(
        "UPDATE retention_pass SET reached = (SELECT id FROM account WHERE email = $1),"
        " due_at = CASE rule WHEN 'accounts.guests' THEN now() ELSE now() + interval '1 day' END",
        YOUNG,
    )
    small = build_retention(replace(app, config=replace(app.config, retention_rows_max=10)))

    before = await reduced.count("account")
    await small.delete_batch()

    assert before - await reduced.count("account") == 10


async def test_a_batch_that_another_worker_has_is_left_to_it(reduced: Reduced) -> None:
    await reduced.app.postgres.execute("UPDATE retention_pass SET due_at = now()")

    async with reduced.app.postgres.transaction() as other:
        await other.execute("SELECT FROM retention_pass FOR UPDATE")
        assert not await build_retention(reduced.app).delete_batch()


async def test_a_process_without_a_due_rule_looks_again_after_a_minute(reduced: Reduced) -> None:
    now, postgres = [1000.0], reduced.app.postgres
    rule = RetentionRule("tests.idle", NOTHING_TO_DELETE, 1)
    retention = Retention(postgres, [rule], 10, lambda: now[0])
    has_run = "SELECT ended_at IS NOT NULL FROM retention_pass WHERE rule = 'tests.idle'"
    await retention.step()
    await retention.step()  # finds that nothing is due
    await postgres.execute(
        "UPDATE retention_pass SET due_at = now(), ended_at = NULL WHERE rule = 'tests.idle'"
    )

    await retention.step()
    early = await postgres.fetchval(has_run)
    now[0] += IDLE_S
    await retention.step()

    assert (early, await postgres.fetchval(has_run)) == (False, True)


async def test_nothing_is_deleted_where_retention_is_off(reduced: Reduced) -> None:
    off: dict[str, Any] = dict.fromkeys(KEEP, 0)
    config = replace(reduced.app.config, **off)

    assert not await build_retention(replace(reduced.app, config=config)).delete_batch()
