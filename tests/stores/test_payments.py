"""Payments in the ledger: what happens to a booking and to its payment is one transaction."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.claim import Settlement
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.payment import Payment
from holdfast.payments.saga import UNDER_WAY, PaymentStep
from holdfast.payments.store import CapturedPayment
from tests.support.ledger_payments import NO, confirmed, paying, request_for
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner

Show = Callable[..., Awaitable[int]]


async def test_a_hold_that_is_paid_for_is_paying_with_another_fence_and_a_later_end(
    either_app: App, a_show: Show
) -> None:
    show_id = await a_show()
    before = await hold(either_app, show_id, an_owner(), 1, 2)

    (started,) = await either_app.payments.start_many([request_for(before)])

    after = await either_app.bookings.booking(show_id, before.number)
    assert after is not None
    assert started.payment is not None
    assert (started.outcome, after.state) == ("charge", BookingState.PAYING)
    assert after.fence == started.payment.fence > before.fence
    assert 119 < (after.expires_at - before.expires_at).total_seconds() < 121
    assert started.payment.step is PaymentStep.CHARGE
    assert started.payment.amount_minor == 3000


async def test_of_many_payments_for_one_booking_one_starts(either_app: App, a_show: Show) -> None:
    booking = await hold(either_app, await a_show(), an_owner(), 1)

    answers = await either_app.payments.start_many([request_for(booking) for _ in range(5)])

    assert [answer.outcome for answer in answers] == ["charge", *["paying"] * 4]


async def test_the_same_request_is_the_same_payment(either_app: App, a_show: Show) -> None:
    booking = await hold(either_app, await a_show(), an_owner(), 1)
    ask = request_for(booking)

    first, twin = await either_app.payments.start_many([ask, ask])
    again = await either_app.payments.start(ask)

    assert [one.outcome for one in (first, twin, again)] == ["charge", "same", "same"]
    assert {one.payment.attempt for one in (first, twin, again) if one.payment} == {1}
    assert again.body_hash == ask.body_hash


@pytest.mark.parametrize("how", ["of another owner", "lapsed", "unknown", "cancelled"])
async def test_a_booking_that_is_not_held_cannot_be_paid(app: App, a_show: Show, how: str) -> None:
    show_id = await a_show()
    booking = await hold(app, show_id, an_owner(), 1)
    ask = request_for(booking)
    expected = {"of another owner": "none", "lapsed": "held", "unknown": "none", "cancelled": "cancelled"}
    if how == "of another owner":
        ask = request_for(booking, owner_id=an_owner())
    if how == "unknown":
        ask = request_for(booking, number=booking.number + 1_000_000)
    if how == "lapsed":
        await app.postgres.execute("UPDATE booking SET expires_at = now() WHERE show_id = $1", show_id)
    if how == "cancelled":
        await app.bookings.cancel(booking, booking.owner_id)

    (started,) = await app.payments.start_many([ask])

    assert started.outcome == expected[how]
    assert await app.payments.latest(show_id, booking.number) is None


async def test_money_that_came_confirms_with_tickets_books_and_a_fact(either_app: App, a_show: Show) -> None:
    show_id = await a_show()
    payment = await paying(either_app, show_id, 3, 4)

    after = await confirmed(either_app, payment)
    again = await confirmed(either_app, payment)

    postgres = either_app.postgres
    assert (after.step, after.booking_state) == (PaymentStep.PAID, BookingState.CONFIRMED)
    assert again.step is PaymentStep.PAID
    tickets = await postgres.fetch("SELECT seat FROM ticket WHERE show_id = $1 ORDER BY seat", show_id)
    assert [row["seat"] for row in tickets] == [3, 4]
    lines = await postgres.fetch("SELECT account, amount_minor FROM journal WHERE show_id = $1", show_id)
    expected = {"gateway:sandbox": 3000, "organiser": -2850, "fee": -100, "tax": -50}
    assert {row["account"]: row["amount_minor"] for row in lines} == expected
    kinds = await postgres.fetch(
        "SELECT kind FROM outbox WHERE number > 0 AND show_id = $1 ORDER BY id", show_id
    )
    assert [row["kind"] for row in kinds] == ["booking.held", "booking.paying", "booking.confirmed"]


WRONG = [
    Charge(answer=GatewayAnswer.YES, reference="pay_1", amount_minor=1, currency="EUR"),
    Charge(answer=GatewayAnswer.YES, reference="pay_1", amount_minor=3000, currency="USD"),
    Charge(answer=GatewayAnswer.YES, reference="pay_1"),
]


@pytest.mark.parametrize("captured", WRONG, ids=["amount", "currency", "none"])
@pytest.mark.parametrize("before", ["charge", "look_up", "call_off", "watch", "declined", "expired"])
async def test_the_ledger_confirms_no_other_amount_from_any_step(
    app: App, a_show: Show, captured: Charge, before: str
) -> None:
    show_id = await a_show()
    payment = await paying(app, show_id, 3, 4)
    step = PaymentStep(before)
    if step in UNDER_WAY:
        await app.payments.advance(payment, step, None, 60_000)
    elif step is PaymentStep.DECLINED:
        await app.payments.give_back(payment, NO, PaymentStep.DECLINED)
    else:
        await app.payments.release(payment, is_sure=step is PaymentStep.EXPIRED, due_ms=60_000)

    (after,) = await app.payments.confirm_many([CapturedPayment(payment, captured, 100, 50)])

    assert after.step is step
    assert after.booking_state is not BookingState.CONFIRMED
    assert await app.postgres.fetchval("SELECT count(*) FROM journal WHERE show_id = $1", show_id) == 0
    assert await app.postgres.fetchval("SELECT count(*) FROM ticket WHERE show_id = $1", show_id) == 0


async def test_a_decline_gives_the_hold_its_time_back_and_another_key(either_app: App, a_show: Show) -> None:
    show_id = await a_show()
    before = await hold(either_app, show_id, an_owner(), 1)
    ask = request_for(before)
    first = await either_app.payments.start(ask)
    assert first.payment is not None

    after = await either_app.payments.give_back(first.payment, NO, PaymentStep.DECLINED)
    second = await either_app.payments.start(ask)

    held = await either_app.bookings.booking(show_id, before.number)
    assert held is not None
    assert (after.step, after.booking_state, after.reason) == (
        PaymentStep.DECLINED,
        BookingState.HELD,
        NO.reason,
    )
    assert second.outcome == "charge"
    assert second.payment is not None
    assert (second.payment.attempt, second.payment.key != first.payment.key) == (2, True)
    assert second.payment.hold_left_ms == pytest.approx(first.payment.hold_left_ms, abs=5000)


async def test_time_up_lets_the_seats_go(either_app: App, a_show: Show) -> None:
    show_id = await a_show()
    payment = await paying(either_app, show_id, 1, 2)

    after = await either_app.payments.release(payment, is_sure=True)
    await either_app.holds.update_map(show_id, Settlement("release", payment.claim))

    assert (after.step, after.booking_state) == (PaymentStep.EXPIRED, BookingState.EXPIRED)
    assert (await paying(either_app, show_id, 1, 2)).step is PaymentStep.CHARGE


class TestLate:
    async def late(self, app: App, show_id: int) -> Payment:
        payment = await paying(app, show_id, 5, 6)
        gone = await app.payments.release(payment, is_sure=False)
        await app.holds.update_map(show_id, Settlement("release", payment.claim))
        assert gone.step is PaymentStep.WATCH
        late = await confirmed(app, gone)
        assert late.step is PaymentStep.LATE
        return late

    async def test_money_for_seats_that_are_free_books_them(self, app: App, a_show: Show) -> None:
        show_id = await a_show()
        late = await self.late(app, show_id)

        after = await app.payments.book_late(late, may_book=True)

        assert (after.step, after.booking_state) == (PaymentStep.PAID, BookingState.CONFIRMED)
        owed = await self.account(app, show_id, "owed")
        assert (owed, await self.account(app, show_id, "gateway:sandbox")) == (0, 3000)

    async def test_money_for_seats_of_another_owner_is_refunded_once(self, app: App, a_show: Show) -> None:
        show_id = await a_show()
        late = await self.late(app, show_id)
        rival = await hold(app, show_id, an_owner(), 6)

        after = await app.payments.book_late(late, may_book=True)
        again = await app.payments.book_late(late, may_book=True)

        refunds = await app.postgres.fetch("SELECT * FROM refund WHERE show_id = $1", show_id)
        assert (after.step, after.booking_state, again.step) == (
            PaymentStep.RETURNED,
            BookingState.FAILED,
            PaymentStep.RETURNED,
        )
        assert [(row["why"], row["amount_minor"]) for row in refunds] == [("late", 3000)]
        assert await self.account(app, show_id, "owed") == -3000
        found = await app.bookings.booking(show_id, rival.number)
        assert found == msgspec.structs.replace(rival, sale_epoch=0)

    async def test_money_for_a_hold_that_was_called_off_and_still_stands_confirms_it(
        self, app: App, a_show: Show
    ) -> None:
        show_id = await a_show()
        payment = await paying(app, show_id, 1)
        called_off = await app.payments.give_back(payment, NO, PaymentStep.CALLED_OFF)

        late = await confirmed(app, called_off)
        after = await app.payments.book_late(late, may_book=True)

        assert (after.step, after.booking_state) == (PaymentStep.PAID, BookingState.CONFIRMED)

    async def account(self, app: App, show_id: int, account: str) -> int:
        sql = "SELECT coalesce(sum(amount_minor), 0)::int FROM journal WHERE show_id = $1 AND account = $2"
        return int(await app.postgres.fetchval(sql, show_id, account))
