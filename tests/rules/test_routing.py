"""A path finds its route, or nothing: never the wrong one, and never a number the ledger could not hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.catalogue import NoSuchShow
from holdfast.errors import Busy
from holdfast.holds import SeatsTaken
from holdfast.routes import ROUTES
from holdfast.web.caller import Role
from holdfast.web.responses import answer
from holdfast.web.routing import BIGINT_MAX, Params, Route, RouteTable, Table


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
def test_any_other_path_matches_no_route(path: str) -> None:
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


def test_a_path_parameter_has_one_name_per_position() -> None:
    with pytest.raises(AssertionError, match="is called show elsewhere"):
        Table([route("/shows/{show:int}"), route("/shows/{number:int}/seats")])


def test_a_route_is_either_a_call_or_a_stream() -> None:
    with pytest.raises(AssertionError, match="either call or asgi"):
        Route(method="GET", path="/x", tag="test")


class TestRouteTable:
    def test_a_decorator_builds_the_same_route_and_returns_the_handler(self) -> None:
        routes = RouteTable(tag="sale", role=Role.FAN)

        decorated = routes.post("/holds", answers={201: None}, refusals=(SeatsTaken,))(nothing)

        assert decorated is nothing
        assert routes.all == (
            Route(
                method="POST",
                path="/holds",
                call=nothing,
                tag="sale",
                answers={201: None},
                refusals=(SeatsTaken,),
                role=Role.FAN,
                keyed=True,
            ),
        )

    def test_each_method_has_a_decorator(self) -> None:
        routes = RouteTable(tag="test")
        for decorator in (routes.get, routes.post, routes.put, routes.patch, routes.delete):
            decorator("/x")(nothing)

        assert [one.method for one in routes.all] == ["GET", "POST", "PUT", "PATCH", "DELETE"]

    def test_a_stream_is_a_get_without_a_time_limit(self) -> None:
        routes = RouteTable(tag="test")

        @routes.stream("/changes")
        async def stream_changes(scope: Scope, receive: Receive, send: Send) -> None:
            """Every change."""

        (found,) = routes.all
        assert (found.method, found.asgi, found.call) == ("GET", stream_changes, None)
        assert found.name == "stream_changes"

    def test_prefix_and_refusals_are_shared_and_defaults_can_be_overridden(self) -> None:
        routes = RouteTable(tag="admin", prefix="/admin/shows", role=Role.ADMIN, refusals=(NoSuchShow,))
        routes.get()(nothing)
        routes.get("/{show:int}", role=None, refusals=(Busy,))(nothing)

        listed, one = routes.all
        assert (listed.path, listed.role, listed.refusals) == ("/admin/shows", Role.ADMIN, (NoSuchShow,))
        assert (one.path, one.role) == ("/admin/shows/{show:int}", None)
        assert one.refusals == (NoSuchShow, Busy)

    def test_route_tables_are_independent(self) -> None:
        first, second = RouteTable(tag="a"), RouteTable(tag="b")
        first.get("/x")(nothing)

        assert second.all == ()

    def test_a_route_below_the_collected_table_is_a_mistake(self) -> None:
        routes = RouteTable(tag="test")
        assert routes.all == ()

        with pytest.raises(AssertionError, match="below ROUTES"):
            routes.get("/late")(nothing)


class TestIdempotencyKeys:
    """A client that retries a POST with its key can rely on one effect, whatever the route."""

    def test_every_post_of_the_api_honours_them(self) -> None:
        posts = [route for route in ROUTES if route.method == "POST" and not route.bare]

        assert [route.full_path for route in posts if not (route.keyed or route.takes_key)] == []

    def test_a_post_stores_its_answer_unless_its_handler_keeps_the_promise(self) -> None:
        routes = RouteTable(tag="sale")

        @routes.post("/things")
        @routes.post("/seats", takes_key=True)
        async def create(request: Request) -> Response:
            return answer(204, None)

        assert [(r.path, r.keyed, r.takes_key) for r in routes.all] == [
            ("/seats", False, True),
            ("/things", True, False),
        ]

    def test_a_post_without_either_cannot_be_declared(self) -> None:
        with pytest.raises(AssertionError, match="Idempotency-Key"):
            Route(method="POST", path="/things", tag="sale", call=nothing)
