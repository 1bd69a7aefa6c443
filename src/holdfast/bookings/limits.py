"""Limits that a hold must keep beside the seats per buyer, and whom they count for. No I/O.

hold.lua checks them in Redis, open_holds checks them in PostgreSQL, each in the step that takes the seats.
Guests and accounts without a verified address count together by the range of network addresses they come
from: a new browser or a new account costs nothing, a new range does.
"""

import hashlib
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network

from msgspec import Struct
from msgspec.structs import astuple

from holdfast.config import Config

NO_LIMIT = 2_147_483_647  # the largest int of PostgreSQL
ADDRESSES_CACHED_MAX = 16_384
PARTY_BYTES = 6


class HoldLimits(Struct, frozen=True, gc=False):
    range_seats_max: int  # unpaid seats of all guests and unverified accounts of a range, in a show
    guest_holds_max: int  # unpaid holds of one guest in a show
    lapses_max: int  # holds of an owner that may end unpaid within an hour, in a show
    range_lapses_max: int  # the same for a range
    cooldown_s: int

    def to_row(self) -> str:
        """As the composite type hold_limits of PostgreSQL: its fields are in the same order."""
        return f"({','.join(map(str, astuple(self)))})"

    @classmethod
    def from_config(cls, config: Config) -> "HoldLimits":
        return cls(
            config.range_seats_max or NO_LIMIT,
            config.guest_holds_max or NO_LIMIT,
            config.lapses_per_hour_max or NO_LIMIT,
            config.range_lapses_per_hour_max or NO_LIMIT,
            config.lapse_cooldown_s,
        )


@lru_cache(maxsize=ADDRESSES_CACHED_MAX)
def address_party(address: str, ipv4_bits: int, ipv6_bits: int) -> str:
    """The range of this address, hashed: the ledger stores no addresses. Empty for a socket without one."""
    if not address:
        return ""
    return hashlib.blake2b(
        _range(address, ipv4_bits, ipv6_bits).encode(), digest_size=PARTY_BYTES
    ).hexdigest()


def _range(address: str, ipv4_bits: int, ipv6_bits: int) -> str:
    try:
        if ":" not in address:
            return str(IPv4Network((IPv4Address(address), ipv4_bits), strict=False))
        ip = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return address  # the name that a proxy gave
    if ip.ipv4_mapped is not None:
        return str(IPv4Network((ip.ipv4_mapped, ipv4_bits), strict=False))
    return str(IPv6Network((ip, ipv6_bits), strict=False))
