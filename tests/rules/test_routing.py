"""A path finds its route, or nothing: never the wrong one, and never a number the ledger could not hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.responses import answer
from holdfast.web.routing import BIGINT_MAX, Params, Route, Table


async def nothing(request: Request) -> Response:
    """Nothing."""
    return answer(204)


def route(path: str, method: str = "GET") -> Route:
    return Route(method=method, path=path, call=nothing, tag="test", bare=True)


TABLE = Table(
    [
        route("/shows"),
        route("/shows", "POST"),
        route("/shows/{show:int}"),
        route("/shows/{show:int}/seats"),
        route("/shows/{show:int}/seats/mine"),
        route("/shows/mine"),
        route("/shows/mine/past"),
        route("/shows/{name}/poster"),
        route("/bookings/{booking}"),
        route("/"),
    ]
)


def found(path: str) -> tuple[str, Params] | None:
    place = TABLE.find(path)
    return None if place is None else (place[0]["GET"].path, place[1])


@pytest.mark.parametrize(
    ("path", "template", "params"),
    [
        ("/", "/", {}),
        ("/shows", "/shows", {}),
        ("/shows/7", "/shows/{show:int}", {"show": 7}),
        ("/shows/007/seats", "/shows/{show:int}/seats", {"show": 7}),
        ("/shows/7/seats/mine", "/shows/{show:int}/seats/mine", {"show": 7}),
        ("/shows/mine", "/shows/mine", {}),
        ("/bookings/b-1 ö", "/bookings/{booking}", {"booking": "b-1 ö"}),
        (f"/shows/{BIGINT_MAX}", "/shows/{show:int}", {"show": BIGINT_MAX}),
    ],
)
def test_a_path_finds_its_route(path: str, template: str, params: Params) -> None:
    assert found(path) == (template, params)


def test_a_fixed_segment_that_leads_nowhere_is_tried_as_a_value() -> None:
    assert found("/shows/mine/poster") == ("/shows/{name}/poster", {"name": "mine"})
    assert found("/shows/7/poster") == ("/shows/{name}/poster", {"name": "7"})


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/shows/",
        "//shows",
        "/shows/7/",
        "/shows/x",
        "/shows/-7",
        "/shows/+7",
        "/shows/7.0",
        "/shows/٣",
        "/shows/1_0",
        "/shows/ 7",
        f"/shows/{BIGINT_MAX + 1}",
        "/shows/" + "9" * 5000,
        "/bookings/",
        "/bookings/a\0b",
        "/bookings/a/b",
        "/nowhere",
    ],
)
def test_anything_else_finds_nothing(path: str) -> None:
    assert found(path) is None


@given(st.text())
def test_no_path_breaks_the_search(path: str) -> None:
    TABLE.find(path)


def test_a_get_answers_head_too() -> None:
    place = TABLE.find("/shows")

    assert place is not None
    assert set(place[0]) == {"GET", "HEAD", "POST"}


def test_the_same_route_twice_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="routed twice"):
        Table([route("/shows/{show:int}"), route("/shows/{show:int}")])


def test_one_place_in_a_path_has_one_name() -> None:
    with pytest.raises(AssertionError, match="is called show elsewhere"):
        Table([route("/shows/{show:int}"), route("/shows/{number:int}/seats")])


def test_a_route_is_either_a_call_or_a_stream() -> None:
    with pytest.raises(AssertionError, match="either call or asgi"):
        Route(method="GET", path="/x", tag="test")
