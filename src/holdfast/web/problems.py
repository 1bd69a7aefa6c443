"""Every "no" as problem+json (RFC 9457), and a page for each that says what to do next.

    {"type": "/problems/seats_taken", "title": "Seats no longer available", "status": 409,
     "code": "seats_taken", "detail": "Another buyer has …", "request_id": "…", "taken": ["J-12"], …}

The words come from the docstring of the refusal: the first paragraph is what happened, the rest what to do.
Two problems are no refusals, because nobody asked for something wrong: an engine that is down, and a bug.
"""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from holdfast.engines.errors import EngineDown
from holdfast.errors import MethodNotAllowed, Refusal, TooManyRequests
from holdfast.web.rate_limits import build_limit_headers
from holdfast.web.responses import Answer

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_S = 1

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Problem(msgspec.Struct):
    """What every refusal looks like (RFC 9457). Single codes carry more fields: see their page."""

    type: Annotated[str, msgspec.Meta(examples=["/problems/busy"])]
    title: Annotated[str, msgspec.Meta(examples=["Too busy at this moment"])]
    status: Annotated[int, msgspec.Meta(examples=[503])]
    code: Annotated[str, msgspec.Meta(examples=["busy"])]
    detail: str
    request_id: Annotated[str, msgspec.Meta(examples=["0f9c2a7d411a2b"])]


@dataclass(frozen=True, slots=True)
class ProblemPage:
    """What is known of a code before it happens."""

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
    "Part of the box office is down",
    "An engine behind the box office cannot be reached at this moment. No answer could be given.",
    "Send the same request, with the same Idempotency-Key, again after the seconds in Retry-After.",
)
INTERNAL_ERROR = ProblemPage(
    "internal_error",
    500,
    "Something broke on our side",
    "We made a mistake. It has been logged under the `request_id` of this answer.",
    "Try again later. If it stays, tell the operator the `request_id`.",
)

_pages: dict[type[Refusal], ProblemPage] = {}  # one a class, made at its first use: the losers' path is hot


def get_problem_page(refusal: type[Refusal]) -> ProblemPage:
    page = _pages.get(refusal)
    if page is None:
        happened, _, advice = (inspect.getdoc(refusal) or refusal.title).partition("\n\n")
        words = (happened.replace("\n", " "), advice.replace("\n", " "))
        page = _pages[refusal] = ProblemPage(refusal.code, refusal.status, refusal.title, *words)
    return page


def list_problem_pages() -> dict[str, ProblemPage]:
    """Every problem there is, by code."""
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
    """A bug: the asker learns that it happened and under which id; the why is in the log alone."""
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
