"""A notice as Stripe sends it: an event with the object as it was then, and Stripe-Signature. No I/O."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.dialects.stripe_intent import charge_of, intent_of
from holdfast.sandbox.payment import Notice, Payment
from holdfast.sandbox.webhook import MODE, signature

KINDS = {
    "payment.processing": "payment_intent.processing",
    "payment.captured": "payment_intent.succeeded",
    "payment.declined": "payment_intent.payment_failed",
    "payment.cancelled": "payment_intent.canceled",
    "refund.succeeded": "charge.refunded",
    "refund.failed": "refund.failed",
}

_encode = msgspec.json.Encoder().encode


def stripe_letter(notice: Notice, payment: Payment, secrets: Sequence[bytes], at: int) -> tuple[bytes, bytes]:
    """Headers and body. `payment` is as it is now; what it was then is in the notice."""
    then = msgspec.json.decode(notice.body)
    payment = replace(
        payment, state=then["payment"]["state"], refunded_minor=then["payment"]["refunded_minor"]
    )
    body = _encode(
        {
            "id": notice.id,
            "object": "event",
            "type": KINDS[notice.kind],
            "livemode": MODE == "live",
            "created": int(notice.created_at),
            "data": {"object": _about(notice.kind, payment, then)},
        }
    )
    return f"Stripe-Signature: {signature(secrets, body, at)}\r\n".encode(), body


def _about(kind: str, payment: Payment, then: dict[str, Any]) -> dict[str, Any]:
    intent = intent_of(payment, "", expands=False)
    match kind:
        case "refund.succeeded":
            return {**charge_of(payment), "currency": intent["currency"], "metadata": intent["metadata"]}
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
