"""`--only`: the names are those of the routes and the jobs, and nothing else is taken (R37)."""

from typing import Any

import pytest

from holdfast.background import jobs_by_subject
from holdfast.engines.errors import OperatorError
from holdfast.routes import ROUTES
from holdfast.runtime.subjects import SERVED, WORKED, parse_only
from holdfast.web.guards import role_name, serve_or_refuse


def test_every_route_can_be_selected_by_its_subject() -> None:
    assert {role_name(route) for route in ROUTES} == set(SERVED)


def test_an_empty_selection_is_everything() -> None:
    assert parse_only("", SERVED) is None
    assert parse_only("sale, seatmap", SERVED) == frozenset({"sale", "seatmap"})


@pytest.mark.parametrize("text", ["sales", "sale,accounts,x", ",", " "])
def test_an_unknown_name_is_refused_with_the_known_names(text: str) -> None:
    with pytest.raises(OperatorError, match="admin, catalogue, gate"):
        parse_only(text, SERVED)


def test_a_route_of_another_role_is_refused_before_authentication() -> None:
    for route in ROUTES:
        other = serve_or_refuse(route, {"nothing"})
        assert serve_or_refuse(route, {role_name(route)}) is route
        assert (other.full_path, other.method, other.name) == (
            route.full_path,
            route.method,
            "served_elsewhere",
        )
        assert (other.role, other.body, other.keyed, other.asgi) == (None, None, False, None)


def test_every_job_can_be_selected_by_its_subject(app: Any) -> None:
    assert jobs_by_subject(app).keys() == set(WORKED)
