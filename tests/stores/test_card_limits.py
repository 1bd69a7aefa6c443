"""A limit of seats per card holds on every way of paying, and nothing can make it leak.

The limit is that of the booking's terms. Where the gateway knows the card beforehand it is checked before any
money moves; where the payer chooses the card on the gateway's page, money beyond the limit goes back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState, public_id
from holdfast.organisers.show_forms import ShowChange
from holdfast.payments.payment import Payment
from holdfast.payments.saga import PaymentStep
from holdfast.payments.store import PaymentStart
from holdfast.pricing.terms import Terms
from holdfast.refunds.refund import RefundScope, RefundState
from holdfast.web.caller import Scope
from tests.support.gateway_state import Bank, bank_of
from tests.support.ledger_payments import NO, confirmed, request_for
from tests.support.own_engines import hold
from tests.support.paid_bookings import a_refund, bought, now_of, payment_request, refunds_of, violations
from tests.support.show_fixture import an_owner

Show = Callable[..., Awaitable[int]]
TWO = Terms(card_seats_max=2)


@pytest.fixture
async def bank(app: App) -> AsyncIterator[Bank]:
    async with bank_of(app.config) as opened:
        yield opened


async def pays(app: App, booking: Booking, card: str = "visa") -> PaymentStart:
    return await app.payments.start(request_for(booking, card=card))


async def pays_on_page(app: App, bank: Bank, booking: Booking, card: str) -> Payment:
    """The payer chooses the card on the gateway's page and comes back."""
    started = await app.saga_runner.pay(payment_request(booking, method=""))
    assert started.payment is not None
    (there,) = await bank.by_key(started.payment.key)
    await bank.decides(there, f"tok_ok:{card}")
    return await app.saga_runner.refresh_from_gateway(started.payment)


async def test_twins_of_one_payment_count_once(app: App, a_show: Show) -> None:
    """Six requests at once for a single seat: one starts, and the card has one seat, not six."""
    show_id = await a_show(sold_on=TWO)
    first = await hold(app, show_id, an_owner(), 1)
    twin = request_for(first, card="visa")
    requests = [twin, twin, twin, *(request_for(first, card="visa") for _ in range(3))]

    answers = await app.payments.start_many(requests)
    second = await pays(app, await hold(app, show_id, an_owner(), 2))
    third = await pays(app, await hold(app, show_id, an_owner(), 3))

    assert sorted(answer.outcome for answer in answers) == ["charge", *["paying"] * 3, *["same"] * 2]
    assert (second.outcome, third.outcome) == ("charge", "card")


async def test_requests_that_cannot_start_count_nothing(app: App, a_show: Show) -> None:
    show_id = await a_show(sold_on=TWO)
    lapsed, cancelled, foreign, good = [await hold(app, show_id, an_owner(), seat) for seat in range(1, 5)]
    await app.postgres.execute(
        "UPDATE booking SET expires_at = now() WHERE show_id = $1 AND number = $2", show_id, lapsed.number
    )
    await app.bookings.cancel(cancelled, cancelled.owner_id)

    refused = await app.payments.start_many(
        [
            request_for(lapsed, card="visa"),
            request_for(cancelled, card="visa"),
            request_for(foreign, card="visa", owner_id=an_owner()),
        ]
    )
    after = [await pays(app, good), await pays(app, await hold(app, show_id, an_owner(), 5))]

    assert "card" not in {answer.outcome for answer in refused}
    assert [answer.outcome for answer in after] == ["charge", "charge"]


async def test_a_card_beyond_its_limit_is_refused_beside_another_card_for_the_same_seats(
    app: App, a_show: Show
) -> None:
    show_id = await a_show(sold_on=TWO)
    await pays(app, await hold(app, show_id, an_owner(), 1, 2))
    booking = await hold(app, show_id, an_owner(), 3)

    over, beside = await app.payments.start_many(
        [request_for(booking, card="visa"), request_for(booking, card="master")]
    )

    assert (over.outcome, over.card_seats_max) == ("card", 2)
    assert beside.outcome == "paying"  # to be retried; its hold is not gone


@pytest.mark.parametrize("end", ["declined", "expired", "refunded", "refunded in part"])
async def test_seats_that_were_given_back_are_free_for_the_card(app: App, a_show: Show, end: str) -> None:
    show_id = await a_show(sold_on=TWO)
    booking = await hold(app, show_id, an_owner(), 1, 2)
    payment = (await pays(app, booking)).payment
    assert payment is not None
    if end == "declined":
        await app.payments.give_back(payment, NO, PaymentStep.DECLINED)
    elif end == "expired":
        await app.payments.release(payment, is_sure=True)
    else:
        await confirmed(app, payment)
        what = {"what": RefundScope.SEATS, "seats": (1,)} if "part" in end else {}
        await app.refund_store.decide(a_refund(await now_of(app, booking), **what))
    freed = 1 if "part" in end else 2

    again = [await pays(app, await hold(app, show_id, an_owner(), seat)) for seat in (3, 4, 5)]

    assert [one.outcome for one in again] == ["charge"] * freed + ["card"] * (3 - freed)


async def test_the_gateways_page_takes_no_more_seats_than_the_limit(
    app: App, a_show: Show, bank: Bank
) -> None:
    show_id = await a_show(sold_on=TWO)
    bookings = [await hold(app, show_id, an_owner(), 2 * i, 2 * i + 1) for i in range(4)]

    payments = [await pays_on_page(app, bank, booking, "shared") for booking in bookings]
    again = await pays_on_page(app, bank, bookings[1], "another")

    assert [payment.step for payment in payments] == [PaymentStep.PAID, *[PaymentStep.RETURNED] * 3]
    assert {payment.booking_state for payment in payments[1:]} == {BookingState.HELD}
    assert {payment.code for payment in payments[1:]} == {"card_limit"}
    (refund,) = await refunds_of(app, bookings[2])
    assert (refund.why, refund.amount_minor, refund.seats) == ("card", 3000, ())
    assert again.step is PaymentStep.PAID
    assert await violations(app, show_id) == []


async def test_money_beyond_the_limit_goes_back_by_itself(app: App, a_show: Show, bank: Bank) -> None:
    show_id = await a_show(sold_on=TWO)
    await bought(app, show_id, 1, 2, method="tok_ok:shared")
    booking = await hold(app, show_id, an_owner(), 3)
    await pays_on_page(app, bank, booking, "shared")
    (refund,) = await refunds_of(app, booking)

    done = await app.refunds.carry_out(refund)

    assert done.state is RefundState.DONE
    assert [one.retained_minor for one in await bank.of(public_id(show_id, booking.number))] == [0]
    assert await violations(app, show_id) == []


async def test_pages_paid_at_the_same_moment_share_the_limit(app: App, a_show: Show, bank: Bank) -> None:
    show_id = await a_show(sold_on=TWO)
    bookings = [await hold(app, show_id, an_owner(), seat) for seat in range(6)]

    payments = await asyncio.gather(*(pays_on_page(app, bank, booking, "shared") for booking in bookings))

    assert sorted(payment.step for payment in payments) == ["paid"] * 2 + ["returned"] * 4
    assert await violations(app, show_id) == []


async def test_late_money_of_a_card_at_its_limit_goes_back(app: App, a_show: Show, bank: Bank) -> None:
    show_id = await a_show(sold_on=TWO)
    booking = await hold(app, show_id, an_owner(), 1)
    started = await app.saga_runner.pay(payment_request(booking, method=""))
    assert started.payment is not None
    await app.saga_runner._release(started.payment, is_sure=False)
    await bought(app, show_id, 2, 3, method="tok_ok:shared")
    (there,) = await bank.by_key(started.payment.key)
    await bank.decides(there, "tok_ok:shared")

    after = await app.saga_runner.refresh_from_gateway(started.payment)

    assert (after.step, after.booking_state) == (PaymentStep.RETURNED, BookingState.FAILED)
    assert [refund.why for refund in await refunds_of(app, booking)] == ["card"]
    assert await violations(app, show_id) == []


@pytest.mark.parametrize("limit_then, limit_now, expected", [(1, None, "card"), (None, 1, "charge")])
async def test_the_limit_is_that_of_the_bookings_terms(
    app: App, a_show: Show, limit_then: int | None, limit_now: int | None, expected: str
) -> None:
    show_id = await a_show(sold_on=Terms(card_seats_max=limit_then))
    booking = await hold(app, show_id, an_owner(), 1, 2)
    editor = app.show_editor(Scope(1, is_admin=True))
    await editor.change_show(show_id, ShowChange(card_seats_max=limit_now))

    started = await app.saga_runner.pay(payment_request(booking, method="tok_ok:mine"))

    assert started.outcome == expected
