"""Our own payment gateway, which misbehaves on demand. It moves no money; everything else about it is real.

    merchant ── POST /v1/payments ─► api ─► gateway ─► database     SQLite: answered after the commit
    payer ───── GET /pay/… ───────► page ──┘               │
    merchant ◄─ POST /webhooks/… ── webhooks ◄─────────────┘         signed, sent until they are accepted

`payment.py` has the states, `behaviour.py` what each test token does. `gateway.py` is the gateway without
HTTP; the API and the payment page are built on it. `process.py` is the process.
docs/operating/sandbox.md describes how to use it.

A supervisor imports this front and must stay small: it loads only what finds the sandbox.
"""

from holdfast.sandbox.datadir import is_in_use, load_or_create_secret

__all__ = ["is_in_use", "load_or_create_secret"]
