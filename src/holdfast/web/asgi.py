"""The application that the server calls: from a request to an answer, whatever happens in between.

    request ─► id ─► route ─► over the rate limit? ─► signed in? ─► body ─► key ─► the call ─► answer
                 └──────┴──────────┴─────────────────┴───────────┴──────┴────────┴─► problem+json

One function per step and no chain of middleware: every request pays for every line here, and the hold path
must stay close to a bare endpoint. A refusal is raised where it is found and rendered here, once.
"""

import re
import secrets
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import count
from time import perf_counter
from typing import Protocol

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import AGAIN, Postgres
from holdfast.engines.request_context import CURRENT_SCOPE
from holdfast.engines.tracing import tracer
from holdfast.errors import Busy, MethodNotAllowed, NoSuchRoute, Refusal, TimedOut
from holdfast.web.card_number import (
    find_long_number,
    refuse_card_number_in_query,
    refuse_card_numbers,
)
from holdfast.web.guards import (
    ORGANISATION_HEADER,
    RATE_LIMIT,
    Deadlines,
    Guards,
    KeyVerifier,
    Memberships,
    RawHeaders,
    TokenVerifier,
    read_body,
    refuse_unless_json,
    serve_or_refuse,
)
from holdfast.web.health import HEALTH_ROUTES, Readiness
from holdfast.web.idempotency import IdempotencyKeys, KeyUse
from holdfast.web.problems import render_engine_down, render_internal_error, render_refusal
from holdfast.web.reference import reference_routes
from holdfast.web.request_spans import CLIENT_LEFT, begin_span, end_span
from holdfast.web.responses import Answer, Cors
from holdfast.web.routing import Params, Route, Table

log = structlog.get_logger(__name__)

SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
BODILESS = frozenset({"GET", "HEAD", "DELETE"})
NOWHERE = "nowhere"  # the route of a request that found none

Apology = Callable[[Scope, Answer], Response | None]  # a problem as a page for people; None: as it is


class Served(Protocol):
    """What this module needs of the application object; routes see all of it."""

    @property
    def config(self) -> Config: ...
    @property
    def postgres(self) -> Postgres: ...
    @property
    def accounts(self) -> TokenVerifier: ...
    @property
    def organisations(self) -> Memberships: ...
    @property
    def api_keys(self) -> KeyVerifier: ...
    def pod_chooser(self) -> "PodChooser | None":
        """Which application answers, by the values in the path; None: this one answers all."""


class PodChooser(Protocol):
    def __call__(self, params: Params, /) -> Served: ...
    async def has_moved(self, params: Params, answered: object, /) -> bool:
        """Whether what was not found is in another application by now."""


class Application:
    """`routes`, their documentation and health, on the box office that `box_factory` opens at the start.

    With `only`, the routes of those subjects; the others say that they are served elsewhere.
    """

    def __init__(
        self,
        app_factory: Callable[[], AbstractAsyncContextManager[Served]],
        routes: Iterable[Route],
        only: Container[str] | None = None,
        apology: Apology | None = None,
    ) -> None:
        self._open_app = app_factory
        self._apology = apology
        routes = tuple(routes)
        served = routes if only is None else tuple(serve_or_refuse(route, only) for route in routes)
        self._table = Table((*served, *reference_routes(routes), *HEALTH_ROUTES))
        self._id_prefix = secrets.token_hex(5)  # with a counter: unique without asking for entropy each time
        self._ids = count(1)
        self.is_draining = False  # /readyz reports it: load balancers send no new clients
        self._app: Served | None = None
        self._choose: PodChooser | None = None
        self.readiness = Readiness()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:  # no websockets here: live maps are event streams
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Open the box office when the server starts, close it when the last answer is out."""
        await receive()
        try:
            async with self._open_app() as app:
                self._use(app)
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self.is_draining = True
        except Exception as error:
            log.exception("the box office could not be opened or closed")
            kind = "shutdown" if self._app is not None else "startup"
            await send({"type": f"lifespan.{kind}.failed", "message": repr(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    def _use(self, app: Served) -> None:
        self._app = app
        self._choose = app.pod_chooser()
        self._guards = Guards(app.accounts, app.organisations, app.api_keys, app.config)
        self._keys = IdempotencyKeys(app.postgres)
        self._cors = Cors(app.config.cors_origins)
        self._has_cors = self._cors.is_on
        self._config = app.config
        self._deadlines = Deadlines(app.config.request_timeout_s)
        self._slow_s: float = app.config.slow_request_ms / 1000
        self._logs_access = bool(app.config.access_log)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = self._request_id(headers.get(b"x-request-id"))
        routes, params = self._table.find(scope["path"]) or ({}, {})
        route = routes.get(scope["method"])
        scope["path_params"] = params
        scope["state"] = {
            "app": self._app if self._choose is None else self._choose(params),
            "request_id": request_id,
            "caller": None,
            "application": self,
            "headers": headers,
        }
        CURRENT_SCOPE.set(scope)
        if tracer.is_on:
            begin_span(scope, route)
        try:
            if route is None:
                response = self._not_routed(scope["method"], headers, routes)
            elif route.asgi is not None:
                await self._stream(scope, receive, send, route)
                return
            else:
                with self._deadlines:
                    response = await self._answer(scope, receive, route, headers)
        except Refusal as refusal:
            problem = render_refusal(await self._look_again(scope, refusal), request_id)
            response = self._render_problem(scope, problem)
        except EngineDown as down:
            log.warning("an engine is down", engine=down.engine, unknown=down.unknown)
            response = self._render_problem(scope, render_engine_down(down, request_id))
        except AGAIN:  # a row is locked, or its show is being moved to another pod
            log.warning("a lock was not to be had", path=scope["path"])
            response = self._render_problem(scope, render_refusal(Busy(retry_after_s=1), request_id))
        except TimeoutError:
            log.warning("a request timed out", path=scope["path"])
            response = self._render_problem(scope, render_refusal(TimedOut(retry_after_s=1), request_id))
        except ClientDisconnect:
            if tracer.is_on:
                end_span(scope, CLIENT_LEFT)
            return
        except Exception:
            log.exception("a request broke", method=scope["method"], path=scope["path"])
            response = self._render_problem(scope, render_internal_error(request_id))
        await self._send(scope, receive, send, response)
        self._note(scope, route, response.status_code, perf_counter() - started)

    def _render_problem(self, scope: Scope, problem: Answer) -> Response:
        return (self._apology(scope, problem) if self._apology is not None else None) or problem

    async def _answer(
        self, scope: Scope, receive: Receive, route: Route, headers: dict[bytes, bytes]
    ) -> Response:
        assert route.call is not None
        self._guards.check(scope, route, headers)
        if route.by_membership:
            await self._guards.check_membership(scope, route, headers)
        if route.peek is not None and (ready := route.peek(scope)) is not None:
            return ready
        request = Request(scope, receive)
        if route.query is not None and scope["query_string"]:
            refuse_card_number_in_query(scope["query_string"])
        if route.method not in BODILESS:
            if route.body is not None:
                refuse_unless_json(headers)
            # Starlette's own place for a body that has been read, so that the call finds it there.
            request._body = body = await read_body(receive, headers, self._bytes_max(route))
            if route.body is not None and not route.long_numbers and find_long_number(body) is not None:
                refuse_card_numbers(body)
        if route.keyed and (key := headers.get(b"idempotency-key")) is not None:
            return await self._keyed(request, route, key)
        return await route.call(request)

    async def _keyed(self, request: Request, route: Route, key: bytes) -> Response:
        """The call, once for this key. A refusal is a response like any other, and is stored."""
        assert route.call is not None
        call, scope, caller = route.call, request.scope, request.state.caller
        who = caller.label if caller else f"address {(scope.get('client') or ('', 0))[0]}"
        sent = b"%s?%s\n%s" % (scope["path"].encode(), scope["query_string"], await request.body())
        if route.right is not None:  # the same request for another organisation is another request
            sent += request.state.headers.get(ORGANISATION_HEADER, b"")
        use = KeyUse.of(key, caller=who, route=f"{route.method} {route.full_path}", sent=sent)

        async def attempt() -> Response:
            try:
                return await call(request)
            except Refusal as refusal:
                return render_refusal(await self._look_again(scope, refusal), request.state.request_id)

        return await self._keys.once(use, attempt)

    async def _look_again(self, scope: Scope, refusal: Refusal) -> Refusal:
        """What is not found may have moved to another pod a moment ago: the client tries again."""
        if refusal.status != 404 or self._choose is None:
            return refusal
        try:
            has_moved = await self._choose.has_moved(scope["path_params"], scope["state"]["app"])
        except EngineDown:  # home is away, and no show moves
            return refusal
        return Busy(retry_after_s=1) if has_moved else refusal

    def _not_routed(self, method: str, headers: dict[bytes, bytes], routes: Iterable[str]) -> Response:
        allow = sorted({*routes, "OPTIONS"})
        if not routes:
            raise NoSuchRoute
        if method != "OPTIONS":
            raise MethodNotAllowed(allow=allow)
        response = Answer(204, b"", {"Allow": ", ".join(allow)})
        response.raw_headers += self._cors.preflight(headers.get(b"origin"), ", ".join(allow))
        return response

    def _extra_headers(self, scope: Scope) -> RawHeaders:
        extra: RawHeaders = [(b"x-request-id", scope["state"]["request_id"].encode())]
        if (limit := RATE_LIMIT.get()) is not None:
            RATE_LIMIT.set(None)  # a connection's next request may run in the same context
            extra += limit
        if self._has_cors:
            extra += self._cors.headers(dict(scope["headers"]).get(b"origin"))
        return extra

    async def _stream(self, scope: Scope, receive: Receive, send: Send, route: Route) -> None:
        """A raw ASGI callable. Before its first byte a refusal is an answer; later the stream just ends."""
        assert route.asgi is not None
        self._guards.check(scope, route, dict(scope["headers"]))
        extra, has_begun = self._extra_headers(scope), False

        async def send_on(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                message, has_begun = {**message, "headers": [*message.get("headers", ()), *extra]}, True
            await send(message)

        try:
            await route.asgi(scope, receive, send_on)
        except Exception:
            if not has_begun:
                raise
            log.exception("a stream broke", path=scope["path"])

    async def _send(self, scope: Scope, receive: Receive, send: Send, response: Response) -> None:
        extra = self._extra_headers(scope)
        body = getattr(response, "body", None)
        if body is None or response.background is not None:  # a stream or a file: made for this request alone
            response.raw_headers = response.raw_headers + extra
            await response(scope, receive, send)
            return
        # The answer itself stays untouched: it may be cached and shared by many requests.
        start: Message = {"type": "http.response.start", "status": response.status_code}
        start["headers"] = response.raw_headers + extra
        await send(start)
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _note(self, scope: Scope, route: Route | None, status: int, took_s: float) -> None:
        if tracer.is_on:
            end_span(scope, status)
        name = route.name if route is not None else NOWHERE
        metrics.observe("http_seconds", took_s, route=name)
        metrics.add("http_answers_total", 1, route=name, status=str(status))
        if self._logs_access or took_s > self._slow_s:
            log.info(
                "slow request" if took_s > self._slow_s else "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                took_ms=round(took_s * 1000, 1),
                **_who(scope),
            )

    def _bytes_max(self, route: Route) -> int:
        limit: int = route.body_bytes_max or getattr(self._config, route.body_limit)
        return limit

    def _request_id(self, given: bytes | None) -> str:
        if given is not None and SANE_ID.fullmatch(given):
            return given.decode()
        return f"{self._id_prefix}{next(self._ids):x}"


def _who(scope: Scope) -> dict[str, str | int]:
    """The client's address and, if it is signed in with a token or a cookie, its account."""
    state, client = scope["state"], scope.get("client")
    found: dict[str, str | int] = {"client": client[0]} if client else {}
    if (known := state["caller"] or state.get("session")) is not None:
        found["account_id"] = known.account_id
        if state["caller"] is not None and known.key_id is not None:
            found["key_id"] = known.key_id
    return found
