"""Refusals about organisers' webhooks. No I/O.

Refusal
├── NoSuchEndpoint      404  also for another organiser's
├── NoSuchDelivery      404  never written, or forgotten
├── BadEndpointUrl      422  not an address that we send to
├── EndpointsMax        409  as many as one may have
└── EndpointOff         409  nothing is sent to an endpoint that is switched off
"""

from holdfast.errors import Refusal


class NoSuchEndpoint(Refusal):
    """You have no webhook endpoint of this number.

    `GET /admin/webhook-endpoints` lists yours.
    """

    code, status, title = "no_such_endpoint", 404, "No such endpoint"


class NoSuchDelivery(Refusal):
    """This fact was not sent to this endpoint, or its delivery has been deleted.

    `GET /admin/webhook-endpoints/{endpoint}/deliveries` lists the stored deliveries.
    """

    code, status, title = "no_such_delivery", 404, "No such delivery"


class BadEndpointUrl(Refusal):
    """We do not send to this address; `detail` says why.

    Give an https URL of a server that the public can reach: without a name and password in it, and with a
    host name in plain letters rather than a number.
    """

    code, status, title = "bad_endpoint_url", 422, "Address not allowed"


class EndpointsMax(Refusal):
    """You have as many webhook endpoints as one may have.

    Delete one that you do not need, or give one of them more kinds.
    """

    code, status, title = "endpoints_max", 409, "Too many endpoints"


class EndpointOff(Refusal):
    """The endpoint is switched off, so nothing is sent to it.

    Switch it on with `PATCH` and `active`, then ask again.
    """

    code, status, title = "endpoint_off", 409, "The endpoint is switched off"
