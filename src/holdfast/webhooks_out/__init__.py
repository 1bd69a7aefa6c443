"""Organisers' own systems are told facts of their own events, by webhooks after standardwebhooks.com (R33).

endpoint.py   where to, and what an organiser says of it    signature.py  how it is signed
address.py    which addresses are nobody's business         delivery.py   one fact for one endpoint
store.py      both in the ledger                            post/         HTTP to a stranger
worker.py     hears facts, sends, forgets                   routes.py     /admin/webhook-endpoints
"""

from holdfast.webhooks_out.store import OutgoingWebhooks

__all__ = ["OutgoingWebhooks"]
