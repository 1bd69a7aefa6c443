"""The body of a webhook and the signature that proves its sender. No I/O."""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.sandbox.payment import SandboxPayment, SandboxWebhook

# Headers and body of a webhook about this payment, signed with these secrets at this time.
WebhookRenderer = Callable[
    [SandboxWebhook, SandboxPayment, Sequence[bytes], int], tuple[dict[str, str], bytes]
]

MODE = "test"
HEADER = "Holdfast-Signature"

_encode = msgspec.json.Encoder().encode


def webhook_body(webhook_id: str, kind: str, account: str, at: float, about: dict[str, Any]) -> bytes:
    """`about` has the payment, and the refund if it is about one."""
    return _encode({"id": webhook_id, "kind": kind, "mode": MODE, "account": account, "at": at, **about})


def signature(secrets: Sequence[bytes], body: bytes, at: int) -> str:
    """One v1 for each secret: while a secret is being changed, either side may have the new one already."""
    stamped = b"%d." % at + body
    marks = (hmac.digest(secret, stamped, "sha256").hex() for secret in secrets)
    return f"t={at}," + ",".join(f"v1={mark}" for mark in marks)


def render_native_webhook(
    webhook: SandboxWebhook, payment: SandboxPayment, secrets: Sequence[bytes], at: int
) -> tuple[dict[str, str], bytes]:
    """The native form: the stored body with its signature."""
    return {HEADER: signature(secrets, webhook.body, at)}, webhook.body


def api_key(secret: str) -> str:
    """What opens the API. Made from the secret, so that the secret itself never travels."""
    mark = hmac.digest(secret.encode(), b"holdfast sandbox api", hashlib.sha256).hex()
    return f"sk_test_{mark[:40]}"


def parse_secrets(text: str) -> tuple[str, ...]:
    """Comma-separated, the newest first."""
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)
