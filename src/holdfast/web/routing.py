"""Routes as data, declared above their handlers, and found without a regular expression.

    routes = RouteTable(tag="sale", role=Role.FAN)

    @routes.post("/shows/{show:int}/holds", body=HoldBody, answers={201: BookingPage}, refusals=(SeatsTaken,))
    async def hold_seats(request: Request) -> Response: ...

    ROUTES = routes.all

A handler finds the application and the caller with `get_app(request)` and `get_caller(request)`.
The same values serve the requests (web/asgi.py) and build the OpenAPI documents (web/openapi.py), so the two
cannot disagree.

A path is a chain of segments. Each segment is one look-up in a dict; a fixed segment wins over an int, an int
over a text. An int that does not fit into a PostgreSQL bigint matches nothing.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from holdfast.errors import Refusal
from holdfast.web.audiences import Audience
from holdfast.web.caller import Caller, Right, Role
from holdfast.web.caller import Scope as OrganiserScope

if TYPE_CHECKING:
    from holdfast.app import App

API = "/api/v1"
BIGINT_MAX = 2**63 - 1
BIGINT_DIGITS = 19
CACHED_PATHS_MAX = 4096
CACHED_PATH_LENGTH_MAX = 200  # bounds the memory that arbitrary long paths could fill

Call = Callable[[Request], Awaitable[Response]]
Peek = Callable[[Scope], Response | None]
Params = dict[str, str | int]
C = TypeVar("C", bound=Call)
A = TypeVar("A", bound=ASGIApp)


def get_app(request: Request) -> "App":
    return scope_app(request.scope)


def scope_app(scope: Scope) -> "App":
    return cast("App", scope["state"]["app"])


def follow_show(request: Request, show_id: int) -> None:
    """The pod that owns this show answers the rest of the request: its body named the show, not its path."""
    request.scope["state"]["app"] = get_app(request).router.for_show(show_id)


def get_caller(request: Request) -> Caller:
    """The signed-in caller. Only for routes with a role: those of public routes have none."""
    caller: Caller | None = request.scope["state"]["caller"]
    assert caller is not None, "a route without a role has no caller"
    return caller


def get_scope(request: Request) -> OrganiserScope:
    """The organisation that the request speaks for. For routes with a right, and those of admins."""
    found: OrganiserScope | None = request.scope["state"].get("scope")
    if found is None:
        caller = get_caller(request)
        assert caller.role is Role.ADMIN, "a route without a right is for the whole house"
        found = OrganiserScope(caller.account_id, is_admin=True)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str  # under /api/v1 unless `bare`
    tag: str  # the subject
    call: Call | None = None  # its docstring is the documentation: first line summary, the rest description
    peek: Peek | None = None  # returns a cached response without building a Request or awaiting
    asgi: ASGIApp | None = None  # instead of `call`: a stream, gets the raw request and has no time limit
    body: type | None = None  # msgspec.Struct, forbid_unknown_fields
    query: type | None = None  # msgspec.Struct, every field with a default
    answers: Mapping[int, Any] = field(default_factory=dict)  # status → type of the JSON; None: no body
    refusals: tuple[type[Refusal], ...] = ()
    role: Role | None = None  # None: anyone, and tokens are not looked at
    right: Right | None = None  # of routes for organisers: what a member of the organisation needs
    audience: Audience | None = None  # whose API document has it; None: that of its role
    for_people: bool = False  # API keys are refused, whatever their rights
    # Every POST of the API honours the Idempotency-Key in one of these two ways.
    keyed: bool = False  # the response is stored under the key and replayed: web/idempotency.py
    takes_key: bool = False  # the call itself keeps the promise; only documented
    media_types: tuple[str, ...] = ("application/json",)  # what a 2xx answer may come as
    body_bytes_max: int = 0  # for the few that take more than the setting allows; 0: the setting
    body_limit: str = "body_bytes_max"  # the setting
    long_numbers: bool = False  # full of coordinates: not scanned for card numbers
    bare: bool = False  # served at `path` itself; not part of the API document

    name: str = field(init=False)  # for logs and meters, and the operationId of the API document
    by_membership: bool = field(init=False)  # decided by what the caller may do in an organisation

    def __post_init__(self) -> None:
        assert (self.call is None) != (self.asgi is None), f"{self.path}: either call or asgi"
        assert not (self.keyed and self.takes_key), f"{self.path}: one of the two keeps the promise"
        is_api_post = self.method == "POST" and not self.bare
        assert not is_api_post or self.keyed or self.takes_key, f"{self.path} ignores the Idempotency-Key"
        is_for_organisers = self.role is Role.ORGANISER
        assert is_for_organisers == (self.right is not None), f"{self.path}: organisers need a right"
        by_membership = self.role in (Role.ORGANISER, Role.GATE, Role.ADMIN)
        assert not (by_membership and self.asgi), f"{self.path}: a stream is not checked for membership"
        object.__setattr__(self, "by_membership", by_membership)
        object.__setattr__(self, "name", str(getattr(self.call or self.asgi, "__name__", self.path)))

    @property
    def full_path(self) -> str:
        return self.path if self.bare else API + self.path

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.call or self.asgi) or self.name


class TableOptions(TypedDict, total=False):
    """The fields of `Route` that a table sets for all its routes; a field left out has its default."""

    peek: Peek | None
    body: type | None
    query: type | None
    answers: Mapping[int, Any]
    refusals: tuple[type[Refusal], ...]
    role: Role | None
    right: Right | None
    audience: Audience | None
    for_people: bool
    keyed: bool
    takes_key: bool
    media_types: tuple[str, ...]
    body_bytes_max: int
    body_limit: str
    long_numbers: bool
    bare: bool


class RouteOptions(TableOptions, total=False):
    """The fields of `Route` that a decorator sets."""

    tag: str


class RouteTable:
    """The routes of one module, in the order in which the handlers are defined.

    `prefix` comes before each path and `refusals` before those of each route; the other options are defaults
    that a route may override. A handler with several paths has one decorator per path.
    """

    def __init__(self, *, tag: str, prefix: str = "", **defaults: Unpack[TableOptions]) -> None:
        self._prefix = prefix
        self._refusals = defaults.pop("refusals", ())
        self._defaults: RouteOptions = {"tag": tag, **defaults}
        self._routes: list[Route] = []
        self._is_complete = False

    def get(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[C], C]:
        return self._handler("GET", path, options)

    def post(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[C], C]:
        """Its answer is stored under the Idempotency-Key, unless the handler keeps that promise itself."""
        is_bare = options.get("bare", self._defaults.get("bare", False))
        options.setdefault("keyed", not is_bare and not options.get("takes_key", False))
        return self._handler("POST", path, options)

    def put(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[C], C]:
        return self._handler("PUT", path, options)

    def patch(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[C], C]:
        return self._handler("PATCH", path, options)

    def delete(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[C], C]:
        return self._handler("DELETE", path, options)

    def stream(self, path: str = "", **options: Unpack[RouteOptions]) -> Callable[[A], A]:
        """A GET whose handler is an ASGI application: it has no time limit."""

        def add(app: A) -> A:
            self._add(Route(method="GET", path=self._prefix + path, asgi=app, **self._merged(options)))
            return app

        return add

    @property
    def all(self) -> tuple[Route, ...]:
        """Every route. Read it once, below the last handler: a route declared later would be lost."""
        self._is_complete = True
        return tuple(self._routes)

    def _handler(self, method: str, path: str, options: RouteOptions) -> Callable[[C], C]:
        def add(call: C) -> C:
            self._add(Route(method=method, path=self._prefix + path, call=call, **self._merged(options)))
            return call

        return add

    def _merged(self, options: RouteOptions) -> RouteOptions:
        refusals = (*self._refusals, *options.get("refusals", ()))
        return {**self._defaults, **options, "refusals": refusals}

    def _add(self, route: Route) -> None:
        assert not self._is_complete, f"{route.path} is declared below ROUTES = routes.all"
        self._routes.append(route)


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    is_int: bool


def params_of(path: str) -> tuple[Param, ...]:
    return tuple(param for segment in path.split("/") if (param := _param(segment)))


def _param(segment: str) -> Param | None:
    if not (segment.startswith("{") and segment.endswith("}")):
        return None
    name, _, kind = segment[1:-1].partition(":")
    assert kind in ("", "int"), f"{segment}: a parameter is a text or an int"
    return Param(name, kind == "int")


def names_organisation(route: Route) -> bool:
    """In its path, so that no header is needed."""
    return any(param.name == "organisation" for param in params_of(route.path))


class Node:
    """A place in the tree of paths: what may follow, and what is served here by method."""

    __slots__ = ("fixed", "int_name", "int_node", "routes", "text_name", "text_node")

    def __init__(self) -> None:
        self.fixed: dict[str, Node] = {}
        self.int_name, self.text_name = "", ""
        self.int_node: Node | None = None
        self.text_node: Node | None = None
        self.routes: dict[str, Route] = {}

    def grow(self, segment: str) -> "Node":
        """The node behind this segment, made if it is new."""
        param = _param(segment)
        if param is None:
            return self.fixed.setdefault(segment, Node())
        if param.is_int:
            assert self.int_name in ("", param.name), f"{segment} is called {self.int_name} elsewhere"
            self.int_name, self.int_node = param.name, self.int_node or Node()
            return self.int_node
        assert self.text_name in ("", param.name), f"{segment} is called {self.text_name} elsewhere"
        self.text_name, self.text_node = param.name, self.text_node or Node()
        return self.text_node


class Table:
    """Every route, found by its path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = Node()
        # During a sale one path is requested thousands of times per second: resolve it once.
        self._resolved: dict[str, tuple[Mapping[str, Route], Params]] = {}
        for route in routes:
            self._add(route)

    def find(self, path: str) -> tuple[Mapping[str, Route], Params] | None:
        """What is served at this path, by method, and the values in the path; None when nothing is."""
        if (cached := self._resolved.get(path)) is not None:
            return cached[0], cached[1].copy()
        params: Params = {}
        node = _walk(self._root, path.split("/"), 1, params)
        if node is None:
            return None
        if len(path) <= CACHED_PATH_LENGTH_MAX:
            if len(self._resolved) >= CACHED_PATHS_MAX:
                self._resolved.clear()
            self._resolved[path] = (node.routes, params.copy())
        return node.routes, params

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.full_path.split("/")[1:]:
            node = node.grow(segment)
        assert route.method not in node.routes, f"{route.method} {route.full_path} is routed twice"
        node.routes[route.method] = route
        if route.method == "GET" and route.asgi is None:
            node.routes.setdefault("HEAD", route)


def _walk(node: Node, segments: list[str], at: int, params: Params) -> Node | None:
    if at == len(segments):
        return node if node.routes else None
    segment = segments[at]
    if (fixed := node.fixed.get(segment)) and (found := _walk(fixed, segments, at + 1, params)):
        return found
    number = _bigint(segment) if node.int_node else None
    if node.int_node and number is not None and (found := _walk(node.int_node, segments, at + 1, params)):
        params[node.int_name] = number
        return found
    # No valid name contains NUL, and PostgreSQL rejects it.
    is_text = bool(segment) and "\0" not in segment
    if node.text_node and is_text and (found := _walk(node.text_node, segments, at + 1, params)):
        params[node.text_name] = segment
        return found
    return None


def _bigint(segment: str) -> int | None:
    if len(segment) > BIGINT_DIGITS or not (segment.isascii() and segment.isdigit()):
        return None
    number = int(segment)
    return number if number <= BIGINT_MAX else None
