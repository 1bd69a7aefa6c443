"""Checks around a handler: time limit, rate limit, sign-in, role, and type and size of the body.

A process may serve only some subjects (`holdfast serve --only …`). Other routes stay in the table,
so that no path matches the wrong route (`/tickets/worker.js`, `/tickets/{link}`), and in the API document.
"""

import asyncio
from collections.abc import Container, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network
from time import monotonic
from types import TracebackType
from typing import Protocol

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from holdfast.config import Config
from holdfast.errors import (
    BodyTooLarge,
    NotAllowed,
    NotAMember,
    Refusal,
    TokenInvalid,
    TooManyRequests,
    WrongMediaType,
)
from holdfast.web.caller import KEY_PREFIX, Caller, Right, Role, allows
from holdfast.web.caller import Scope as OrganiserScope
from holdfast.web.routing import Route

LOOKS_A_LIMIT = 8  # a request ends at most an eighth of its limit late


class Deadlines:
    """A time limit for every request at the cost of two dict operations.

        enter ──► running: task → started ──► leave
                      │ looked through a few times per second, oldest first
                      └─ too old ──► cancelled, and distinguished from every other cancellation

    asyncio.timeout sets and clears a timer for each request, a fifth of the cost of this layer, for a limit
    that one request in a million meets. All have the same limit, so a dict in order of arrival is enough.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._running: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = monotonic()
        if self._timer is None:
            self._look_later()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """TimeoutError for the one who was late; everybody else's exceptions pass."""
        task = asyncio.current_task()
        assert task is not None
        self._running.pop(task, None)
        if self._late and task in self._late:
            self._late.discard(task)
            if task.uncancel() == 0 and isinstance(error, asyncio.CancelledError):
                raise TimeoutError from error

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._timeout_s / LOOKS_A_LIMIT, self._look)

    def _look(self) -> None:
        too_old = monotonic() - self._timeout_s
        for task, started in list(self._running.items()):
            if started > too_old:
                break
            del self._running[task]
            self._late.add(task)
            task.cancel()
        self._timer = None
        if self._running:
            self._look_later()


log = structlog.get_logger(__name__)
PROXY_WARNED_EVERY_S = 60
REQUESTS_WINDOW_S = 1


class Buckets:
    """Token buckets of one size that refill steadily. `now` is any clock that does not go back, in seconds.

    A bucket is one number per key: the time at which it would be full again without further requests (GCRA).
    It holds `quota` and refills within `window_s`. limit.lua has the same number in Redis: they must agree.
    """

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

    def give_back(self, key: str) -> None:
        """One that was taken and is not to count."""
        if key in self._full_at:
            self._full_at[key] -= self._step_s

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


_warned_at = -1e9  # of the log line below


def note_untrusted_proxy(client: tuple[str, int], headers: Mapping[bytes, bytes]) -> None:
    """Log that a proxy is not named in trusted_proxies: its clients have one address, and share its limits.

    The server sets port 0 where it has believed an X-Forwarded-For.
    """
    global _warned_at
    if b"x-forwarded-for" in headers and client[1] != 0 and monotonic() - _warned_at > PROXY_WARNED_EVERY_S:
        _warned_at = monotonic()
        log.warning(
            "X-Forwarded-For of an address that is not trusted: its clients share all limits",
            address=client[0],
            fix="name your proxy in HOLDFAST_TRUSTED_PROXIES",
        )


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


RawHeaders = list[tuple[bytes, bytes]]
# What is left of the tightest limit that the request has used; the response carries it: rate_limits.py.
RATE_LIMIT: ContextVar[RawHeaders | None] = ContextVar("rate_limit", default=None)


class TokenVerifier(Protocol):
    """Turns an Authorization header into the caller it names, or refuses. The accounts store is one."""

    def verify(self, authorization: str | None) -> Caller: ...


ORGANISATION_HEADER = b"holdfast-organisation"


class Memberships(Protocol):
    """Knows what an account may do in which organisation. The organisations store is one."""

    async def find_scope(self, caller: Caller, right: Right, organisation: str | None) -> OrganiserScope:
        """What the caller may do in this organisation, or in their only one; or a refusal."""

    async def has_anywhere(self, account_id: int, right: Right) -> bool: ...

    async def check_house(self, caller: Caller) -> None:
        """Refuses an administrator without a second factor, where the house wants one."""


class KeyVerifier(Protocol):
    """Turns an API key into its organisation and rights there, or refuses."""

    async def verify(self, key: str, address: str) -> tuple[Caller, OrganiserScope]: ...


BEARER = b"bearer "
KEY_BEGINS = KEY_PREFIX.encode()
KEY_AT = slice(len(BEARER), len(BEARER) + len(KEY_PREFIX))


class Guards:
    def __init__(
        self, tokens: TokenVerifier, memberships: Memberships, keys: KeyVerifier, config: Config
    ) -> None:
        self._tokens = tokens
        self._memberships = memberships
        self._keys = keys
        self._limiter = Limiter(
            requests_per_second_max=config.requests_per_second_max, addresses_max=config.addresses_max
        )

    def check(self, scope: Scope, route: Route, headers: dict[bytes, bytes]) -> None:
        """Refuses, or stores the caller in the state of the request. Public routes never look at tokens."""
        client = scope.get("client")
        if client is not None and (refusal := self._limiter.check(client[0], monotonic())):
            raise refusal
        if route.role is not None:
            sent = headers.get(b"authorization")
            if sent is not None and sent[KEY_AT] == KEY_BEGINS and sent[: len(BEARER)].lower() == BEARER:
                refuse_key(route)
                return
            caller = self._tokens.verify(None if sent is None else sent.decode("latin-1"))
            is_by_role = route.role is Role.ADMIN or not route.by_membership
            if is_by_role and not allows(caller.role, route.role):
                raise NotAllowed(needed=route.role)
            scope["state"]["caller"] = caller

    async def check_membership(self, scope: Scope, route: Route, headers: dict[bytes, bytes]) -> None:
        """For routes that are `by_membership`, after `check`; stores the scope of organisers' routes.

        Devices at the door have tokens of their own role: a scan looks no membership up.
        """
        caller: Caller | None = scope["state"]["caller"]
        if caller is None:
            await self._check_key(scope, route, headers)
        elif route.right is not None:
            scope["state"]["scope"] = await self._memberships.find_scope(
                caller, route.right, _named_organisation(scope, headers)
            )
        elif route.role is Role.ADMIN:
            await self._memberships.check_house(caller)
        elif not allows(caller.role, Role.GATE) and not await self._memberships.has_anywhere(
            caller.account_id, Right.DOOR
        ):
            raise NotAllowed(needed=Role.GATE)

    async def _check_key(self, scope: Scope, route: Route, headers: dict[bytes, bytes]) -> None:
        """For a route with a right: `check` has refused keys on all others."""
        assert route.right is not None
        key, client = headers[b"authorization"][len(BEARER) :].decode("latin-1").strip(), scope.get("client")
        caller, found = await self._keys.verify(key, client[0] if client is not None else "")
        if _named_organisation(scope, headers) not in (None, str(found.organisation_id)):
            raise NotAMember
        found.require(route.right)
        scope["state"]["caller"], scope["state"]["scope"] = caller, found


def refuse_key(route: Route) -> None:
    """API keys are for the routes of organisers; some of those are for people alone."""
    if route.right is None:
        raise TokenInvalid
    if route.for_people:
        raise NotAllowed(needed="a person")


def _named_organisation(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    named = scope["path_params"].get("organisation")
    if named is None and (sent := headers.get(ORGANISATION_HEADER)) is not None:
        named = sent.decode("latin-1")
    return None if named is None else str(named)


def refuse_unless_json(headers: dict[bytes, bytes]) -> None:
    sent = headers.get(b"content-type")
    if sent is None or sent == b"application/json":
        return
    if sent.partition(b";")[0].strip().lower() != b"application/json":
        raise WrongMediaType


async def read_body(receive: Receive, headers: dict[bytes, bytes], bytes_max: int) -> bytes:
    """The whole body, but never more than the limit: neither announced nor sent in pieces."""
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced) > bytes_max:
        raise BodyTooLarge(limit=bytes_max)
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        size += len(piece)
        if size > bytes_max:
            raise BodyTooLarge(limit=bytes_max)
        pieces.append(piece)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class ServedElsewhere(Refusal):
    """The address exists, but this process does not serve its subject, `served_as`.

    The load balancer sent this request to the wrong process. Operators: route it to a process that was
    started with this name in `holdfast serve --only`, or without `--only`.
    """

    code, status, title = "served_elsewhere", 404, "Another process serves this"


def role_name(route: Route) -> str:
    return route.tag.replace(" ", "")


def serve_or_refuse(route: Route, only: Container[str]) -> Route:
    """The route, or one in its place that says where it is not."""
    if role_name(route) in only:
        return route

    async def served_elsewhere(request: Request) -> Response:
        raise ServedElsewhere(served_as=role_name(route))

    # Not keyed: a stored refusal would be replayed by the process that does serve it.
    none = dict.fromkeys(("asgi", "body", "query", "role", "right"))
    elsewhere = replace(route, call=served_elsewhere, **none)  # type: ignore[arg-type]
    return replace(elsewhere, keyed=False, takes_key=True)
