"""The API document says what the routes do: nothing missing, nothing that leads nowhere."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NoSuchShow, SeatsTaken
from holdfast.web.caller import Role
from holdfast.web.openapi import document
from holdfast.web.problems import pages
from holdfast.web.responses import answer, read
from holdfast.web.routing import Route


class Wish(Struct):
    count: Annotated[int, Meta(ge=1, le=10)]


class HoldBody(Struct, forbid_unknown_fields=True):
    seats: Annotated[list[str], Meta(min_length=1, examples=[["J-12", "J-13"]])]
    best: Wish | None = None


class Held(Struct):
    reference: str
    wish: Wish


class Search(Struct):
    words: Annotated[str, Meta(description="What to look for.")] = ""
    page: Annotated[int, Meta(ge=1)] = 1
    kinds: list[str] = []


async def post_hold(request: Request) -> Response:
    """POST /shows/{show}/holds: hold these seats.

    All of them, or none.
    """
    return answer(201)


async def get_shows(request: Request) -> Response:
    """What is on."""
    return answer(200)


async def get_health(request: Request) -> Response:
    return answer(200)


HOLD = Route(
    method="POST",
    path="/shows/{show:int}/holds",
    call=post_hold,
    tag="holds",
    body=HoldBody,
    answers={201: Held},
    refusals=(SeatsTaken, NoSuchShow),
    role=Role.FAN,
    takes_key=True,
)
SEARCH = Route(
    method="GET",
    path="/shows",
    call=get_shows,
    tag="catalogue",
    query=Search,
    answers={200: list[Held], 304: None},
)
HEALTH = Route(method="GET", path="/healthz", call=get_health, tag="health", bare=True)
DOCUMENT = msgspec.json.decode(msgspec.json.encode(document([HOLD, SEARCH, HEALTH])))
POST = DOCUMENT["paths"]["/shows/{show}/holds"]["post"]
GET = DOCUMENT["paths"]["/shows"]["get"]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def codes(operation: Any, status: str) -> set[str]:
    return set(operation["responses"][status]["content"]["application/problem+json"]["examples"])


def test_every_reference_leads_somewhere() -> None:
    for reference in references(DOCUMENT):
        node = DOCUMENT
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node


def test_words_come_from_the_docstring_without_the_address() -> None:
    assert POST["summary"] == "Hold these seats"
    assert POST["description"] == "All of them, or none."
    assert POST["operationId"] == "post_hold"


def test_bare_routes_are_not_part_of_it() -> None:
    assert set(DOCUMENT["paths"]) == {"/shows/{show}/holds", "/shows"}


def test_a_path_value_is_a_number_that_the_ledger_holds() -> None:
    assert POST["parameters"][0] == {
        "name": "show",
        "in": "path",
        "required": True,
        "schema": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
    }


def test_query_fields_become_parameters_and_no_schema() -> None:
    by_name = {one["name"]: one for one in GET["parameters"]}

    assert set(by_name) == {"words", "page", "kinds", "If-None-Match"}
    assert by_name["words"]["description"] == "What to look for."
    assert by_name["page"]["schema"]["minimum"] == 1
    assert "Search" not in DOCUMENT["components"]["schemas"]


def test_every_status_that_can_happen_is_there() -> None:
    assert set(POST["responses"]) == {
        *("201", "400", "401", "404", "405", "409", "413", "415", "422", "429", "503"),
    }
    assert set(GET["responses"]) == {"200", "304", "405", "422", "429", "503"}


def test_a_status_lists_the_codes_it_may_carry() -> None:
    assert codes(POST, "404") == {"no_such_show", "no_such_route"}
    assert codes(POST, "409") == {"seats_taken", "still_processing"}
    assert codes(POST, "422") == {"invalid", "key_reused", "card_number"}
    assert codes(POST, "503") == {"busy", "timed_out", "engine_down"}
    assert codes(POST, "503") <= set(pages())


def test_who_must_sign_in_is_said() -> None:
    assert POST["security"] == [{"bearer": []}]
    assert POST["x-role"] == "fan"
    assert GET["security"] == []


def test_the_key_is_a_header() -> None:
    assert "Idempotency-Key" in {one["name"] for one in POST["parameters"]}


def test_the_example_of_a_body_is_a_body() -> None:
    example = POST["requestBody"]["content"]["application/json"]["example"]

    assert read(HoldBody, msgspec.json.encode(example)).seats == ["J-12", "J-13"]


def test_one_name_for_two_operations_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="unique"):
        document([HOLD, Route(method="POST", path="/other", call=post_hold, tag="holds")])
