"""Stripe's webhooks: the signature is verified on the raw bytes before anything is parsed. No I/O."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.payments.gateway import BadWebhook, Webhook
from holdfast.payments.gateways.stripe_objects import KEY

TOLERANCE_S = 300


class StripeSubject(msgspec.Struct):
    """What an event is about: an intent, or something that names one."""

    object: str = ""
    id: str | None = None
    payment_intent: str | None = None
    amount: int | None = None
    currency: str | None = None
    metadata: dict[str, Any] | None = None


class StripeEventData(msgspec.Struct):
    object: StripeSubject


class StripeEvent(msgspec.Struct):
    id: str
    type: str
    object: str
    livemode: bool
    data: StripeEventData
    account: str | None = None
    created: int = 0


EVENT = msgspec.json.Decoder(StripeEvent)


@dataclass(frozen=True, repr=False)  # no repr: it would print the secrets
class StripeWebhooks:
    secrets: tuple[str, ...]  # several while one follows another
    mode: str
    bytes_max: int

    def read(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        if len(raw) > self.bytes_max:
            raise BadWebhook("oversize")
        self._check_signature(raw, headers.get(b"stripe-signature", b""), now)
        try:
            envelope = EVENT.decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):  # not JSON, not UTF-8, bottomless
            raise BadWebhook("malformed") from None
        if envelope.object != "event":
            raise BadWebhook("malformed")
        if envelope.livemode != (self.mode == "live"):
            raise BadWebhook("mode")
        if (
            envelope.account is not None
        ):  # of an account connected to ours: none is, and its money is not ours
            raise BadWebhook("account")
        return build_webhook(envelope, self.mode)

    def _check_signature(self, raw: bytes, header: bytes, now: float) -> None:
        """t=<seconds>,v1=<hex>[,v1=<hex>]: a signature over the seconds, a dot and the body as it came."""
        parts = [part.strip().partition(b"=") for part in header.split(b",")]
        times = [value for name, _, value in parts if name == b"t"]
        given = [value for name, _, value in parts if name == b"v1"]
        if len(times) != 1 or not times[0].isdigit() or len(times[0]) > 12:
            raise BadWebhook("signature")
        text = times[0] + b"." + raw
        good = [
            hmac.new(secret.encode(), text, hashlib.sha256).hexdigest().encode() for secret in self.secrets
        ]
        if not any(hmac.compare_digest(one, other) for one in good for other in given):
            raise BadWebhook("signature")
        if int(times[0]) < now - TOLERANCE_S:
            raise BadWebhook("stale")
        if int(times[0]) > now + TOLERANCE_S:
            raise BadWebhook("future")


def build_webhook(envelope: StripeEvent, mode: str) -> Webhook:
    about = envelope.data.object
    is_intent = about.object == "payment_intent"
    # A refund's amount is not the payment's, and its metadata name the refund.
    is_payment = is_intent or about.object == "charge"
    key = (about.metadata or {}).get(KEY)
    return Webhook(
        event_id=envelope.id,
        kind=envelope.type,
        key=key if is_payment and isinstance(key, str) else None,
        reference=about.id if is_intent else about.payment_intent,
        amount_minor=about.amount if is_payment else None,
        currency=about.currency.upper() if is_payment and about.currency else None,
        mode=mode,
    )
