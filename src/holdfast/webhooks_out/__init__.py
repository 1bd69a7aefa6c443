"""Webhooks that send organisers the facts of their own events, as standardwebhooks.com specifies (R33).

endpoint.py   an endpoint and the check of its URL          delivery.py   one fact for one endpoint
store.py      endpoints and deliveries in the ledger        client.py     the HTTP client
jobs.py       the consumer of facts and the jobs            api.py        /admin/webhook-endpoints
every_pod.py  endpoints and deliveries of all databases
"""

from holdfast.webhooks_out.delivery import DeliveriesQuery
from holdfast.webhooks_out.endpoint import EndpointChange, EndpointsQuery, NewEndpoint
from holdfast.webhooks_out.every_pod import (
    load_deliveries,
    load_endpoint,
    load_endpoints,
    replay_delivery,
)
from holdfast.webhooks_out.store import OutgoingWebhooks

__all__ = [
    "DeliveriesQuery",
    "EndpointChange",
    "EndpointsQuery",
    "NewEndpoint",
    "OutgoingWebhooks",
    "load_deliveries",
    "load_endpoint",
    "load_endpoints",
    "replay_delivery",
]
