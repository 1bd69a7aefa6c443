"""Payments in the ledger without a gateway: started, confirmed, declined."""

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.bookings import Booking
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.payment import Payment, PaymentRequest
from holdfast.payments.saga import PaymentStep
from holdfast.payments.store import CapturedPayment
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner

YES = Charge(answer=GatewayAnswer.YES, reference="pay_1")
NO = Charge(answer=GatewayAnswer.NO, reason="Your bank declined.", code="card_declined")
_numbers = count(1)


def request_for(booking: Booking, **change: Any) -> PaymentRequest:
    request = PaymentRequest(
        show_id=booking.show_id,
        number=booking.number,
        owner_id=booking.owner_id,
        request_id=f"pay {next(_numbers)}",
        body_hash=1,
        method="tok_ok",
        return_url="",
        salt="n",
    )
    return msgspec.structs.replace(request, **change)


async def paying(app: App, show_id: int, *seats: int) -> Payment:
    (started,) = await app.payments.start_many([request_for(await hold(app, show_id, an_owner(), *seats))])
    assert started.outcome == "charge"
    assert started.payment is not None
    return started.payment


async def confirmed(app: App, payment: Payment, charge: Charge = YES) -> Payment:
    """The gateway has captured the amount of the payment, unless the charge has another one."""
    if charge.amount_minor is None:
        charge = replace(charge, amount_minor=payment.amount_minor, currency=payment.currency)
    (after,) = await app.payments.confirm_many([CapturedPayment(payment, charge, 100, 50)])
    return after


async def step_of(app: App, payment: Payment) -> PaymentStep:
    found = await app.payments.payment(payment.show_id, payment.number, payment.attempt)
    assert found is not None
    return found.step


async def waiting(app: App, show_id: int, *seats: int) -> Payment:
    """A payment that waits for its payer: no worker is charging it."""
    payment = await paying(app, show_id, *seats)
    assert await app.payments.advance(
        payment, PaymentStep.LOOK_UP, Charge(answer=GatewayAnswer.UNKNOWN), 60_000
    )
    return payment
