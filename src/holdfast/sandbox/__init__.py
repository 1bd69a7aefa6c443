"""Our own payment gateway, which misbehaves on demand. It moves no money; everything else about it is real.

    merchant ── POST /v1/payments ─► api ─► gateway ─► database     SQLite: answered after the commit
    payer ───── GET /pay/… ───────► page ──┘               │
    merchant ◄─ POST /webhooks/… ── webhooks ◄─────────────┘         signed, sent until they are accepted

`payment.py` has the states, `behaviour.py` what each test token does. `gateway.py` is the gateway without
HTTP; the API and the payment page are built on it. `process.py` is the process.
docs/operating/sandbox.md describes how to use it.
"""

from holdfast.sandbox.database import SandboxDatabase, copy_as_of
from holdfast.sandbox.datadir import is_in_use, load_or_create_secret
from holdfast.sandbox.gateway import ApiCall, GatewayCore
from holdfast.sandbox.webhooks import WebhookSender

__all__ = [
    "ApiCall",
    "GatewayCore",
    "SandboxDatabase",
    "WebhookSender",
    "copy_as_of",
    "is_in_use",
    "load_or_create_secret",
]
