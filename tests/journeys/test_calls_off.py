"""A payment is cancelled and its money arrives anyway: the buyer gets one answer, and it is true."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from holdfast.app import App
from holdfast.bookings import BookingState, from_public_id
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.jobs import PaymentJobs
from holdfast.payments.payment import Payment, PaymentRequest
from holdfast.payments.saga import PaymentStep
from tests.support.gateway_state import Bank, bank_of
from tests.support.shows import Fan
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]
DUE = "UPDATE payment SET due_at = now() WHERE show_id = $1"


@pytest.fixture
async def bank(app: App) -> AsyncIterator[Bank]:
    async with bank_of(app.config) as opened:
        yield opened


async def held(fan: Fan, show_id: int, key: str | None = None) -> str:
    response = await fan.holds(show_id, "A-1", "A-2", key=key)
    assert response.status_code == 201, response.text
    return str(response.json()["booking_id"])


async def started(app: App, fan: Fan, booking: str) -> Payment:
    """A process has recorded the charge, and has not sent it to the gateway yet."""
    show_id, number = from_public_id(booking)
    ask = PaymentRequest(
        show_id=show_id,
        number=number,
        owner_id=fan.account_id,
        request_id=f"of {booking}",
        body_hash=1,
        method="tok_ok",
        return_url="",
        salt="s",
    )
    payment = (await app.payments.start(ask)).payment
    assert payment is not None
    return payment


async def state_of(fan: Fan, booking: str) -> str:
    return str((await fan.get(f"/bookings/{booking}")).json()["state"])


@pytest.mark.parametrize("key", ["my-key", None])
async def test_a_late_capture_confirms_a_live_hold_with_and_without_a_key(
    a_show: Show, alice: Fan, app: App, bank: Bank, key: str | None
) -> None:
    booking = await held(alice, await a_show(), key)
    assert (await alice.post(f"/bookings/{booking}/pay", {"method": "tok_3ds"})).status_code == 202
    payment = await app.payments.latest(*from_public_id(booking))
    assert payment is not None
    await app.payments.give_back(payment, Charge(answer=GatewayAnswer.YES), PaymentStep.CALLED_OFF)
    (taken,) = await bank.of(booking)
    await bank.decides(taken)

    after = await app.saga_runner.refresh_from_gateway(payment)

    assert (after.step, after.booking_state) == (PaymentStep.PAID, BookingState.CONFIRMED)
    assert [one.retained_minor for one in await bank.of(booking)] == [3000]


async def test_cancelling_during_a_charge_does_not_claim_the_payment_is_cancelled(
    a_show: Show, alice: Fan, app: App
) -> None:
    booking = await held(alice, await a_show())
    payment = await started(app, alice, booking)

    called_off = await alice.delete(f"/bookings/{booking}/payment")
    between = await state_of(alice, booking)
    await app.saga_runner.carry_on(payment, is_first=True)

    assert (called_off.status_code, between) == (202, "paying")
    assert called_off.headers["retry-after"] == "1"
    assert await state_of(alice, booking) == "confirmed"


async def test_a_charge_that_never_set_out_is_off_when_its_turn_is_over(
    a_show: Show, alice: Fan, app: App
) -> None:
    show_id = await a_show()
    booking = await held(alice, show_id)
    await started(app, alice, booking)
    assert (await alice.delete(f"/bookings/{booking}/payment")).status_code == 202
    await app.postgres.execute(DUE, show_id)

    await PaymentJobs(app.payments, app.saga_runner).carry_on()

    await until(lambda: is_in(alice, booking, "held"))


async def is_in(fan: Fan, booking: str, state: str) -> bool:
    return await state_of(fan, booking) == state
