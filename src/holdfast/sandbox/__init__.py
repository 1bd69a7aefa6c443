"""A payment gateway of our own that misbehaves to order. It moves no money; everything else about it is real.

    shop ── POST /v1/payments ──► wires ─► till ─► books       SQLite: an answer is given after its commit
    payer ─ GET  /pay/… ────────► pages ──┘          │
    shop ◄─ POST /webhooks/… ──── post ◄─────────────┘         signed notices, sent until they are taken

`payment.py` has the states, `behaviour.py` what each test token does. `till` is the gateway without any HTTP:
our own wire and those of other gateways (`wires`), and the payment page (`pages`), stand on it. `worker.py`
is the process. docs/operating/sandbox.md tells how to use it.
"""

from holdfast.sandbox.database import Books, copy_as_of
from holdfast.sandbox.datadir import is_in_use, secret_in
from holdfast.sandbox.gateway import Call, Till
from holdfast.sandbox.webhooks import Post

__all__ = ["Books", "Call", "Post", "Till", "copy_as_of", "is_in_use", "secret_in"]
