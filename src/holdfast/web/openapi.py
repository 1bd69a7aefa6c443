"""The API document (OpenAPI 3.1), from the table that serves the requests and the structs that check them.

It is meant to be exact: every status an operation can answer with is there, with the codes it may carry, and
nothing else is. tests/journeys/test_schemathesis.py holds a running server to it.
"""

import re
from collections import defaultdict
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
from holdfast.web.problems import ENGINE_DOWN, PROBLEM_JSON, Page, Problem, page_of
from holdfast.web.routing import API, BIGINT_MAX, Route, params_of

Json = dict[str, Any]

REF = "#/components/schemas/{name}"
LEADING_ROUTE = re.compile(r"^[A-Z]+ /\S*: ")
PATH_KIND = re.compile(r":int}")
ABOUT = """\
Browse what is on, hold seats, book them. JSON in snake_case, times in RFC 3339 UTC, money in minor units.

Every refusal is a problem+json with a stable `code`; its `type` leads to a page that says what to do next.
Send an `Idempotency-Key` with every POST: a retry with the same key has one effect and gets the same answer.
"""
STATUS_WORDS = {
    200: "Done",
    201: "Made",
    202: "Accepted",
    204: "Done, no body",
    304: "You have it already",
}
KEY_HEADER: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible ASCII characters; new for each new request, the same for a retry.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "example": "5f3c9a52-6d0b-4f7e-9d1c-2f1f4b8f7c11",
}
ETAG_HEADER: Json = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag you have. When nothing changed the answer is 304, without a body.",
    "schema": {"type": "string"},
}
RESPONSE_HEADERS: Json = {
    "X-Request-Id": {
        "description": "Under this id the request is in our logs.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next attempt.",
        "schema": {"type": "integer", "minimum": 1},
    },
}


def document(routes: Iterable[Route]) -> Json:
    documented = [route for route in routes if not route.bare]
    schemas = Schemas(documented)
    paths: dict[str, Json] = defaultdict(dict)
    for route in documented:
        paths[PATH_KIND.sub("}", route.path)][route.method.lower()] = operation(route, schemas)
    names = [route.name for route in documented]
    assert len(names) == len(set(names)), f"operation names must be unique: {sorted(names)}"
    return {
        "openapi": "3.1.0",
        "info": {"title": "Holdfast", "version": version("holdfast"), "description": ABOUT},
        "servers": [{"url": API}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in documented)],
        "paths": dict(paths),
        "components": {
            "schemas": schemas.components,
            "headers": RESPONSE_HEADERS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


class Schemas:
    """The JSON schema of every type that the routes name, shared through components."""

    def __init__(self, routes: Iterable[Route]) -> None:
        kinds: list[Any] = [Problem]
        for route in routes:
            named = (route.body, route.query, *route.answers.values())
            kinds += [kind for kind in named if kind is not None and kind not in kinds]
        queries = {route.query for route in routes if route.query}
        found, self.components = msgspec.json.schema_components(kinds, ref_template=REF)
        self._schemas = list(zip(kinds, found, strict=True))
        _name_times(self.components)
        # A query is no JSON object on the wire: its fields become parameters one by one.
        self._queries = {kind: self.components.pop(self._name(kind)) for kind in queries}

    def of(self, kind: Any) -> Json:
        return next(schema for known, schema in self._schemas if known is kind or known == kind)

    def query(self, kind: type) -> Json:
        properties: Json = self._queries[kind].get("properties", {})
        return {name: _never_null(schema) for name, schema in properties.items()}

    def example(self, kind: Any, *, is_sparse: bool = False) -> object:
        return Examples(self.components, is_sparse).of(self.of(kind))

    def _name(self, kind: Any) -> str:
        return str(self.of(kind)["$ref"]).rsplit("/", 1)[-1]


def _name_times(components: Json) -> None:
    """msgspec does not say what kind of text a datetime is. Our names do: `_at` is a time in RFC 3339."""
    for schema in components.values():
        for name, field in schema.get("properties", {}).items():
            for choice in field.get("anyOf", [field]) if name.endswith("_at") else ():
                if choice.get("type") == "string":
                    choice["format"] = "date-time"


def _never_null(schema: Json) -> Json:
    """What may be left out of a query is `None` to us, but nobody can send null in one."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    kept = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    if len(choices) == 1:
        kept.pop("anyOf")
        return {**choices[0], **kept}
    return kept


def operation(route: Route, schemas: Schemas) -> Json:
    summary, _, description = route.doc.partition("\n")
    summary = LEADING_ROUTE.sub("", summary).strip().rstrip(".")
    said: Json = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": summary[:1].upper() + summary[1:],
        "description": description.strip(),
        "parameters": parameters(route, schemas),
        "responses": responses(route, schemas),
        "security": [{"bearer": []}] if route.role else [],
    }
    if route.role:
        said["x-role"] = str(route.role)
    if route.body is not None:
        content = {"schema": schemas.of(route.body), "example": schemas.example(route.body, is_sparse=True)}
        said["requestBody"] = {"required": True, "content": {"application/json": content}}
    return {name: value for name, value in said.items() if value or name == "security"}


def parameters(route: Route, schemas: Schemas) -> list[Json]:
    whole = {"type": "integer", "minimum": 1, "maximum": BIGINT_MAX}
    text = {"type": "string", "minLength": 1}
    found: list[Json] = [
        {"name": p.name, "in": "path", "required": True, "schema": whole if p.is_int else text}
        for p in params_of(route.path)
    ]
    if route.query is not None:
        for name, schema in schemas.query(route.query).items():
            described = {"description": schema["description"]} if "description" in schema else {}
            found.append({"name": name, "in": "query", "required": False, **described, "schema": schema})
    if route.keyed or route.takes_key:
        found.append(KEY_HEADER)
    if 304 in route.answers:
        found.append(ETAG_HEADER)
    return found


def responses(route: Route, schemas: Schemas) -> Json:
    said: Json = {}
    for status, kind in route.answers.items():
        content: Json = {"description": STATUS_WORDS.get(status, "Answer")}
        if kind is not None:
            example = {"schema": schemas.of(kind), "example": schemas.example(kind)}
            content["content"] = {
                media: example if media.endswith("json") else {} for media in route.media_types
            }
        said[str(status)] = content
    by_status: dict[int, list[Page]] = defaultdict(list)
    for page in problems_of(route):
        by_status[page.status].append(page)
    for status, pages in sorted(by_status.items()):
        said[str(status)] = problem_response(pages, schemas)
    for status_text, response in said.items():
        named = ("X-Request-Id", "Retry-After") if status_text in ("429", "503") else ("X-Request-Id",)
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in named}
    return said


def problem_response(pages: list[Page], schemas: Schemas) -> Json:
    codes = {"properties": {"code": {"enum": [page.code for page in pages]}}}
    examples = {page.code: {"summary": page.title, "value": example_problem(page)} for page in pages}
    body = {"schema": {"allOf": [schemas.of(Problem), codes]}, "examples": examples}
    lines = [f"- [`{page.code}`]({page.type}): {page.title}" for page in pages]
    return {"description": "\n".join(lines), "content": {PROBLEM_JSON: body}}


def example_problem(page: Page) -> Json:
    known = Problem(page.type, page.title, page.status, page.code, page.happened, "0f9c2a7d411a2b")
    example: Json = msgspec.to_builtins(known)
    return example


def problems_of(route: Route) -> list[Page]:
    """Every problem this route can answer with: its own, and those the layer around it adds."""
    own: list[type[Refusal]] = [*route.refusals, *always_possible(route)]
    return [*(page_of(refusal) for refusal in dict.fromkeys(own)), ENGINE_DOWN]


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
