"""A webhook as Razorpay sends it: the payment as it was then, signed, with its id in an unsigned header.

No I/O."""

import hmac
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.payment import SandboxPayment, SandboxWebhook
from tests.fakes.razorpay_objects import payments_json

ACCOUNT = "acc_sandbox"
# What the payer has paid is authorised: it is the merchant that captures.
KINDS = {
    "payment.processing": "payment.created",
    "payment.captured": "payment.authorized",
    "payment.declined": "payment.failed",
    "payment.cancelled": "payment.failed",
    "refund.succeeded": "refund.processed",
    "refund.failed": "refund.failed",
}

_encode = msgspec.json.Encoder().encode


def render_razorpay_event(
    webhook: SandboxWebhook, payment: SandboxPayment, secrets: Sequence[bytes], at: int
) -> tuple[dict[str, str], bytes]:
    """Headers and body. `payment` is as it is now; what it was then is in the webhook."""
    then = msgspec.json.decode(webhook.body)
    payment = replace(
        payment, state=then["payment"]["state"], refunded_minor=then["payment"]["refunded_minor"]
    )
    is_refund = webhook.kind.startswith("refund.")
    pages = payments_json(payment, is_captured=is_refund)["items"]
    payload: dict[str, Any] = {"payment": {"entity": pages[0]}} if pages else {}
    body = _encode(
        {
            "entity": "event",
            "account_id": ACCOUNT,
            "event": KINDS[webhook.kind],
            "contains": list(payload),
            "payload": payload,
            "created_at": int(webhook.created_at),
        }
    )
    mark = hmac.digest(secrets[0], body, "sha256").hex()  # one signature: Razorpay has one secret at a time
    return {"X-Razorpay-Signature": mark, "X-Razorpay-Event-Id": webhook.id}, body
