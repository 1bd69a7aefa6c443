"""Bookings that were paid for, through the saga runner and a real gateway, and what is known of them."""

from itertools import count
from typing import Any

from holdfast.app import App
from holdfast.audit import audit
from holdfast.bookings import Booking
from holdfast.payments.payment import PaymentRequest
from holdfast.payments.saga import PaymentStep
from holdfast.refunds.jobs import RefundJobs
from holdfast.refunds.refund import Refund, RefundRequest
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner

_keys = count(1)


def payment_request(booking: Booking, method: str = "tok_ok") -> PaymentRequest:
    return PaymentRequest(
        show_id=booking.show_id,
        number=booking.number,
        owner_id=booking.owner_id,
        request_id=f"purchase {next(_keys)}",
        body_hash=1,
        method=method,
        return_url="",
        salt="n",
    )


async def bought(
    app: App, show_id: int, *seats: int, method: str = "tok_ok", owner: int | None = None
) -> Booking:
    booking = await hold(app, show_id, owner or an_owner(), *seats)
    started = await app.saga_runner.pay(payment_request(booking, method))
    assert started.payment is not None
    assert started.payment.step is PaymentStep.PAID, started
    return await now_of(app, booking)


async def now_of(app: App, booking: Booking) -> Booking:
    found = await app.bookings.booking(booking.show_id, booking.number)
    assert found is not None
    return found


async def refunds_of(app: App, booking: Booking) -> list[Refund]:
    key = (booking.show_id, booking.number)
    return (await app.refund_store.refunds_of([key]))[key]


def a_refund(booking: Booking, **changes: Any) -> RefundRequest:
    return RefundRequest(
        booking=booking, **{"why": f"admin:1:{next(_keys)}", "note": "test", "actor_id": 1, **changes}
    )


def refund_jobs(app: App) -> RefundJobs:
    return RefundJobs(app.refund_store, app.refunds, at_once_max=8)


async def account(app: App, show_id: int, account: str) -> int:
    sql = "SELECT coalesce(sum(amount_minor), 0)::bigint FROM journal WHERE show_id = $1 AND account = $2"
    return int(await app.postgres.fetchval(sql, show_id, account))


async def violations(app: App, *show_ids: int) -> list[str]:
    """What an audit finds wrong with these shows: in the ledger, on the map, at the gateway."""
    report = await audit(app.postgres, app.bookings, app.claims, app.saga_runner.gateway)
    return [f"{v.check}: {v.what}" for v in report.violations if v.show_id in show_ids]
