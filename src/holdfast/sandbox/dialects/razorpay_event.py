"""A notice as Razorpay sends it: the payment as it was then, signed, and told apart by an unsigned header.

No I/O."""

import hmac
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.sandbox.dialects.razorpay_order import payments_page
from holdfast.sandbox.payment import Notice, Payment

ACCOUNT = "acc_sandbox"
# What the payer has paid is authorised: it is the shop that captures.
KINDS = {
    "payment.processing": "payment.created",
    "payment.captured": "payment.authorized",
    "payment.declined": "payment.failed",
    "payment.cancelled": "payment.failed",
    "refund.succeeded": "refund.processed",
    "refund.failed": "refund.failed",
}

_encode = msgspec.json.Encoder().encode


def razorpay_letter(
    notice: Notice, payment: Payment, secrets: Sequence[bytes], at: int
) -> tuple[bytes, bytes]:
    """Headers and body. `payment` is as it is now; what it was then is in the notice."""
    then = msgspec.json.decode(notice.body)
    payment = replace(
        payment, state=then["payment"]["state"], refunded_minor=then["payment"]["refunded_minor"]
    )
    is_refund = notice.kind.startswith("refund.")
    pages = payments_page(payment, is_captured=is_refund)["items"]
    payload: dict[str, Any] = {"payment": {"entity": pages[0]}} if pages else {}
    body = _encode(
        {
            "entity": "event",
            "account_id": ACCOUNT,
            "event": KINDS[notice.kind],
            "contains": list(payload),
            "payload": payload,
            "created_at": int(notice.created_at),
        }
    )
    mark = hmac.digest(secrets[0], body, "sha256").hex()  # one signature: Razorpay has one secret at a time
    return f"X-Razorpay-Signature: {mark}\r\nX-Razorpay-Event-Id: {notice.id}\r\n".encode(), body
