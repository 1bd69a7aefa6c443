"""Razorpay's objects, converted to ours: orders, payments, refunds, webhooks. No I/O.

One order per key; the payer tries as often as they like on Razorpay's page, and each try is a payment:

    captured                  YES      what was taken, less what has gone back
    authorized                –        to be captured by us, unless the order was called off
    created, failed, none     UNKNOWN  the payer may try again
    any, order called off     NO       nothing is captured any more; what was authorised goes back by itself
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.payments.gateway import (
    Charge,
    Dispute,
    DisputeState,
    GatewayAnswer,
    ListedPayment,
    RefundResult,
)

KEY = "holdfast_key"
REFUND_KEY = "holdfast_refund"
CALLED_OFF = "holdfast_called_off"
RECEIPT_MAX = 40  # characters

Notes = dict[str, Any] | list[Any]  # no notes are an empty list


class RazorpayPayment(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    order_id: str | None = None
    captured: bool = False
    amount_refunded: int = 0
    vpa: str | None = None  # the payer's UPI address

    @property
    def fingerprint(self) -> str | None:
        """Of the UPI address, for limits per card. Of a card Razorpay has nothing that stays the same."""
        return hashlib.sha256(self.vpa.lower().encode()).hexdigest()[:32] if self.vpa else None


class RazorpayPaymentList(msgspec.Struct):
    items: list[RazorpayPayment] = []


class RazorpayOrder(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    created_at: int
    notes: Notes = {}
    payments: RazorpayPaymentList | None = None

    @property
    def key(self) -> str | None:
        return read_note(self.notes, KEY)

    @property
    def is_called_off(self) -> bool:
        return read_note(self.notes, CALLED_OFF) is not None


class RazorpayOrderList(msgspec.Struct):
    items: list[RazorpayOrder] = []


class RazorpayRefund(msgspec.Struct):
    id: str
    status: str = ""
    notes: Notes = {}


class RazorpayRefundList(msgspec.Struct):
    items: list[RazorpayRefund] = []


def read_note(notes: Notes, name: str) -> str | None:
    value = notes.get(name) if isinstance(notes, dict) else None
    return value if isinstance(value, str) else None


def build_receipt(key: str) -> str:
    return key if len(key) <= RECEIPT_MAX else hashlib.sha256(key.encode()).hexdigest()[:RECEIPT_MAX]


def refund_token(key: str) -> str:
    """X-Refund-Idempotency takes ten letters, digits, hyphens or underscores, or more."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{10,64}", key) else hashlib.sha256(key.encode()).hexdigest()


def find_captured(payments: Sequence[RazorpayPayment]) -> RazorpayPayment | None:
    return next((one for one in payments if one.captured), None)


def find_capturable(order: RazorpayOrder, payments: Sequence[RazorpayPayment]) -> RazorpayPayment | None:
    """The payment that waits for us to take it: all of it, in the order's currency, and not called off."""
    if order.is_called_off or find_captured(payments) is not None:
        return None
    exact = (order.amount, order.currency)
    waiting = (one for one in payments if one.status == "authorized")
    return next((one for one in waiting if (one.amount, one.currency) == exact), None)


def build_charge(order: RazorpayOrder, payments: Sequence[RazorpayPayment]) -> Charge:
    if (payment := find_captured(payments)) is not None:
        return Charge(
            answer=GatewayAnswer.YES,
            reference=order.id,
            amount_minor=payment.amount,
            currency=payment.currency.upper(),
            refunded_minor=payment.amount_refunded,
            card=payment.fingerprint,
        )
    if order.is_called_off:
        reason = "The payment was cancelled."
        return Charge(answer=GatewayAnswer.NO, reference=order.id, code="cancelled", reason=reason)
    return Charge(answer=GatewayAnswer.UNKNOWN, reference=order.id, client_secret=order.id)


def build_listed_payment(order: RazorpayOrder) -> ListedPayment:
    payments = order.payments.items if order.payments else []
    at = datetime.fromtimestamp(order.created_at, UTC)
    return ListedPayment(key=order.key, reference=order.id, charge=build_charge(order, payments), at=at)


# pending is a yes: the money is on its way, and Razorpay says refund.failed if it should come back.
REFUND_ANSWERS = {
    "processed": GatewayAnswer.YES,
    "pending": GatewayAnswer.YES,
    "created": GatewayAnswer.YES,
    "failed": GatewayAnswer.NO,
}


def build_refund_result(refund: RazorpayRefund) -> RefundResult:
    answer = REFUND_ANSWERS.get(refund.status, GatewayAnswer.UNKNOWN)
    reason = "The bank did not take the refund." if answer is GatewayAnswer.NO else None
    return RefundResult(answer=answer, reference=refund.id, reason=reason)


def is_signed(text: bytes, signature: bytes, secrets: Sequence[str]) -> bool:
    good = [hmac.new(secret.encode(), text, hashlib.sha256).hexdigest().encode() for secret in secrets]
    return any(hmac.compare_digest(one, signature) for one in good)


class RazorpayDispute(msgspec.Struct):
    id: str
    payment_id: str
    status: str
    amount: int
    currency: str
    reason_code: str = ""


class RazorpayDisputeList(msgspec.Struct):
    items: list[RazorpayDispute] = []


# `closed` ends a dispute without money: a retrieval request or an enquiry.
DISPUTES = {
    "open": DisputeState.OPEN,
    "under_review": DisputeState.OPEN,
    "won": DisputeState.WON,
    "lost": DisputeState.LOST,
}


def build_dispute(disputes: Sequence[RazorpayDispute], payment_id: str) -> Dispute | None:
    for one in disputes:
        if one.payment_id == payment_id and (state := DISPUTES.get(one.status)) is not None:
            return Dispute(
                reference=one.id,
                state=state,
                amount_minor=one.amount,
                currency=one.currency.upper(),
                reason=one.reason_code,
            )
    return None
