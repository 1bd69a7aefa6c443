"""The OpenAPI 3.1 document, built from the table that serves the requests and the structs that check them.

It is exact: it lists every status an operation can return, with the problem codes that status may carry, and
no others. tests/journeys/test_schemathesis.py compares a running server with it.

What several operations share is a component and appears once: schemas, path parameters, headers, and problem
responses that list the same codes.
"""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from holdfast.errors import (
    BadKey,
    BodyTooLarge,
    Busy,
    Invalid,
    KeyReused,
    Malformed,
    MethodNotAllowed,
    NoSuchRoute,
    NotAllowed,
    NotSignedIn,
    Refusal,
    StillProcessing,
    TimedOut,
    TokenExpired,
    TokenInvalid,
    TooManyRequests,
    WrongMediaType,
)
from holdfast.web.caller import Role
from holdfast.web.card_number import CardNumber
from holdfast.web.examples import Examples
from holdfast.web.problems import ENGINE_DOWN, PROBLEM_JSON, Problem, ProblemPage, get_problem_page
from holdfast.web.routing import API, BIGINT_MAX, Param, Route, params_of

Json = dict[str, Any]
Codes = tuple[ProblemPage, ...]  # the problems of one status of one operation, ordered by code

SCHEMA_REF = "#/components/schemas/{name}"
LEADING_ROUTE = re.compile(r"^[A-Z]+ /\S*: ")
PATH_KIND = re.compile(r":int}")
ABOUT = """\
Browse events, hold seats, pay, get tickets. JSON in snake_case, times in RFC 3339 UTC, money in minor units.

Every error is a problem+json (RFC 9457) with a stable `code`; its `type` links to a page that explains it.
Send an `Idempotency-Key` with every POST: a retry with the same key acts once and gets the same response.
PUT, PATCH and DELETE need none: repeated, they have the same effect.
"""
TAGS = {
    "sale": "Hold seats, extend a hold, list and cancel bookings.",
    "payments": "Pay a booking, follow the payment, get refund quotes and invoices.",
    "tickets": "Tickets of a booking: codes, PDF, calendar entry, transfer to another person.",
    "seat map": "Layout and live state of a show's seats.",
    "catalogue": "Cities, venues, events and shows that are on sale.",
    "search": "Search by words, place, date and price; suggestions while typing.",
    "accounts": "Accounts: sign up, log in, refresh tokens, change password and language.",
    "gate": "Check-in at the door, for scanners with a gate pass.",
    "notifications": "E-mails and text messages to buyers.",
    "admin": "For organisers: venues, layouts, events, shows, prices, blocks, gate passes, refunds, reports.",
}
STATUS_WORDS = {
    200: "OK",
    201: "Created",
    202: "Accepted; not finished yet",
    204: "Done, no body",
    304: "Not modified since the ETag you sent",
}
HEADER_PARAMETERS: Json = {
    "Idempotency-Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "1 to 255 visible ASCII characters; new for each new request, the same for a retry.",
        # Without an example: the reference page would send it with every request, and keys must be new.
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[!-~]+$(?!\n)"},
    },
    "If-None-Match": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The ETag you have. If nothing changed, the response is 304 without a body.",
        "schema": {"type": "string"},
    },
}
RESPONSE_HEADERS: Json = {
    "X-Request-Id": {
        "description": "The id under which our logs have this request.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next attempt.",
        "schema": {"type": "integer", "minimum": 1},
    },
}


def document(routes: Iterable[Route]) -> Json:
    documented = [route for route in routes if not route.bare]
    names = [route.name for route in documented]
    assert len(names) == len(set(names)), f"operation names must be unique: {sorted(names)}"
    schemas, problems = Schemas(documented), ProblemResponses(documented)
    paths: dict[str, Json] = defaultdict(dict)
    for route in documented:
        paths[PATH_KIND.sub("}", route.path)][route.method.lower()] = operation(route, schemas, problems)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": version("holdfast"),
            "description": ABOUT,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": API}],
        "tags": tags(documented),
        "paths": dict(paths),
        "components": {
            "schemas": schemas.components,
            "parameters": {**path_parameters(documented), **HEADER_PARAMETERS},
            "headers": RESPONSE_HEADERS,
            "responses": problems.components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def tags(routes: Iterable[Route]) -> list[Json]:
    """In the order of `TAGS`, then any other tag."""
    used = {route.tag for route in routes}
    described = [{"name": tag, "description": text} for tag, text in TAGS.items() if tag in used]
    return described + [{"name": tag} for tag in sorted(used - set(TAGS))]


class Schemas:
    """The JSON schema of every type that the routes name."""

    def __init__(self, routes: Iterable[Route]) -> None:
        kinds: list[Any] = [Problem]
        for route in routes:
            named = (route.body, route.query, *route.answers.values())
            kinds += [kind for kind in named if kind is not None and kind not in kinds]
        queries = {route.query for route in routes if route.query}
        found, self.components = msgspec.json.schema_components(kinds, ref_template=SCHEMA_REF)
        self._schemas = list(zip(kinds, found, strict=True))
        for schema in self.components.values():
            _tidy(schema)
        # A query is not a JSON object on the wire: each field becomes a parameter.
        self._queries = {kind: self.components.pop(self._name(kind)) for kind in queries}

    def of(self, kind: Any) -> Json:
        return next(schema for known, schema in self._schemas if known is kind or known == kind)

    def query(self, kind: type) -> Json:
        properties: Json = self._queries[kind].get("properties", {})
        return {name: _without_null(schema) for name, schema in properties.items()}

    def example(self, kind: Any) -> object:
        """A request body with the required fields only."""
        return Examples(self.components).of(self.of(kind))

    def _name(self, kind: Any) -> str:
        return str(self.of(kind)["$ref"]).rsplit("/", 1)[-1]


def _tidy(schema: Json) -> None:
    """What msgspec leaves to us: the docstring's indent, a title that repeats the name, and formats of times.

    By our naming rule, a field named `…_at` is an RFC 3339 time.
    """
    schema.pop("title", None)
    if "description" in schema:
        schema["description"] = inspect.cleandoc(schema["description"])
    for name, field in schema.get("properties", {}).items():
        for choice in field.get("anyOf", [field]) if name.endswith("_at") else ():
            if choice.get("type") == "string":
                choice["format"] = "date-time"
    _simplify_tuples(schema)


def _simplify_tuples(node: Any) -> None:
    """`items: false` after prefixItems repeats maxItems, and some client generators reject a boolean."""
    if isinstance(node, list):
        for child in node:
            _simplify_tuples(child)
    if not isinstance(node, dict):
        return
    if node.get("items") is False:
        first, *others = node["prefixItems"]
        del node["items"]
        if all(other == first for other in others):
            node["items"] = node.pop("prefixItems")[0]
    for child in node.values():
        _simplify_tuples(child)


def _without_null(schema: Json) -> Json:
    """An optional query field is `None` in the struct, but a query string cannot contain null."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    cleaned = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    if len(choices) == 1:
        cleaned.pop("anyOf")
        return {**choices[0], **cleaned}
    return cleaned


class ProblemResponses:
    """Problem responses. A set of codes that several operations return under one status is a component."""

    def __init__(self, routes: Iterable[Route]) -> None:
        sets = Counter(codes for route in routes for codes in problems_by_status(route).values())
        self._shared = {codes: _component_name(codes) for codes, uses in sets.items() if uses > 1}
        self.components = {name: problem_response(codes) for codes, name in self._shared.items()}

    def of(self, codes: Codes) -> Json:
        if (name := self._shared.get(codes)) is not None:
            return {"$ref": f"#/components/responses/{name}"}
        return problem_response(codes)


def _component_name(codes: Codes) -> str:
    """BusyOrTimedOut"""
    return "Or".join(page.code.title().replace("_", "") for page in codes)


def operation(route: Route, schemas: Schemas, problems: ProblemResponses) -> Json:
    summary, _, description = route.doc.partition("\n")
    summary = LEADING_ROUTE.sub("", summary).strip().rstrip(".")
    found: Json = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": summary[:1].upper() + summary[1:],
        "description": description.strip(),
        "parameters": parameters(route, schemas),
        "responses": responses(route, schemas, problems),
        "security": [{"bearer": []}] if route.role else [],
    }
    if route.role:
        found["x-role"] = str(route.role)
    if route.body is not None:
        content = {"schema": schemas.of(route.body), "example": schemas.example(route.body)}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return {name: value for name, value in found.items() if value or name == "security"}


def parameters(route: Route, schemas: Schemas) -> list[Json]:
    found = [_parameter_ref(_parameter_name(param)) for param in params_of(route.path)]
    if route.query is not None:
        for name, schema in schemas.query(route.query).items():
            described = {"description": schema.pop("description")} if "description" in schema else {}
            found.append({"name": name, "in": "query", "required": False, **described, "schema": schema})
    if route.keyed or route.takes_key:
        found.append(_parameter_ref("Idempotency-Key"))
    if 304 in route.answers:
        found.append(_parameter_ref("If-None-Match"))
    return found


def path_parameters(routes: Iterable[Route]) -> Json:
    whole = {"type": "integer", "minimum": 1, "maximum": BIGINT_MAX}
    text = {"type": "string", "minLength": 1}
    return {
        _parameter_name(param): {
            "name": param.name,
            "in": "path",
            "required": True,
            "schema": whole if param.is_int else text,
        }
        for route in routes
        for param in params_of(route.path)
    }


def _parameter_name(param: Param) -> str:
    """A text and a number may have the same name in two paths."""
    return f"{param.name}-number" if param.is_int else param.name


def _parameter_ref(name: str) -> Json:
    return {"$ref": f"#/components/parameters/{name}"}


def responses(route: Route, schemas: Schemas, problems: ProblemResponses) -> Json:
    found: Json = {}
    for status, kind in route.answers.items():
        response: Json = {"description": STATUS_WORDS.get(status, "Response"), **_headers("X-Request-Id")}
        if kind is not None:
            schema = schemas.of(kind)
            response["content"] = {media: _content(media, schema) for media in route.media_types}
        found[str(status)] = response
    for status, codes in sorted(problems_by_status(route).items()):
        found[str(status)] = problems.of(codes)
    return found


def _content(media: str, schema: Json) -> Json:
    """Only JSON has a schema in OpenAPI 3.1. The events of a stream are JSON too, each by itself."""
    if media.endswith("json"):
        return {"schema": schema}
    return {"x-event-schema": schema} if media == "text/event-stream" else {}


def problem_response(codes: Codes) -> Json:
    """The enum beside the reference is for validators; generated clients see one Problem type everywhere."""
    schema = {
        "$ref": SCHEMA_REF.format(name=Problem.__name__),
        "properties": {"code": {"enum": [page.code for page in codes]}},
    }
    lines = [f"- [`{page.code}`]({page.type}): {page.title}" for page in codes]
    waits = ("Retry-After",) if codes[0].status in (429, 503) else ()
    return {
        "description": "\n".join(lines),
        **_headers("X-Request-Id", *waits),
        "content": {PROBLEM_JSON: {"schema": schema}},
    }


def _headers(*names: str) -> Json:
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def problems_by_status(route: Route) -> dict[int, Codes]:
    """Every problem this route can return: its own, and those that the dispatch around it adds."""
    own: list[type[Refusal]] = [*route.refusals, *always_possible(route)]
    pages = {get_problem_page(refusal) for refusal in own} | {ENGINE_DOWN}
    by_status: dict[int, list[ProblemPage]] = defaultdict(list)
    for page in sorted(pages, key=lambda page: page.code):
        by_status[page.status].append(page)
    return {status: tuple(found) for status, found in by_status.items()}


def always_possible(route: Route) -> list[type[Refusal]]:
    found: list[type[Refusal]] = [MethodNotAllowed, TooManyRequests, Busy, TimedOut]
    if params_of(route.path):
        found.append(NoSuchRoute)
    if route.role:
        found += [NotSignedIn, TokenExpired, TokenInvalid]
        found += [NotAllowed] if route.role is not Role.FAN else []
    if route.body:
        found += [Malformed, Invalid, BodyTooLarge, WrongMediaType]
        found += [] if route.long_numbers else [CardNumber]
    elif route.method not in ("GET", "DELETE"):
        found.append(BodyTooLarge)
    if route.query:
        found += [Invalid, CardNumber]
    if route.keyed or route.takes_key:
        found += [BadKey, KeyReused, StillProcessing]
    return found
