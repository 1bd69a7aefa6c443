"""Checks before a handler runs: rate limit, sign-in, role, and type and size of the body.

A process may serve only some subjects (`holdfast serve --only …`). Other routes stay in the table,
so that no path matches the wrong route (`/tickets/worker.js`, `/tickets/{link}`), and in the API document.
"""

from collections.abc import Container
from dataclasses import replace
from time import monotonic
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from holdfast.config import Config
from holdfast.errors import BodyTooLarge, NotAllowed, Refusal, WrongMediaType
from holdfast.web.caller import Caller, allows
from holdfast.web.rate_limits import Limiter
from holdfast.web.routing import Route

RawHeaders = list[tuple[bytes, bytes]]


class TokenVerifier(Protocol):
    """Turns an Authorization header into the caller it names, or refuses. The accounts store is one."""

    def verify(self, authorization: str | None) -> Caller: ...


class Guards:
    def __init__(self, tokens: TokenVerifier, config: Config) -> None:
        self._tokens = tokens
        self._limiter = Limiter(
            requests_per_second_max=config.requests_per_second_max, addresses_max=config.addresses_max
        )

    def check(self, scope: Scope, route: Route, headers: dict[bytes, bytes]) -> None:
        """Refuses, or notes who is asking in the state of the request. Public routes never look at tokens."""
        client = scope.get("client")
        if client is not None and (refusal := self._limiter.check(client[0], monotonic())):
            raise refusal
        if route.role is not None:
            sent = headers.get(b"authorization")
            caller = self._tokens.verify(None if sent is None else sent.decode("latin-1"))
            if not allows(caller.role, route.role):
                raise NotAllowed(needed=route.role)
            scope["state"]["caller"] = caller


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
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        body = body + piece if body else piece
        if len(body) > bytes_max:
            raise BodyTooLarge(limit=bytes_max)
        more = message.get("more_body", False)
    return body


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

    bare = {"asgi": None, "body": None, "query": None, "role": None, "keyed": False, "takes_key": False}
    return replace(route, call=served_elsewhere, **bare)  # type: ignore[arg-type]
