"""Razorpay's webhooks: the signature is verified on the raw bytes before anything is parsed. No I/O."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from holdfast.payments.gateway import BadWebhook, Webhook
from holdfast.payments.gateways.razorpay_objects import RazorpayOrder, RazorpayPayment, is_signed

AHEAD_S = 300


RETRIED_S = 25 * 3600  # an event is sent again for a day, always with the time at which it happened


class PaymentPart(msgspec.Struct):
    entity: RazorpayPayment


class OrderPart(msgspec.Struct):
    entity: RazorpayOrder


class Payload(msgspec.Struct):
    payment: PaymentPart | None = None
    order: OrderPart | None = None


class RazorpayEvent(msgspec.Struct):
    event: str
    entity: str
    account_id: str
    created_at: int
    payload: Payload


EVENT = msgspec.json.Decoder(RazorpayEvent)


@dataclass(frozen=True, repr=False)  # no repr: it would print the secrets
class RazorpayWebhooks:
    secrets: tuple[str, ...]  # several while one follows another
    mode: str
    account: str  # empty: not compared
    bytes_max: int

    def read(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        if len(raw) > self.bytes_max:
            raise BadWebhook("oversize")
        if not is_signed(raw, headers.get(b"x-razorpay-signature", b""), self.secrets):
            raise BadWebhook("signature")
        try:
            envelope = EVENT.decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):  # not JSON, not UTF-8, bottomless
            raise BadWebhook("malformed") from None
        if envelope.entity != "event":
            raise BadWebhook("malformed")
        if self.account and envelope.account_id != self.account:
            raise BadWebhook("account")
        if envelope.created_at < now - RETRIED_S:
            raise BadWebhook("stale")
        if envelope.created_at > now + AHEAD_S:
            raise BadWebhook("future")
        return build_webhook(envelope, raw, self.mode)


def build_webhook(envelope: RazorpayEvent, raw: bytes, mode: str) -> Webhook:
    payment = envelope.payload.payment.entity if envelope.payload.payment else None
    order = envelope.payload.order.entity if envelope.payload.order else None
    about = payment or order
    return Webhook(
        # Not x-razorpay-event-id: that header is not signed, and a replayed body can carry another one.
        event_id=f"sha256_{hashlib.sha256(raw).hexdigest()}",
        kind=envelope.event,
        # A payment's notes come from the payer's browser. Only the order's are ours.
        key=order.key if order else None,
        reference=order.id if order else payment.order_id if payment else None,
        amount_minor=about.amount if about else None,
        currency=about.currency.upper() if about else None,
        mode=mode,
    )
