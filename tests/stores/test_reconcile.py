"""Differences between the gateway's books and the ledger are found and settled, or else reported (R23)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.payments.differences import DifferenceKind
from holdfast.payments.gateway import GatewayDown
from holdfast.payments.jobs import ReconciliationJobs
from holdfast.payments.payment import Payment
from holdfast.payments.saga import PaymentStep
from tests.support.gateway_webhooks import charged
from tests.support.ledger_payments import NO, confirmed, paying, step_of
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner

Show = Callable[..., Awaitable[int]]

# Several statements at once take no parameters.
LOSE = """CREATE TABLE lost AS SELECT * FROM payment WHERE key = '{key}';
          DELETE FROM payment WHERE key = '{key}'"""
FIND = "INSERT INTO payment SELECT * FROM lost; DROP TABLE lost"


async def older(app: App, payment: Payment, by_s: int = 120) -> None:
    """Requested a while ago: no process is working on it now."""
    sql = "UPDATE payment SET requested_at = requested_at - $2 * interval '1 s' WHERE key = $1"
    await app.postgres.execute(sql, payment.key, by_s)


async def compared(app: App, *payments: Payment, back_s: int = 600) -> dict[str, DifferenceKind]:
    """The differences that remain for these payments after a comparison."""
    outcome = await app.reconciliation.compare(await app.reconciliation.ago(timedelta(seconds=back_s)))
    keys = {payment.key for payment in payments}
    return {one.key: one.kind for one in outcome.differences if one.key in keys}


async def listed(app: App, payment: Payment) -> list[Any]:
    return [one for one in (await app.reconciliation.latest()).differences if one.key == payment.key]


@pytest.mark.parametrize(
    "end", [PaymentStep.LOOK_UP, PaymentStep.DECLINED, PaymentStep.EXPIRED, PaymentStep.WATCH]
)
async def test_money_taken_there_is_booked_here_and_once(app: App, a_show: Show, end: PaymentStep) -> None:
    show_id = await a_show()
    payment = await paying(app, show_id, 1, 2)
    match end:
        case PaymentStep.LOOK_UP:
            await app.payments.advance(payment, PaymentStep.LOOK_UP, None, 60_000)
        case PaymentStep.DECLINED:
            await app.payments.give_back(payment, NO, PaymentStep.DECLINED)
        case _:
            await app.payments.release(payment, is_sure=end is PaymentStep.EXPIRED, due_ms=60_000)
            await app.holds.update_map(show_id, Settlement("release", payment.claim))
    await charged(app, payment)
    await older(app, payment)

    left = await compared(app, payment)
    again = await compared(app, payment)

    booking = await app.bookings.booking(show_id, payment.number)
    assert (left, again) == ({}, {})
    assert (await step_of(app, payment), booking and booking.state) == (
        PaymentStep.PAID,
        BookingState.CONFIRMED,
    )
    sql = "SELECT sum(amount_minor)::int FROM journal WHERE show_id = $1 AND account = 'gateway:sandbox'"
    assert await app.postgres.fetchval(sql, show_id) == 3000


async def test_money_for_seats_sold_meanwhile_is_refunded(app: App, a_show: Show) -> None:
    show_id = await a_show()
    payment = await paying(app, show_id, 1)
    await app.payments.release(payment, is_sure=True)
    await app.holds.update_map(show_id, Settlement("release", payment.claim))
    await hold(app, show_id, an_owner(), 1)
    await charged(app, payment)
    await older(app, payment)

    assert await compared(app, payment) == {}
    assert await step_of(app, payment) is PaymentStep.RETURNED


async def test_a_payment_of_this_moment_is_not_meddled_with(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    await charged(app, payment)

    assert await compared(app, payment) == {}
    assert await step_of(app, payment) is PaymentStep.CHARGE


async def test_a_payment_unknown_to_the_gateway_is_reported(app: App, a_show: Show) -> None:
    payment = await confirmed(app, await paying(app, await a_show(), 1))

    assert await compared(app, payment) == {payment.key: DifferenceKind.MISSING}
    (page,) = await listed(app, payment)
    assert (page.ours, page.theirs) == ("paid 15.00 EUR", "no such payment")


async def test_a_different_amount_is_reported_and_nothing_is_booked(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    await charged(app, payment, amount_minor=1)
    await older(app, payment)

    assert await compared(app, payment) == {payment.key: DifferenceKind.AMOUNT}
    assert await step_of(app, payment) is PaymentStep.CHARGE


async def paid_for_real(app: App, show_id: int) -> Payment:
    payment = await paying(app, show_id, 1)
    charge = await charged(app, payment)
    return await confirmed(app, payment, charge)


async def test_a_refund_made_only_at_the_gateway_is_reported(app: App, a_show: Show) -> None:
    payment = await paid_for_real(app, await a_show())
    before = await compared(app, payment)
    gateway, reference = app.saga_runner.gateway, str(payment.reference)
    await gateway.refund(key=f"{payment.key}_x", reference=reference, amount_minor=500, currency="EUR")

    assert before == {}
    assert await compared(app, payment) == {payment.key: DifferenceKind.REFUNDED}


async def test_our_key_missing_in_the_ledger_is_reported_until_it_is_found(app: App, a_show: Show) -> None:
    payment = await paid_for_real(app, await a_show())
    await app.postgres.execute(LOSE.format(key=payment.key))

    lost = await compared(app, payment)
    await app.postgres.execute(FIND)
    found = await compared(app, payment)

    assert (lost, found) == ({payment.key: DifferenceKind.LOST}, {})


async def test_a_difference_is_checked_again_until_it_is_settled_at_any_age(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    charge = await charged(app, payment, amount_minor=1)
    await older(app, payment)
    await compared(app, payment)

    later = await compared(app, payment, back_s=0)
    sql = "UPDATE payment SET amount_minor = 1 WHERE key = $1"
    await app.postgres.execute(sql, payment.key)
    settled = await compared(app, payment, back_s=0)

    assert charge.amount_minor == 1
    assert (later, settled) == ({payment.key: DifferenceKind.AMOUNT}, {})
    assert await listed(app, payment) == []


async def test_a_payment_watched_for_long_with_a_silent_gateway_is_reported(app: App, a_show: Show) -> None:
    payment = await paying(app, await a_show(), 1)
    await charged(app, payment, "tok_stuck")
    await app.payments.release(payment, is_sure=False, due_ms=60_000)
    await older(app, payment, 7200)

    assert await compared(app, payment) == {payment.key: DifferenceKind.WATCHED}


async def test_pages_are_read_to_the_end(app: App, a_show: Show) -> None:
    show_id = await a_show()
    first, last = await paying(app, show_id, 1), await paying(app, show_id, 2)
    others = [msgspec.structs.replace(first, key=f"{first.key} of another shop {n}") for n in range(100)]
    await charged(app, first)
    await asyncio.gather(*(charged(app, other) for other in others))
    await charged(app, last)
    await older(app, first)
    await older(app, last)

    assert await compared(app, first, last) == {}
    assert {await step_of(app, payment) for payment in (first, last)} == {PaymentStep.PAID}


class TestTheJob:
    async def test_only_one_compares_at_a_time(self, app: App) -> None:
        async with app.reconciliation.lock() as first, app.reconciliation.lock() as second:
            assert (first, second) == (True, False)
        async with app.reconciliation.lock() as later:
            assert later is True

    async def test_it_goes_on_where_the_latest_began_and_not_too_often(self, app: App) -> None:
        books = app.reconciliation
        await app.postgres.execute("DELETE FROM reconciliation_run")
        first = await books.since(timedelta(seconds=45))
        await ReconciliationJobs(books, app.config).compare()
        at_once = await books.since(timedelta(seconds=45))
        began: datetime = await app.postgres.fetchval("SELECT began_at FROM reconciliation_run")
        later = await books.since(timedelta(seconds=0))

        assert first is not None
        assert later is not None
        assert began - first.at > timedelta(hours=23)
        assert at_once is None
        assert timedelta(0) < began - later.at < timedelta(hours=1)

    async def test_a_silent_gateway_does_not_move_the_mark(self, config: Config, app: App) -> None:
        await ReconciliationJobs(app.reconciliation, app.config).compare()
        before = await app.postgres.fetchval("SELECT began_at FROM reconciliation_run")
        async with open_app(replace(config, gateway_url="http://127.0.0.1:9")) as cut_off:
            with pytest.raises(GatewayDown):
                await cut_off.reconciliation.compare(before)

        assert await app.postgres.fetchval("SELECT began_at FROM reconciliation_run") == before

    async def test_two_comparisons_at_once_settle_once(self, app: App, a_show: Show) -> None:
        payment = await paying(app, await a_show(), 1, 2)
        await charged(app, payment)
        await older(app, payment)

        await asyncio.gather(*(compared(app, payment) for _ in range(3)))

        sql = "SELECT count(*) FROM journal WHERE show_id = $1 AND account = 'gateway:sandbox'"
        assert await app.postgres.fetchval(sql, payment.show_id) == 1
        assert await step_of(app, payment) is PaymentStep.PAID
