"""OpenAPI 3.1 documents, built from the table that serves the requests and the structs that check them.

Each audience has one (web/audiences.py). They are exact: they list every status an operation can return, with
the problem codes that status may carry, and no others. tests/journeys/test_schemathesis.py compares a running
server with them.

What several operations of a document share is a component and appears once: schemas, parameters, headers, and
problem responses that list the same codes. What all share is in the text at the top.
"""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from holdfast.web.audiences import BY_ROLE, DOCUMENTS, WHOLE, About, Audience
from holdfast.web.examples import Examples
from holdfast.web.openapi_problems import (
    RESPONSE_HEADERS,
    ProblemResponses,
    header_refs,
    problems_by_status,
)
from holdfast.web.problems import Problem
from holdfast.web.routing import API, BIGINT_MAX, Param, Route, names_organisation, params_of

Json = dict[str, Any]

SCHEMA_REF = "#/components/schemas/{name}"
LEADING_ROUTE = re.compile(r"^[A-Z]+ /\S*: ")
PATH_KIND = re.compile(r":int}")
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
        "description": "1 to 255 visible ASCII characters; new for each new request, the same for a retry.",
        # Without an example: the reference page would send it with every request, and keys must be new.
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[!-~]+$(?!\n)"},
    },
    "Holdfast-Organisation": {
        "name": "Holdfast-Organisation",
        "in": "header",
        "description": "The organisation that the request is for. Members of one organisation leave it out; "
        "members of several need it. An admin who leaves it out sees the whole house.",
        "schema": {"type": "integer", "minimum": 1, "maximum": BIGINT_MAX},
    },
    "If-None-Match": {
        "name": "If-None-Match",
        "in": "header",
        "description": "The ETag you have. If nothing changed, the response is 304 without a body.",
        "schema": {"type": "string"},
    },
}


def documents(routes: Iterable[Route]) -> dict[Audience, Json]:
    """One for each audience; every operation is in exactly one of them."""
    documented = tuple(routes)
    _check_names(documented)  # a program may use several documents
    return {
        audience: document([route for route in documented if audience_of(route) is audience], about)
        for audience, about in DOCUMENTS.items()
    }


def audience_of(route: Route) -> Audience:
    return route.audience or BY_ROLE[route.role]


def document(routes: Iterable[Route], about: About = WHOLE) -> Json:
    documented = [route for route in routes if not route.bare]
    _check_names(documented)
    schemas, problems = Schemas(documented), ProblemResponses(documented)
    queries = QueryParameters(documented, schemas)
    paths: dict[str, Json] = defaultdict(dict)
    for route in documented:
        found = operation(route, schemas, queries, problems)
        paths[PATH_KIND.sub("}", route.path)][route.method.lower()] = found
    return {
        "openapi": "3.1.0",
        "info": {
            "title": about.title,
            "version": version("holdfast"),
            "description": about.description,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": API}],
        "tags": tags(documented, about),
        "paths": dict(paths),
        "components": {
            "schemas": schemas.components,
            "parameters": {
                **path_parameters(documented),
                **queries.components,
                **header_parameters(documented),
            },
            "headers": RESPONSE_HEADERS,
            "responses": problems.components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _check_names(routes: Iterable[Route]) -> None:
    names = Counter(route.name for route in routes if not route.bare)
    twice = sorted(name for name, uses in names.items() if uses > 1)
    assert twice == [], f"operation names must be unique: {twice}"


def tags(routes: Iterable[Route], about: About) -> list[Json]:
    """In the order of the document's tags, then any other tag."""
    used = {route.tag for route in routes}
    described = [{"name": tag, "description": text} for tag, text in about.tags.items() if tag in used]
    return described + [{"name": tag} for tag in sorted(used - set(about.tags))]


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


class QueryParameters:
    """Parameters in query strings. One that is the same in several operations is a component."""

    def __init__(self, routes: Iterable[Route], schemas: Schemas) -> None:
        self._schemas = schemas
        written = (msgspec.json.encode(one) for route in routes for one in self._all(route))
        self._shared: dict[bytes, str] = {}
        self.components: Json = {}
        for text in (text for text, uses in Counter(written).items() if uses > 1):
            one = msgspec.json.decode(text)
            alike = sum(one["name"] == other["name"] for other in self.components.values())
            self._shared[text] = f"query-{one['name']}{alike or ''}"
            self.components[self._shared[text]] = one

    def of(self, route: Route) -> list[Json]:
        named = ((one, self._shared.get(msgspec.json.encode(one))) for one in self._all(route))
        return [one if name is None else _parameter_ref(name) for one, name in named]

    def _all(self, route: Route) -> list[Json]:
        return [
            _query_parameter(name, schema)
            for name, schema in (self._schemas.query(route.query) if route.query else {}).items()
        ]


def _query_parameter(name: str, schema: Json) -> Json:
    described = {"description": schema["description"]} if "description" in schema else {}
    bare = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", **described, "schema": bare}


def operation(route: Route, schemas: Schemas, queries: QueryParameters, problems: ProblemResponses) -> Json:
    summary, _, description = route.doc.partition("\n")
    summary = LEADING_ROUTE.sub("", summary).strip().rstrip(".")
    found: Json = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": summary[:1].upper() + summary[1:],
        "description": description.strip(),
        "parameters": parameters(route, queries),
        "responses": responses(route, schemas, problems),
        "security": [{"bearer": []}] if route.role else [],
    }
    if route.role:
        found["x-role"] = str(route.role)
    if route.right:
        found["x-right"] = str(route.right)
    if route.body is not None:
        content = {"schema": schemas.of(route.body), "example": schemas.example(route.body)}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return {name: value for name, value in found.items() if value or name == "security"}


def parameters(route: Route, queries: QueryParameters) -> list[Json]:
    found = [_parameter_ref(_parameter_name(param)) for param in params_of(route.path)]
    return found + queries.of(route) + [_parameter_ref(name) for name in headers_of(route)]


def headers_of(route: Route) -> list[str]:
    """The headers that a client may send."""
    found = []
    if route.right is not None and not names_organisation(route):
        found.append("Holdfast-Organisation")
    if route.keyed or route.takes_key:
        found.append("Idempotency-Key")
    if 304 in route.answers:
        found.append("If-None-Match")
    return found


def header_parameters(routes: Iterable[Route]) -> Json:
    used = {name for route in routes for name in headers_of(route)}
    return {name: one for name, one in HEADER_PARAMETERS.items() if name in used}


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
        response: Json = {"description": STATUS_WORDS.get(status, "Response")}
        if kind is not None:
            schema = schemas.of(kind)
            response["content"] = {media: _content(media, schema) for media in route.media_types}
        if status < 300 and (route.keyed or route.takes_key):
            response["headers"] = header_refs("Idempotency-Replayed")
        found[str(status)] = response
    for status, codes in sorted(problems_by_status(route).items()):
        found[str(status)] = problems.of(codes)
    return found


def _content(media: str, schema: Json) -> Json:
    """Only JSON has a schema in OpenAPI 3.1. The events of a stream are JSON too, each by itself."""
    if media.endswith("json"):
        return {"schema": schema}
    return {"x-event-schema": schema} if media == "text/event-stream" else {}
