"""Rate limits that all processes share: per account, per address and for the house (R32).

    take ─► Redis: one script, a bucket per policy, all of them or none ─┬─ taken ─► RateLimit headers
                                                                         └─ wait ──► TooManyRequests
            Redis down: every process counts for itself: a wider limit, but a limit

Counted before the work, so that many requests at once are as few as one after the other. What a bucket counts
is stored as a hash: Redis has neither addresses nor e-mail addresses in it.

A right password makes its address known for the account. Known clients have buckets of their own: a flood of
guesses from elsewhere uses up the buckets that strangers share, and locks out none who were here before.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.redis import Redis, Script
from holdfast.web.guards import RATE_LIMIT, Buckets, normalise_address, too_many

LIMIT = Script("holdfast.web", "limit")
KEYS_MAX = 10_000  # per policy, while Redis is down
BUCKETS_MAX = LIMIT.key_count - 1  # beside the one of known clients
UNUSED = "limit:{limits}:-"
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
LOGIN, KNOWN = "login", "login-known"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Policy:
    """So many per window for each of: an account (or e-mail address), an address, both, or the house."""

    name: str  # in RateLimit-Policy
    per: tuple[str, ...]  # "account", "address"; empty: the house
    quota: int  # 0: no limit
    window_s: int
    counts: str = "all"  # or "new": addresses that are not known for the account; or "known": the others


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken, to give it back."""

    policies: tuple[Policy, ...] = ()
    keys: tuple[str, ...] = ()
    known_key: str = ""  # of clients that can become known
    is_known: bool = False  # the right password came from this address before


def policies_for(config: Config) -> dict[str, tuple[Policy, ...]]:
    """By what is limited: at most BUCKETS_MAX for each, and one of known clients."""
    account, address, house = ("account",), ("address",), ()
    both = account + address
    return {
        LOGIN: (
            Policy("login", both, config.logins_per_minute_max, MINUTE_S),
            Policy(KNOWN, both, config.logins_per_account_hour_max, HOUR_S, "known"),
            Policy("login-account", account, config.logins_per_account_hour_max, HOUR_S, "new"),
            Policy("login-address", address, config.logins_per_address_minute_max, MINUTE_S, "new"),
            Policy("login-house", house, config.logins_house_minute_max, MINUTE_S, "new"),
        ),
        "sign-up": (
            Policy("sign-up-address", address, config.signups_per_address_hour_max, HOUR_S),
            Policy("sign-up-house", house, config.signups_house_minute_max, MINUTE_S),
        ),
        "reset": (
            Policy("reset-account", account, config.resets_per_account_hour_max, HOUR_S),
            Policy("reset-address", address, config.resets_per_address_hour_max, HOUR_S),
            Policy("reset-house", house, config.resets_house_minute_max, MINUTE_S),
        ),
        "api-key": (
            Policy("api-key", account, config.key_requests_per_minute_max, MINUTE_S),
            Policy("api-key-address", address, config.key_requests_per_address_minute_max, MINUTE_S),
        ),
        "challenge": (Policy("challenge", address, config.challenges_per_minute_max, MINUTE_S),),
        "guest": (Policy("guest", address, config.guests_per_minute_max, MINUTE_S),),
    }


# The bucket to wait for, or with the least left; wait in ms; left in it; whether the client is known.
Outcome = tuple[Policy | None, int, int, bool]


class RateLimits:
    def __init__(
        self, redis: Redis, config: Config, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._redis = redis
        self._monotonic = monotonic
        self._known_for_ms = config.login_known_d * DAY_S * 1000
        self._policies = {
            name: tuple(policy for policy in policies if policy.quota > 0)
            for name, policies in policies_for(config).items()
        }
        self._buckets = {
            policy.name: Buckets(quota=policy.quota, window_s=policy.window_s, keys_max=KEYS_MAX)
            for policies in self._policies.values()
            for policy in policies
        }

    async def take(self, what: str, *, account: str = "", address: str = "") -> Taken:
        """One of each bucket, or TooManyRequests and none. A client without an address (a socket) has no
        bucket for it."""
        values = {"account": account, "address": normalise_address(address) if address else ""}
        policies = tuple(p for p in self._policies[what] if all(values[part] for part in p.per))
        if not policies:
            return Taken()
        keys = tuple(bucket_key(p.name, *(values[part] for part in p.per)) for p in policies)
        is_person = what == LOGIN and account and address
        known_key = bucket_key(KNOWN, account, values["address"]) if is_person else ""
        taken = Taken(policies, keys, known_key)
        try:
            policy, wait_ms, left, is_known = await self._run(1, taken)
        except EngineDown:
            policy, wait_ms, left, is_known = self._take_here(taken)
        if policy is not None and wait_ms > 0:
            RATE_LIMIT.set(None)
            metrics.add("rate_limited_total", policy=policy.name)
            raise too_many(self._buckets[policy.name], policy.name, wait_ms / 1000)
        RATE_LIMIT.set(_headers(policy, left) if policy is not None else None)
        return _only_counted(taken, is_known=is_known)

    async def give_back(self, taken: Taken) -> None:
        """The request was no abuse: a right password. Its address is known for the account from now on."""
        if not taken.policies:
            return
        for policy, key in zip(taken.policies, taken.keys, strict=True):
            self._buckets[policy.name].give_back(key)
        try:
            await self._run(-1, taken)
        except EngineDown:
            log.info("tries not given back", engine="holds")

    async def _run(self, by: int, taken: Taken) -> Outcome:
        pairs = list(zip(taken.policies, taken.keys, strict=True))
        slots: list[tuple[Policy | None, str]] = [pair for pair in pairs if pair[0].counts != "known"]
        slots += [(None, UNUSED)] * (BUCKETS_MAX - len(slots))
        slots.append(
            (next((p for p in taken.policies if p.counts == "known"), None), taken.known_key or UNUSED)
        )
        sizes = [(p.quota, p.window_s * 1000, p.counts) if p is not None else (0, 0, "") for p, _ in slots]
        which, wait_ms, left, known = await self._redis.script(
            LIMIT,
            [key for _, key in slots],
            [by, self._known_for_ms if taken.known_key else 0, *(part for size in sizes for part in size)],
        )
        return slots[which - 1][0] if which else None, wait_ms, left, bool(known)

    def _take_here(self, taken: Taken) -> Outcome:
        """Without Redis no client is known."""
        now = self._monotonic()
        used: list[tuple[Policy, str]] = []
        for policy, key in zip(taken.policies, taken.keys, strict=True):
            if policy.counts == "known":
                continue
            if wait_s := self._buckets[policy.name].take(key, now):
                for before, its_key in used:
                    self._buckets[before.name].give_back(its_key)
                return policy, int(wait_s * 1000) + 1, 0, False
            used.append((policy, key))
        return used[0][0] if used else None, 0, 0, False


def _only_counted(taken: Taken, *, is_known: bool) -> Taken:
    """Without the buckets that do not count this client: nothing is given back to them."""
    others = "new" if is_known else "known"
    pairs = [pair for pair in zip(taken.policies, taken.keys, strict=True) if pair[0].counts != others]
    policies, keys = tuple(p for p, _ in pairs), tuple(key for _, key in pairs)
    return Taken(policies, keys, taken.known_key, is_known)


def bucket_key(name: str, *values: str) -> str:
    """Where Redis has the bucket of a policy."""
    digest = hashlib.blake2b(" ".join(values).encode(), digest_size=12).hexdigest()
    return f"limit:{{limits}}:{name}:{digest}"


def _headers(policy: Policy, left: int) -> list[tuple[bytes, bytes]]:
    """As in draft-ietf-httpapi-ratelimit-headers: what is left of the tightest policy."""
    name = policy.name
    step_s = max(1, round(policy.window_s / policy.quota))
    return [
        (b"ratelimit-policy", f'"{name}";q={policy.quota};w={policy.window_s}'.encode()),
        (b"ratelimit", f'"{name}";r={left};t={step_s}'.encode()),
    ]
