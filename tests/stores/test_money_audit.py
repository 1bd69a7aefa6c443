"""The audit finds what must never be true of money: each violation, planted by hand, and no other."""

from collections.abc import AsyncIterator

import pytest

from holdfast.app import App
from holdfast.audit.report import OurPayment, TheirPayment, disagreements, unknown_payments
from holdfast.audit.store import MONEY_CHECKS
from holdfast.bookings import Booking
from holdfast.engines.postgres import require_row
from holdfast.refunds.refund import RefundScope
from tests.support.own_engines import hold
from tests.support.paid_bookings import a_refund, bought, payment_request, violations
from tests.support.show_fixture import Till, a_till, an_owner

FORGET = ("booking", "taken_seat", "owner_count", "booking_move", "outbox", "payment", "refund", "ticket")

# What a broken program, or a person with psql, could do to a show ($1) with a booking of two seats that was
# paid for, and of which 5.00 went back.
REFUND = (
    "INSERT INTO refund (show_id, number, attempt, id, why, amount_minor, state, due_at, requested_at)"
    " SELECT show_id, number, attempt, 9, {why}, {amount}, {state}, {due}, {at} FROM payment"
    " WHERE show_id = $1"
)
PENDING = {"state": "'requested'", "due": "now()", "at": "now()"}
PLANTS = {
    "every_entry_balances": "UPDATE journal SET amount_minor = amount_minor + 1 WHERE show_id = $1"
    " AND account = 'organiser' AND kind = 'charge'",
    "journal_matches_payments": "DELETE FROM journal WHERE show_id = $1 AND kind = 'refund done'",
    "paid_what_it_costs": "UPDATE payment SET currency = 'USD' WHERE show_id = $1",
    "money_has_a_booking": "UPDATE payment SET number = (SELECT max(number) FROM booking"
    " WHERE show_id = $1 AND state = 'held') WHERE show_id = $1",
    "no_more_back_than_came": "UPDATE payment SET refunds_minor = refunds_minor + 1 WHERE show_id = $1",
    "one_ticket_per_seat": "UPDATE ticket SET voided_at = now() WHERE show_id = $1 AND seat = 1",
    "late_refunds_were_late": REFUND.format(why="'late'", amount=1, **PENDING),
    "late_money_is_settled": "UPDATE payment SET step = 'late', due_at = now(), ended_at = NULL"
    " WHERE show_id = $1",
    "refunds_end_in_time": REFUND.format(
        why="'x'", amount=1, state="'requested'", due="now()", at="now() - interval '16 min'"
    ),
    "payments_end_in_time": "UPDATE booking SET state = 'paying', expires_at = now() - interval '2 min'"
    " WHERE show_id = $1 AND state = 'held'",
}
# What makes a check's trouble old enough.
AGED = {"late_money_is_settled": "UPDATE journal SET at = at - interval '2 min' WHERE show_id = $1"}
SECOND_PAYMENT = (
    "INSERT INTO payment (show_id, number, attempt, owner_id, fence, request_id, body_hash, key, gateway,"
    " method, step, amount_minor, currency, hold_ends_at, deadline_at, ended_at)"
    " SELECT show_id, number, 2, owner_id, fence, 'twice', 1, 'twice', gateway, '', 'paid', amount_minor,"
    " currency, now(), now(), now() FROM payment WHERE show_id = $1"
)


@pytest.fixture
async def till(app: App) -> AsyncIterator[Till]:
    """A show with a booking that was paid for; everything about it is forgotten afterwards."""
    till = await a_till(app, 10)
    booking = await bought(app, till.show, 1, 2)
    await app.refunds.decide(a_refund(booking, what=RefundScope.MONEY, amount_minor=500))
    await hold(app, till.show, an_owner(), 5)
    yield till
    for table in FORGET:
        await app.postgres.execute(f"DELETE FROM {table} WHERE show_id = $1", till.show)  # noqa: S608
    await app.postgres.execute("DELETE FROM journal WHERE show_id = $1", till.show)
    await app.redis.call("DEL", f"meta:{{{till.show}}}")


async def found(till: Till) -> set[str]:
    return {one.partition(":")[0] for one in await violations(till.app, till.show)}


async def test_a_sale_with_refunds_has_nothing_to_find(till: Till) -> None:
    assert await found(till) == set()


@pytest.mark.parametrize("check", PLANTS)
async def test_a_planted_violation_is_found(till: Till, check: str) -> None:
    await till.postgres.execute(PLANTS[check], till.show)
    if check in AGED:
        await till.postgres.execute(AGED[check], till.show)

    assert check in await found(till)


async def test_money_that_was_taken_twice_is_found(till: Till) -> None:
    await till.postgres.execute(SECOND_PAYMENT, till.show)

    assert "paid_what_it_costs" in await found(till)


async def test_a_confirmed_booking_without_payment_is_found(till: Till) -> None:
    await till.postgres.execute(
        "UPDATE booking SET state = 'confirmed', confirmed_at = now() WHERE show_id = $1 AND state = 'held'",
        till.show,
    )

    assert "paid_what_it_costs" in await found(till)


async def test_a_ticket_without_a_booking_is_found(till: Till) -> None:
    await till.postgres.execute(
        "INSERT INTO ticket (show_id, number, seat) SELECT show_id, number, 5 FROM booking"
        " WHERE show_id = $1 AND state = 'held'",
        till.show,
    )

    assert "one_ticket_per_seat" in await found(till)


async def test_every_audit_check_has_a_planted_violation() -> None:
    assert set(PLANTS) == set(MONEY_CHECKS)


class TestTheGateway:
    check = "gateway_matches_ledger"

    async def test_a_payment_unknown_to_the_gateway_is_found(self, till: Till) -> None:
        await till.postgres.execute(
            "UPDATE payment SET key = key || '9', reference = 'pay_unknown' WHERE show_id = $1", till.show
        )

        assert self.check in await found(till)

    async def test_a_refund_missing_in_the_ledger_is_found(self, app: App, till: Till) -> None:
        row = require_row(await app.postgres.fetchrow("SELECT * FROM payment WHERE show_id = $1", till.show))
        await app.saga_runner.gateway.refund(
            key="by another client", reference=row["reference"], amount_minor=100, currency="EUR"
        )

        assert await found(till) == {self.check}

    async def test_a_refund_missing_at_the_gateway_is_found(self, till: Till) -> None:
        await till.postgres.execute(
            REFUND.format(why="'x'", amount=7, state="'done'", due="NULL", at="now()"), till.show
        )

        assert self.check in await found(till)

    async def test_money_for_a_declined_payment_is_found(self, till: Till) -> None:
        await till.postgres.execute("UPDATE payment SET step = 'declined' WHERE show_id = $1", till.show)

        assert self.check in await found(till)

    async def test_money_under_an_unknown_key_is_found(self, app: App, till: Till) -> None:
        held = await self.held(app, till)
        started = await app.payments.start(payment_request(held))
        assert started.payment is not None
        charge = await app.saga_runner.gateway.charge(app.saga_runner._charge_order(started.payment))
        assert charge.reference is not None
        await till.postgres.execute(
            "DELETE FROM payment WHERE show_id = $1 AND number = $2", till.show, held.number
        )

        assert self.check in await found(till)

    async def held(self, app: App, till: Till) -> Booking:
        return await hold(app, till.show, an_owner(), 8)


class TestAStatement:
    ours = OurPayment(7, 1, 1, "k", "pay_1", "paid", "EUR", 3000, 500, 200)

    @pytest.mark.parametrize(
        "came, back, currency, agrees",
        [
            (3000, 500, "EUR", True),
            (3000, 700, "EUR", True),  # requested, and its answer was lost
            (3000, 701, "EUR", False),
            (3000, 499, "EUR", False),
            (2999, 500, "EUR", False),
            (0, 0, None, False),
            (3000, 500, "USD", False),
        ],
    )
    def test_agrees_or_not(self, came: int, back: int, currency: str | None, agrees: bool) -> None:
        theirs = {"k": TheirPayment("pay_1", currency, came, back)}

        assert (not list(disagreements([self.ours], theirs))) is agrees

    def test_money_without_an_order_is_reported_as_foreign(self) -> None:
        theirs = {"a": TheirPayment("1", "EUR", 100, 0), "b": TheirPayment("2", "EUR", 0, 0)}

        assert len(list(unknown_payments(set(), theirs, {"a": 7, "b": 7}))) == 1
        assert not list(unknown_payments({"a"}, theirs, {"a": 7, "b": 7}))
