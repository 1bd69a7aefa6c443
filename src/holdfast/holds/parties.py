"""Whom holds of guests and unverified accounts count for: the address range of the request."""

from starlette.requests import Request

from holdfast.bookings import address_party
from holdfast.web.guards import note_untrusted_proxy
from holdfast.web.routing import get_app


def get_party(request: Request) -> str:
    """The range of addresses that the request comes from, hashed; empty for a socket without an address."""
    config, client = get_app(request).config, request.client
    if client is None:
        return ""
    note_untrusted_proxy(client, request.scope["state"]["headers"])
    return address_party(client.host, config.range_ipv4_bits, config.range_ipv6_bits)
