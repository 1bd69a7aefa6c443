"""The problems in the OpenAPI documents: for each operation every status, with the codes it may carry."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Any

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
    NotAMember,
    NotSignedIn,
    OrganisationNeeded,
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
from holdfast.web.problems import ENGINE_DOWN, PROBLEM_JSON, Problem, ProblemPage, get_problem_page
from holdfast.web.routing import Route, names_organisation, params_of

Json = dict[str, Any]
Codes = tuple[ProblemPage, ...]  # the problems of one status of one operation, ordered by code

NAME_LENGTH_MAX = 30  # of a component: its name is in every reference to it
RESPONSE_HEADERS: Json = {
    "Retry-After": {
        "description": "Seconds to wait before the next attempt.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "RateLimit-Policy": {
        "description": "The tightest limit of the request: its name, `q` requests per `w` seconds.",
        "schema": {"type": "string", "examples": ['"login";q=10;w=60']},
    },
    "RateLimit": {
        "description": "What is left of it: `r` requests now; one more is there after `t` seconds.",
        "schema": {"type": "string", "examples": ['"login";r=0;t=6']},
    },
    "Idempotency-Replayed": {
        "description": "The response of the first request with this Idempotency-Key.",
        "schema": {"type": "string", "const": "true"},
    },
}
HEADERS_OF_STATUS = {429: ("Retry-After", "RateLimit-Policy", "RateLimit"), 503: ("Retry-After",)}


class ProblemResponses:
    """A set of codes that several operations of a document return under one status is a component."""

    def __init__(self, routes: Iterable[Route]) -> None:
        sets = Counter(codes for route in routes for codes in problems_by_status(route).values())
        self._shared: dict[Codes, str] = {}
        for codes in (codes for codes, uses in sets.items() if uses > 1):
            self._shared[codes] = _component_name(codes, self._shared.values())
        self.components = {name: problem_response(codes) for codes, name in self._shared.items()}

    def of(self, codes: Codes) -> Json:
        if (name := self._shared.get(codes)) is not None:
            return {"$ref": f"#/components/responses/{name}"}
        return problem_response(codes)


def _component_name(codes: Codes, taken: Collection[str]) -> str:
    """BusyOrTimedOut; of a long list, as few of the first codes as are unique: NotSignedInOr2More"""
    words = [page.code.title().replace("_", "") for page in codes]
    shorter = ("Or".join([*words[:n], f"{len(words) - n}More"]) for n in range(1, len(words) - 1))
    whole = "Or".join(words)
    return whole if len(whole) <= NAME_LENGTH_MAX else next((n for n in shorter if n not in taken), whole)


def header_refs(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def problem_response(codes: Codes) -> Json:
    """The enum beside the reference is for validators; generated clients see one Problem type everywhere."""
    schema = {
        "$ref": f"#/components/schemas/{Problem.__name__}",
        "properties": {"code": {"enum": [page.code for page in codes]}},
    }
    found: Json = {"description": ", ".join(f"[`{page.code}`]({page.type})" for page in codes)}
    if headers := HEADERS_OF_STATUS.get(codes[0].status):
        found["headers"] = header_refs(*headers)
    return {**found, "content": {PROBLEM_JSON: {"schema": schema}}}


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
    if route.right:
        found += [NotAMember] if names_organisation(route) else [NotAMember, OrganisationNeeded]
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
