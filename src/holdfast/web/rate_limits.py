"""Rate limits: token buckets that refill steadily. No I/O, and cheap enough for every request.

A bucket is one number per key: the time at which it would be full again without further requests (GCRA). It
holds `quota` and refills within `window_s`. limit.lua keeps the same number in Redis; the two must agree.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network

from holdfast.errors import TooManyRequests

REQUESTS_WINDOW_S = 1
LOGINS_WINDOW_S = 60
GUESTS_WINDOW_S = 60


class Buckets:
    """Many buckets of one size. `now` is any clock that does not go back, in seconds."""

    def __init__(self, *, quota: int, window_s: int, keys_max: int) -> None:
        assert quota >= 1
        self.quota = quota
        self.window_s = window_s
        self._keys_max = keys_max
        self._step_s = window_s / quota
        self._full_at: dict[str, float] = {}

    def take(self, key: str, now: float) -> float:
        """Take one. 0.0 when it was there, else the seconds until it is."""
        full_at = self._full_at.get(key, now)
        if full_at < now:
            full_at = now
        wait_s = full_at + self._step_s - self.window_s - now
        if wait_s > 1e-9:  # sums of fractions are not exact; the last of a quota is not refused for that
            return wait_s
        if len(self._full_at) >= self._keys_max:
            self._make_room(now)
        self._full_at[key] = full_at + self._step_s
        return 0.0

    def refill(self, key: str) -> None:
        self._full_at.pop(key, None)

    def _make_room(self, now: float) -> None:
        """Forget the full ones; in a flood of addresses also the longest known quarter, who start afresh."""
        used = {key: full_at for key, full_at in self._full_at.items() if now < full_at}
        surplus = len(used) - self._keys_max * 3 // 4
        for key in list(used)[: max(0, surplus)]:
            del used[key]
        self._full_at = used


class Limiter:
    """Requests per second from one address, counted in this process. A limit of 0 is none."""

    def __init__(self, *, requests_per_second_max: int, addresses_max: int) -> None:
        self._buckets = (
            Buckets(quota=requests_per_second_max, window_s=REQUESTS_WINDOW_S, keys_max=addresses_max)
            if requests_per_second_max
            else None
        )

    def check(self, address: str, now: float) -> TooManyRequests | None:
        if self._buckets is None:
            return None
        wait_s = self._buckets.take(normalise_address(address) if ":" in address else address, now)
        return too_many(self._buckets, "address", wait_s) if wait_s else None


@lru_cache(maxsize=16_384)
def normalise_address(address: str) -> str:
    """What counts as one address: an IPv4 address in any of its spellings, or the /64 that one line gets."""
    try:
        if ":" not in address:
            return str(IPv4Address(address))
        ip = IPv6Address(address.partition("%")[0])
    except AddressValueError:
        return address  # a unix socket, or the name a proxy gave: one bucket each
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(IPv6Network((ip, 64), strict=False))


def too_many(buckets: Buckets, policy: str, wait_s: float) -> TooManyRequests:
    return TooManyRequests(
        policy=policy,
        limit=buckets.quota,
        window_s=buckets.window_s,
        retry_after_s=max(1, -int(-wait_s // 1)),
    )


def build_limit_headers(refusal: TooManyRequests) -> Mapping[str, str]:
    """RateLimit-Policy and RateLimit as in draft-ietf-httpapi-ratelimit-headers-11, beside Retry-After."""
    policy, limits = refusal.details["policy"], refusal.details
    return {
        "RateLimit-Policy": f'"{policy}";q={limits["limit"]};w={limits["window_s"]}',
        "RateLimit": f'"{policy}";r=0;t={limits["retry_after_s"]}',
    }
