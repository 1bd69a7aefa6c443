"""Webhooks of the sandbox in the words of other gateways, read by their adapters (R23)."""

import time
from pathlib import Path

import pytest

from holdfast.payments.gateway import GatewayAnswer, Webhook
from tests.fakes.scripted_server import Oracle, an_oracle
from tests.support.gateway_setups import Counter, a_counter, a_sandbox
from tests.support.wait import until

# The action at the gateway, and the kind of webhook that follows.
STRIPE = {
    "paid": "payment_intent.succeeded",
    "declined": "payment_intent.payment_failed",
    "called off": "payment_intent.canceled",
    "refunded": "charge.refunded",
}
RAZORPAY = {"paid": "payment.authorized", "declined": "payment.failed", "refunded": "refund.processed"}


async def webhook_of(oracle: Oracle, counter: Counter, kind: str) -> Webhook:
    """The notice of that kind, once it has come."""
    found: list[Webhook] = []

    async def has_come() -> bool:
        webhooks = [
            counter.gateway.parse_webhook(raw, headers, time.time()) for raw, headers in oracle.raw_requests
        ]
        found[:] = [notice for notice in webhooks if notice.kind == kind]
        return bool(found)

    await until(has_come)
    return found[0]


async def made(counter: Counter, what: str) -> tuple[str, str | None]:
    """Key and reference of a payment to which that was done."""
    gateway, order = counter.gateway, counter.order("")
    charge = await gateway.charge(order)
    assert charge.reference is not None
    if what == "called off":
        await gateway.call_off(key=order.key, reference=charge.reference)
    else:
        await counter.choose(charge, "decline" if what == "declined" else "pay")
    if what == "refunded":
        assert (await gateway.look_up(key=order.key, reference=charge.reference)).answer is GatewayAnswer.YES
        await gateway.refund(key="back-of-it", reference=charge.reference, amount_minor=4500, currency="EUR")
    return order.key, charge.reference


@pytest.mark.parametrize(
    "name, what, kind",
    [
        *(("stripe", what, kind) for what, kind in STRIPE.items()),
        *(("razorpay", what, kind) for what, kind in RAZORPAY.items()),
    ],
)
async def test_events_are_sent_in_the_gateways_own_format(
    name: str, what: str, kind: str, tmp_path: Path
) -> None:
    async with (
        an_oracle() as oracle,
        a_sandbox(tmp_path, f"{oracle.url}/webhooks/{name}") as url,
        a_counter(name, url) as counter,
    ):
        key, reference = await made(counter, what)

        notice = await webhook_of(oracle, counter, kind)

    assert (notice.reference, notice.amount_minor, notice.currency) == (reference, 4500, "EUR")
    assert notice.key == (
        key if name == "stripe" else None
    )  # Razorpay's payments do not carry the order's notes
    assert notice.mode == "test"
