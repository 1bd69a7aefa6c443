"""A payment in Razorpay's words. An order and the one payment made on it are the same row of the database:
No I/O.
order_… and pay_… with the same ending.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.sandbox.payment import (
    NewCharge,
    SandboxDispute,
    SandboxPayment,
    SandboxRefund,
    SandboxRefusal,
    SandboxState,
)

RECEIPT_MAX = 40
AMOUNT_MINOR_MIN = 100
# Of the payment, and of its order. What the payer has paid is authorised until the merchant captures it.
STATUS = {
    SandboxState.REQUIRES_PAYER: ("", "created"),
    SandboxState.REQUIRES_ACTION: ("created", "attempted"),
    SandboxState.PROCESSING: ("created", "attempted"),
    SandboxState.CAPTURED: ("authorized", "attempted"),
    SandboxState.DECLINED: ("failed", "attempted"),
    SandboxState.CANCELLED: ("failed", "attempted"),
}
CREATE = {"amount", "currency", "receipt", "notes", "payment", "unique_receipt"}

_encode = msgspec.json.Encoder().encode
Body = dict[str, Any]


def parse_order(body: Body) -> NewCharge:
    if strange := body.keys() - CREATE:
        raise SandboxRefusal(
            400, "extra_field_sent", f"{min(strange)} is/are not required and should not be sent"
        )
    amount, currency, receipt = (body.get(name) for name in ("amount", "currency", "receipt"))
    if not isinstance(amount, int) or amount < AMOUNT_MINOR_MIN:
        raise SandboxRefusal(400, "input_validation_failed", "The amount must be at least INR 1.00")
    if not isinstance(currency, str) or not re.fullmatch("[A-Z]{3}", currency):
        raise SandboxRefusal(400, "input_validation_failed", "The currency is invalid")
    if not isinstance(receipt, str) or not 0 < len(receipt) <= RECEIPT_MAX:
        raise SandboxRefusal(
            400, "input_validation_failed", f"The receipt may not be longer than {RECEIPT_MAX}"
        )
    notes = body.get("notes", {})
    return NewCharge(
        amount_minor=amount,
        currency=currency,
        reference=receipt,
        description=str(notes.get("description", "")),
        metadata=json.dumps(notes),
    )


def row_id(order_id: str) -> str:
    """Of an order or of a payment."""
    kind, _, rest = order_id.partition("_")
    return f"pay_{rest}" if kind in ("order", "pay") else "-"


def order_json(payment: SandboxPayment, notes: Mapping[str, Any], *, is_captured: bool, url: str) -> Body:
    is_paid = is_captured and payment.state == SandboxState.CAPTURED
    return {
        "id": payment.id.replace("pay_", "order_", 1),
        "entity": "order",
        "amount": payment.amount_minor,
        "amount_paid": payment.amount_minor if is_paid else 0,
        "currency": payment.currency,
        "receipt": payment.reference,
        "status": "paid" if is_paid else STATUS[SandboxState(payment.state)][1],
        "notes": notes or [],
        "created_at": int(payment.created_at),
        "sandbox_page": f"{url}/pay/{payment.page}",  # instead of Razorpay's Checkout
    }


def payments_json(payment: SandboxPayment, *, is_captured: bool) -> Body:
    status = STATUS[SandboxState(payment.state)][0]
    if not status:
        return collection([])
    is_taken = is_captured and status == "authorized"
    is_back = is_taken and payment.refunded_minor == payment.amount_minor
    page = {
        "id": payment.id,
        "entity": "payment",
        "amount": payment.amount_minor,
        "currency": payment.currency,
        "status": "refunded" if is_back else "captured" if is_taken else status,
        "captured": is_taken,
        "order_id": payment.id.replace("pay_", "order_", 1),
        "amount_refunded": payment.refunded_minor,
        "error_code": payment.code,
        "error_description": payment.reason,
        "notes": [],
        "created_at": int(payment.created_at),
    }
    return collection([page])


def refund_json(refund: SandboxRefund, notes: Mapping[str, Any]) -> Body:
    return {
        "id": refund.id.replace("re_", "rfnd_", 1),
        "entity": "refund",
        "amount": refund.amount_minor,
        "payment_id": refund.payment_id,
        "status": "processed" if refund.state == "succeeded" else "failed",
        "notes": notes or [],
        "created_at": int(refund.created_at),
    }


def dispute_json(dispute: SandboxDispute, payment: SandboxPayment) -> Body:
    return {
        "id": dispute.id.replace("dp_", "disp_", 1),
        "entity": "dispute",
        "payment_id": payments_json(payment, is_captured=True)["items"][0]["id"],
        "amount": dispute.amount_minor,
        "currency": payment.currency,
        "reason_code": dispute.reason,
        "status": dispute.state,
    }


def collection(items: Sequence[Body]) -> Body:
    return {"entity": "collection", "count": len(items), "items": list(items)}


def render_error(refused: SandboxRefusal) -> tuple[int, bytes]:
    code = "SERVER_ERROR" if refused.status >= 500 else "BAD_REQUEST_ERROR"
    # An id that is not there is a bad request to Razorpay, as nearly everything is.
    status = 400 if refused.status == 404 else refused.status
    reason = "The id provided does not exist" if refused.code == "resource_missing" else refused.reason
    error = {"code": code, "description": reason, "source": "business", "reason": refused.code}
    return status, _encode({"error": error})
