"""An endpoint: its request and response bodies, and the check of its URL. No I/O."""

import re
from collections.abc import Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid
from holdfast.outbox import KINDS
from holdfast.webhooks_out.errors import BadEndpointUrl

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

ENDPOINTS_MAX = 20  # of one organiser
KINDS_MAX = 60
LISTED_MAX = 500  # by an administrator, of all organisers
LAST_ID = 2**63 - 1
# Without facts about cities and venues: many organisers share those, so they belong to none of them. And
# without one that comes every second during an on-sale.
NOT_DELIVERED = ("city.changed", "venue.changed", "queue.called")
DELIVERED_KINDS = tuple(kind for kind in KINDS if kind not in NOT_DELIVERED)

Url = Annotated[str, Meta(min_length=1, max_length=2000, examples=["https://hall.example/hooks"])]
KindName = Annotated[str, Meta(max_length=60, examples=["booking.confirmed"])]
KindNames = Annotated[list[KindName], Meta(max_length=KINDS_MAX)]


class NewEndpoint(Struct, forbid_unknown_fields=True, frozen=True):
    """The URL that receives facts of your events; `kinds` of facts, none: all."""

    url: Url
    kinds: KindNames = []
    active: bool = True


class EndpointChange(Struct, forbid_unknown_fields=True, frozen=True):
    """Fields that are absent stay unchanged."""

    url: Url | UnsetType = UNSET
    kinds: KindNames | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class EndpointPage(Struct, frozen=True, kw_only=True):
    endpoint_id: int
    organiser_id: int
    url: str
    kinds: list[str]  # none: all
    active: bool
    off_reason: str | None  # why we switched it off
    failing_since: datetime | None  # the first failure after the last success
    old_secret_until: datetime | None  # until then two secrets sign
    made_at: datetime


class ListedEndpoint(EndpointPage, frozen=True, kw_only=True):
    """With the pods that have switched it off."""

    off_in: dict[str, str] = msgspec.field(default_factory=dict)  # why, by pod; on at home is on everywhere
    missing_pods: list[str] = msgspec.field(default_factory=list)  # cannot be reached: it may be off there


class CreatedEndpoint(Struct, frozen=True):
    endpoint: EndpointPage
    secret: str  # checks signatures; returned only this once


class EndpointList(Struct, frozen=True):
    endpoints: list[ListedEndpoint]
    next: int | None  # ask for `before` this to go on; null: that was all
    complete: bool = True
    missing_pods: list[str] = msgspec.field(default_factory=list)


class EndpointsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    before: Annotated[int, Meta(ge=1, le=LAST_ID)] = LAST_ID  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=LISTED_MAX)] = LISTED_MAX


def validate_kinds(kinds: Sequence[str]) -> list[str]:
    if strange := sorted(set(kinds) - set(DELIVERED_KINDS)):
        raise Invalid(field="kinds", detail=f"There is no fact {strange[0]!r} to subscribe to.")
    return sorted(set(kinds))


def endpoint_page(row: "Row") -> EndpointPage:
    copied = ("organiser_id", "url", "kinds", "active", "off_reason", "failing_since", "made_at")
    return EndpointPage(
        endpoint_id=row["id"], old_secret_until=row["old_until"], **{name: row[name] for name in copied}
    )


URL_MAX = 2000
URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?:\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?)"
)
IPV4_PART = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
PRIVATE_SUFFIXES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "onion")

# Beyond what Python calls private: carriers', protocol assignments, tests, and ways to wrap an IPv4 address.
NOT_PUBLIC = tuple(
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23"),
        *("2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10"),
        "ff00::/8",
    )
)
METADATA = {ip_address("168.63.129.16")}  # Azure's platform service, inside the public range


def is_public(address: str) -> bool:
    """Of an IP address. Other text is not public, nor is an IPv4 address embedded in an IPv6 one."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return False
    if any(found.version == network.version and found in network for network in NOT_PUBLIC):
        return False
    return found.is_global and found not in METADATA


def check_url(url: str, *, lenient: bool = False) -> None:
    """Raise BadEndpointUrl. `lenient`: http and private addresses are fine, as in a demo."""
    found = URL.fullmatch(url)
    if found is None or len(url) > URL_MAX:
        raise _bad("Expected https://host/path in plain letters, without name, password or fragment.")
    host = found["host"]
    if found["port"] is not None and not 1 <= int(found["port"]) <= 65_535:
        raise _bad("There is no such port.")
    if not lenient and found["scheme"] != "https":
        raise _bad("Expected https.")
    if host.startswith("["):
        _check_number(host[1:-1], lenient=lenient)
    elif IPV4_PART.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]):  # the way browsers know an IPv4 address
        _check_number(host, lenient=lenient)
    elif not lenient:
        _check_name(host)


def _check_number(text: str, *, lenient: bool) -> None:
    try:
        ip_address(text)
    except ValueError:
        raise _bad("An address in numbers has four decimal parts, or is an IPv6 address.") from None
    if not lenient and not is_public(text):
        raise _bad("The address is not one that the public can reach.")


def _check_name(host: str) -> None:
    labels = host.rstrip(".").lower().split(".")
    if len(labels) < 2 or labels[-1] in PRIVATE_SUFFIXES or not all(0 < len(label) <= 63 for label in labels):
        raise _bad("The name is not one that the public can look up.")


def _bad(detail: str) -> BadEndpointUrl:
    return BadEndpointUrl(field="url", detail=detail)
