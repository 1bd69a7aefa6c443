"""A webhook as Stripe sends it: an event with the object as it was then, and Stripe-Signature. No I/O."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.payment import SandboxPayment, SandboxWebhook
from holdfast.sandbox.webhook import MODE, signature
from tests.fakes.stripe_objects import charge_json, intent_json

KINDS = {
    "payment.processing": "payment_intent.processing",
    "payment.captured": "payment_intent.succeeded",
    "payment.declined": "payment_intent.payment_failed",
    "payment.cancelled": "payment_intent.canceled",
    "refund.succeeded": "charge.refunded",
    "refund.failed": "refund.failed",
}

_encode = msgspec.json.Encoder().encode


def render_stripe_event(
    webhook: SandboxWebhook, payment: SandboxPayment, secrets: Sequence[bytes], at: int
) -> tuple[dict[str, str], bytes]:
    """Headers and body. `payment` is as it is now; what it was then is in the webhook."""
    then = msgspec.json.decode(webhook.body)
    payment = replace(
        payment, state=then["payment"]["state"], refunded_minor=then["payment"]["refunded_minor"]
    )
    body = _encode(
        {
            "id": webhook.id,
            "object": "event",
            "type": KINDS[webhook.kind],
            "livemode": MODE == "live",
            "created": int(webhook.created_at),
            "data": {"object": _about(webhook.kind, payment, then)},
        }
    )
    return {"Stripe-Signature": signature(secrets, body, at)}, body


def _about(kind: str, payment: SandboxPayment, then: dict[str, Any]) -> dict[str, Any]:
    intent = intent_json(payment, "", expands=False)
    match kind:
        case "refund.succeeded":
            return {**charge_json(payment), "currency": intent["currency"], "metadata": intent["metadata"]}
        case "refund.failed":
            refund = then["refund"]
            return {
                "id": refund["id"],
                "object": "refund",
                "amount": refund["amount_minor"],
                "currency": intent["currency"],
                "payment_intent": intent["id"],
                "status": "failed",
                "metadata": {},
            }
    return intent
