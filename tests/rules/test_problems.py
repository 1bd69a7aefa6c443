"""Every refusal names the cause and the next step, in a machine-readable form."""

from typing import Any

import msgspec
import pytest
from starlette.responses import Response

from holdfast.engines.errors import EngineDown
from holdfast.errors import Busy, MethodNotAllowed, NotSignedIn, Refusal, TooManyRequests
from holdfast.holds import SeatsTaken
from holdfast.web.guards import build_limit_headers
from holdfast.web.problems import (
    ProblemPage,
    get_problem_page,
    list_problem_pages,
    refusals,
    render_engine_down,
    render_internal_error,
    render_refusal,
)
from holdfast.web.reference import problem_index, problem_page, prose

REFUSALS = sorted(refusals(), key=lambda refusal: refusal.code)
RESERVED = {"type", "title", "status", "code", "request_id"}


def content(response: Response) -> dict[str, Any]:
    return msgspec.json.decode(response.body, type=dict[str, Any])


def test_every_refusal_is_in_the_tree() -> None:
    assert SeatsTaken in REFUSALS
    assert len({refusal.code for refusal in REFUSALS}) == len(REFUSALS)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.code)
def test_a_refusal_has_a_code_a_status_a_title_and_a_detail(refusal: type[Refusal]) -> None:
    page = get_problem_page(refusal)

    assert refusal.code.replace("_", "").isalpha()
    assert refusal.code.islower()
    assert 400 <= refusal.status < 600
    assert refusal.status != 500
    assert refusal.__doc__ is not None
    assert page.title != Refusal.title
    assert page.happened.endswith(".")
    assert not page.advice or page.advice.endswith(".")


def test_a_refusal_is_a_problem_with_its_details() -> None:
    response = render_refusal(SeatsTaken(taken=["J-12"], alternatives=[]), "r1")

    assert response.status_code == 409
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    assert content(response) == {
        "type": "/problems/seats_taken",
        "title": "Seats no longer available",
        "status": 409,
        "code": "seats_taken",
        "detail": get_problem_page(SeatsTaken).happened,
        "request_id": "r1",
        "taken": ["J-12"],
        "alternatives": [],
    }


def test_a_detail_of_its_own_wins() -> None:
    assert content(render_refusal(Busy(detail="Ten thousand wait."), "r1"))["detail"] == "Ten thousand wait."


@pytest.mark.parametrize(("wait_s", "header"), [(1, "1"), (0.2, "1"), (2.1, "3"), (0, "1")])
def test_the_retry_time_is_given_in_whole_seconds(wait_s: float, header: str) -> None:
    assert render_refusal(Busy(retry_after_s=wait_s), "r1").headers["retry-after"] == header


def test_a_503_always_says_when_to_come_back() -> None:
    assert render_refusal(Busy(), "r1").headers["retry-after"] == "1"


def test_a_401_says_how_to_sign_in() -> None:
    assert render_refusal(NotSignedIn(), "r1").headers["www-authenticate"] == "Bearer"


def test_a_405_lists_the_allowed_methods() -> None:
    assert render_refusal(MethodNotAllowed(allow=["GET", "HEAD"]), "r1").headers["allow"] == "GET, HEAD"


def test_a_429_carries_the_limit_that_was_met() -> None:
    refusal = TooManyRequests(policy="address", limit=5, window_s=1, retry_after_s=1)
    headers = render_refusal(refusal, "r1").headers

    assert {name: headers[name] for name in build_limit_headers(refusal)} == build_limit_headers(refusal)
    assert headers["retry-after"] == "1"


def test_an_engine_that_is_down_is_a_503_that_names_it() -> None:
    response = render_engine_down(EngineDown("ledger", retry_after_s=3), "r1")

    assert response.status_code == 503
    assert response.headers["retry-after"] == "3"
    assert content(response)["code"] == "engine_down"
    assert content(response)["engine"] == "ledger"


def test_an_internal_error_shows_its_request_id_and_nothing_else() -> None:
    response = render_internal_error("r1")

    assert response.status_code == 500
    assert content(response)["request_id"] == "r1"
    assert set(content(response)) == RESERVED | {"detail"}


def test_every_code_has_a_page_and_is_in_the_index() -> None:
    index = problem_index(list_problem_pages().values())

    for code, page in list_problem_pages().items():
        assert f"<code>{code}</code>" in problem_page(page)
        assert f'href="/problems/{code}"' in index


def test_a_page_escapes_what_it_shows() -> None:
    page = ProblemPage("x", 400, "<b>", "Is `a<b` & so.", "")

    assert "<b>" not in problem_page(page)
    assert prose(page.happened) == "Is <code>a&lt;b</code> &amp; so."
