"""What Razorpay says, read into our words: orders, payments, refunds, webhooks. Computes, and nothing else.
No I/O.

One order a key; the payer tries as often as they like on Razorpay's page, and each try is a payment:

    captured                  YES      what was taken, less what has gone back
    authorized                –        to be captured by us, unless the order was called off
    created, failed, none     UNKNOWN  the payer may try again
    any, order called off     NO       nothing is captured any more; what was authorised goes back by itself
"""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.payments.gateway import Answer, BadNotice, Charge, Notice, Refunded, Seen

KEY = "holdfast_key"
REFUND_KEY = "holdfast_refund"
CALLED_OFF = "holdfast_called_off"
RECEIPT_MAX = 40  # characters
AHEAD_S = 300
RETRIED_S = 25 * 3600  # an event is sent again for a day, always with the time at which it happened

Notes = dict[str, Any] | list[Any]  # no notes are an empty list


class Payment(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    order_id: str | None = None
    captured: bool = False
    amount_refunded: int = 0


class Payments(msgspec.Struct):
    items: list[Payment] = []


class Order(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    created_at: int
    notes: Notes = {}
    payments: Payments | None = None

    @property
    def key(self) -> str | None:
        return noted(self.notes, KEY)

    @property
    def is_called_off(self) -> bool:
        return noted(self.notes, CALLED_OFF) is not None


class Orders(msgspec.Struct):
    items: list[Order] = []


class Refund(msgspec.Struct):
    id: str
    status: str = ""
    notes: Notes = {}


class Refunds(msgspec.Struct):
    items: list[Refund] = []


def noted(notes: Notes, name: str) -> str | None:
    value = notes.get(name) if isinstance(notes, dict) else None
    return value if isinstance(value, str) else None


def receipt_of(key: str) -> str:
    return key if len(key) <= RECEIPT_MAX else hashlib.sha256(key.encode()).hexdigest()[:RECEIPT_MAX]


def refund_token(key: str) -> str:
    """X-Refund-Idempotency takes ten letters, digits, hyphens or underscores, or more."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{10,64}", key) else hashlib.sha256(key.encode()).hexdigest()


def taken(payments: Sequence[Payment]) -> Payment | None:
    return next((one for one in payments if one.captured), None)


def to_capture(order: Order, payments: Sequence[Payment]) -> Payment | None:
    """The payment that waits for us to take it: all of it, in the order's currency, and not called off."""
    if order.is_called_off or taken(payments) is not None:
        return None
    exact = (order.amount, order.currency)
    waiting = (one for one in payments if one.status == "authorized")
    return next((one for one in waiting if (one.amount, one.currency) == exact), None)


def charge_of(order: Order, payments: Sequence[Payment]) -> Charge:
    if (payment := taken(payments)) is not None:
        return Charge(
            answer=Answer.YES,
            reference=order.id,
            amount_minor=payment.amount,
            currency=payment.currency.upper(),
            refunded_minor=payment.amount_refunded,
        )
    if order.is_called_off:
        reason = "The payment was cancelled."
        return Charge(answer=Answer.NO, reference=order.id, code="cancelled", reason=reason)
    return Charge(answer=Answer.UNKNOWN, reference=order.id, client_secret=order.id)


def seen_of(order: Order) -> Seen:
    payments = order.payments.items if order.payments else []
    at = datetime.fromtimestamp(order.created_at, UTC)
    return Seen(key=order.key, reference=order.id, charge=charge_of(order, payments), at=at)


# pending is a yes: the money is on its way, and Razorpay says refund.failed if it should come back.
REFUND_ANSWERS = {"processed": Answer.YES, "pending": Answer.YES, "created": Answer.YES, "failed": Answer.NO}


def refunded_of(refund: Refund) -> Refunded:
    answer = REFUND_ANSWERS.get(refund.status, Answer.UNKNOWN)
    reason = "The bank did not take the refund." if answer is Answer.NO else None
    return Refunded(answer=answer, reference=refund.id, reason=reason)


def is_signed(text: bytes, signature: bytes, secrets: Sequence[str]) -> bool:
    good = [hmac.new(secret.encode(), text, hashlib.sha256).hexdigest().encode() for secret in secrets]
    return any(hmac.compare_digest(one, signature) for one in good)


class PaymentPart(msgspec.Struct):
    entity: Payment


class OrderPart(msgspec.Struct):
    entity: Order


class Payload(msgspec.Struct):
    payment: PaymentPart | None = None
    order: OrderPart | None = None


class Envelope(msgspec.Struct):
    event: str
    entity: str
    account_id: str
    created_at: int
    payload: Payload


ENVELOPE = msgspec.json.Decoder(Envelope)


@dataclass(frozen=True, repr=False)  # no repr: it would tell the secrets
class Notices:
    secrets: tuple[str, ...]  # several while one follows another
    mode: str
    account: str  # empty: not compared
    bytes_max: int

    def read(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Notice:
        if len(raw) > self.bytes_max:
            raise BadNotice("oversize")
        if not is_signed(raw, headers.get(b"x-razorpay-signature", b""), self.secrets):
            raise BadNotice("signature")
        try:
            envelope = ENVELOPE.decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):  # not JSON, not UTF-8, bottomless
            raise BadNotice("malformed") from None
        if envelope.entity != "event":
            raise BadNotice("malformed")
        if self.account and envelope.account_id != self.account:
            raise BadNotice("account")
        if envelope.created_at < now - RETRIED_S:
            raise BadNotice("stale")
        if envelope.created_at > now + AHEAD_S:
            raise BadNotice("future")
        return notice_of(envelope, raw, self.mode)


def notice_of(envelope: Envelope, raw: bytes, mode: str) -> Notice:
    payment = envelope.payload.payment.entity if envelope.payload.payment else None
    order = envelope.payload.order.entity if envelope.payload.order else None
    about = payment or order
    return Notice(
        # Not x-razorpay-event-id: that header is not signed, and whoever replays a body can give it another.
        event_id=f"sha256_{hashlib.sha256(raw).hexdigest()}",
        kind=envelope.event,
        # A payment's notes come from the payer's browser. Only the order's are ours.
        key=order.key if order else None,
        reference=order.id if order else payment.order_id if payment else None,
        amount_minor=about.amount if about else None,
        currency=about.currency.upper() if about else None,
        mode=mode,
    )
