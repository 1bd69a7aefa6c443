"""Refusals as problem+json (RFC 9457), and a page for each that explains what to do next.

    {"type": "/problems/seats_taken", "title": "Seats no longer available", "status": 409,
     "code": "seats_taken", "detail": "Another buyer has …", "request_id": "…", "taken": ["J-12"], …}

The words come from the docstring of the refusal: the first paragraph is what happened, the rest what to do.
Two problems are not refusals, because the request was fine: an engine that is down, and a bug.
"""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from holdfast.engines.errors import EngineDown
from holdfast.errors import MethodNotAllowed, Refusal, TooManyRequests
from holdfast.web.guards import build_limit_headers
from holdfast.web.responses import Answer

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_S = 1

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Problem(msgspec.Struct):
    """The fields of every refusal (RFC 9457). Some codes carry more fields: see their page."""

    type: Annotated[str, msgspec.Meta(examples=["/problems/busy"])]
    title: Annotated[str, msgspec.Meta(examples=["Too busy at this moment"])]
    status: Annotated[int, msgspec.Meta(examples=[503])]
    code: Annotated[str, msgspec.Meta(examples=["busy"])]
    detail: str
    request_id: Annotated[str, msgspec.Meta(examples=["0f9c2a7d411a2b"])]


@dataclass(frozen=True, slots=True)
class ProblemPage:
    """The documentation of a problem code."""

    code: str
    status: int
    title: str
    happened: str
    advice: str

    @property
    def type(self) -> str:
        return f"/problems/{self.code}"


ENGINE_DOWN = ProblemPage(
    "engine_down",
    503,
    "Part of the service is down",
    "A database behind this service cannot be reached at the moment.",
    "Send the same request, with the same Idempotency-Key, again after the seconds in Retry-After.",
)
INTERNAL_ERROR = ProblemPage(
    "internal_error",
    500,
    "Internal error",
    "An unexpected error occurred. It has been logged under the `request_id` of this response.",
    "Try again later. If the error persists, send the `request_id` to the operator.",
)

_pages: dict[type[Refusal], ProblemPage] = {}  # one per class: refused holds are a hot path


def get_problem_page(refusal: type[Refusal]) -> ProblemPage:
    page = _pages.get(refusal)
    if page is None:
        happened, _, advice = (inspect.getdoc(refusal) or refusal.title).partition("\n\n")
        words = (happened.replace("\n", " "), advice.replace("\n", " "))
        page = _pages[refusal] = ProblemPage(refusal.code, refusal.status, refusal.title, *words)
    return page


def list_problem_pages() -> dict[str, ProblemPage]:
    """Every problem, by code."""
    known = [*(get_problem_page(refusal) for refusal in refusals()), ENGINE_DOWN, INTERNAL_ERROR]
    return {page.code: page for page in sorted(known, key=lambda page: page.code)}


def refusals(parent: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for child in parent.__subclasses__():
        yield child
        yield from refusals(child)


def render_refusal(refusal: Refusal, request_id: str) -> Answer:
    answer = problem(get_problem_page(type(refusal)), request_id, refusal.details)
    if isinstance(refusal, TooManyRequests):
        answer.raw_headers += [
            (k.lower().encode(), v.encode()) for k, v in build_limit_headers(refusal).items()
        ]
    return answer


def render_engine_down(down: EngineDown, request_id: str) -> Answer:
    return problem(ENGINE_DOWN, request_id, {"engine": down.engine, "retry_after_s": down.retry_after_s})


def render_internal_error(request_id: str) -> Answer:
    """A bug: the client gets the request id only; the cause is in the log."""
    return problem(INTERNAL_ERROR, request_id, {})


def problem(page: ProblemPage, request_id: str, details: dict[str, object]) -> Answer:
    content: dict[str, object] = {
        "type": page.type,
        "title": page.title,
        "status": page.status,
        "code": page.code,
        "detail": page.happened,
        "request_id": request_id,
        **details,
    }
    answer = Answer(page.status, _encode(content), _headers(page, details))
    answer.raw_headers[0] = (b"content-type", b"application/problem+json")
    return answer


def _headers(page: ProblemPage, details: dict[str, object]) -> dict[str, str]:
    headers = {"cache-control": "no-store"}
    wait_s = details.get("retry_after_s", RETRY_AFTER_S if page.status == 503 else None)
    if isinstance(wait_s, int | float):
        headers["retry-after"] = str(max(1, math.ceil(wait_s)))
    if page.status == 401:
        headers["www-authenticate"] = "Bearer"
    if page.status == 413:
        headers["connection"] = "close"  # the rest of the body is not worth reading
    if page.code == MethodNotAllowed.code:
        headers["allow"] = ", ".join(str(method) for method in _listed(details.get("allow")))
    return headers


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
