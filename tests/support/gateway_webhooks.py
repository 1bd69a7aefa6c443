"""What the sandbox would write to us: true ones, and forgeries."""

import secrets
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.payments.gateway import Charge, ChargeOrder
from holdfast.payments.payment import Payment
from holdfast.sandbox.webhook import signature, webhook_body
from tests.conftest import GATEWAY_SECRET

ACCOUNT = "acct_sandbox"
HEADER = "Holdfast-Signature"


@dataclass(frozen=True)
class SignedWebhook:
    """A webhook: its bytes, and the signature they would have."""

    raw: bytes
    secret: str = GATEWAY_SECRET
    age_s: int = 0

    @property
    def headers(self) -> dict[str, str]:
        at = int(time.time()) - self.age_s
        return {HEADER: signature([self.secret.encode()], self.raw, at)}

    @property
    def raw_headers(self) -> dict[bytes, bytes]:
        return {name.lower().encode(): text.encode() for name, text in self.headers.items()}

    @property
    def event_id(self) -> str:
        return str(msgspec.json.decode(self.raw)["id"])


def a_webhook(
    payment: Payment, payment_id: str = "pay_1", kind: str = "payment.captured", **changes: Any
) -> SignedWebhook:
    """A webhook about one of our payments; `changes` apply to the payment in it."""
    about = {
        "id": payment_id,
        "reference": payment.key,
        "amount_minor": payment.amount_minor,
        "currency": payment.currency,
        "state": kind.partition(".")[2],
        **changes,
    }
    name = f"evt_{secrets.token_hex(12)}"
    return SignedWebhook(webhook_body(name, kind, ACCOUNT, time.time(), {"payment": about}))


async def charged(app: App, payment: Payment, method: str = "tok_ok", **changes: Any) -> Charge:
    """At the gateway, behind the back of the ledger."""
    order = {"amount_minor": payment.amount_minor, "currency": payment.currency, **changes}
    return await app.saga_runner.gateway.charge(
        ChargeOrder(key=payment.key, method=method, description="a test", **order)
    )
