"""The OpenAPI documents describe what the routes do: complete, valid and small."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from starlette.requests import Request
from starlette.responses import Response
from typer.testing import CliRunner

from holdfast.catalogue import NoSuchShow
from holdfast.cli.main import cli
from holdfast.holds import SeatsTaken
from holdfast.routes import ROUTES
from holdfast.web.audiences import DOCUMENTS, Audience
from holdfast.web.caller import Right, Role
from holdfast.web.openapi import document, documents
from holdfast.web.problems import list_problem_pages
from holdfast.web.responses import answer, read
from holdfast.web.routing import Route


class Wish(Struct):
    count: Annotated[int, Meta(ge=1, le=10)]


class HoldBody(Struct, forbid_unknown_fields=True):
    seats: Annotated[list[str], Meta(min_length=1, examples=[["J-12", "J-13"]])]
    best: Wish | None = None


class Held(Struct):
    """A hold.

    Indented in the source.
    """

    reference: str
    wish: Wish
    at: tuple[float, float]
    change: tuple[int, str]
    ends_at: datetime | None


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
ENCODED = {audience: msgspec.json.encode(one) for audience, one in documents(ROUTES).items()}
DECODED = {audience: msgspec.json.decode(content) for audience, content in ENCODED.items()}
BYTES_MAX = 300_000
BYTES_PER_OPERATION_MAX = 1_850  # in one document, with all that operations share
EXTENDED_MAX = 149  # operations that Swagger UI shows at once
OPERATION_ID = re.compile(r"[a-z]+(_[a-z]+)+")


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def resolved(node: Any, within: Any = DOCUMENT) -> Any:
    """Resolves a reference; returns any other node unchanged."""
    found = within
    if "$ref" not in node:
        return node
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def codes(operation: Any, status: str) -> set[str]:
    response = resolved(operation["responses"][status])
    schema = response["content"]["application/problem+json"]["schema"]
    assert schema["$ref"] == "#/components/schemas/Problem"
    found = set(schema["properties"]["code"]["enum"])
    assert found == set(re.findall(r"\(/problems/(\w+)\)", response["description"]))
    return found


def named(parameters: Any) -> dict[str, Any]:
    return {one["name"]: one for one in map(resolved, parameters)}


def operations(whole: Any) -> list[Any]:
    return [operation for path in whole["paths"].values() for operation in path.values()]


def ids(whole: Any) -> list[str]:
    return [operation["operationId"] for operation in operations(whole)]


def roles(audience: Audience) -> set[str]:
    return {operation.get("x-role", "anyone") for operation in operations(DECODED[audience])}


@pytest.mark.parametrize("audience", Audience)
class TestEachDocument:
    def test_the_size_is_limited(self, audience: Audience) -> None:
        assert len(ENCODED[audience]) < BYTES_MAX
        assert 0 < len(operations(DECODED[audience])) <= EXTENDED_MAX

    def test_it_is_valid(self, audience: Audience) -> None:
        validate(DECODED[audience], cls=OpenAPIV31SpecValidator)

    def test_an_operation_id_is_a_verb_and_its_object(self, audience: Audience) -> None:
        """A generated client turns it into a function: `pay_booking(...)`, not `post_pay(...)`."""
        found = ids(DECODED[audience])

        assert [one for one in found if not OPERATION_ID.fullmatch(one)] == []
        assert [one for one in found if one.startswith(("post_", "put_", "patch_"))] == []

    def test_every_operation_has_a_summary_of_one_line(self, audience: Audience) -> None:
        found = operations(DECODED[audience])

        assert [one["operationId"] for one in found if not 0 < len(one["summary"]) <= 110] == []

    def test_every_tag_is_described(self, audience: Audience) -> None:
        found = {tag["name"]: tag.get("description") for tag in DECODED[audience]["tags"]}

        assert found == DOCUMENTS[audience].tags

    def test_every_reference_leads_somewhere(self, audience: Audience) -> None:
        whole = DECODED[audience]

        assert all(resolved({"$ref": reference}, whole) for reference in references(whole))

    def test_every_component_is_used(self, audience: Audience) -> None:
        whole = DECODED[audience]
        used = set(references(whole))
        kinds = ("schemas", "parameters", "headers", "responses")
        unused = [
            name
            for kind in kinds
            for name in whole["components"][kind]
            if f"#/components/{kind}/{name}" not in used
        ]

        assert unused == []

    def test_headers_of_limits_and_of_replays_are_described(self, audience: Audience) -> None:
        whole = DECODED[audience]
        for operation in operations(whole):
            takes_key = "#/components/parameters/Idempotency-Key" in references(operation)
            for status, response in operation["responses"].items():
                headers = set(resolved(response, whole).get("headers", ()))
                assert ("Idempotency-Replayed" in headers) == (takes_key and status < "300")
                assert ("Retry-After" in headers) == (status in ("429", "503"))
                assert ({"RateLimit", "RateLimit-Policy"} <= headers) == (status == "429")

    def test_it_links_to_the_others(self, audience: Audience) -> None:
        linked = re.findall(r"\]\((.+?)\)", DOCUMENTS[audience].intro)

        assert {*linked, DOCUMENTS[audience].path} == {about.path for about in DOCUMENTS.values()}


def printed(*options: str) -> Any:
    ended = CliRunner().invoke(cli, ["openapi", *options])
    assert ended.exit_code == 0, ended.output
    return msgspec.json.decode(ended.stdout)


class TestAllDocuments:
    def test_every_operation_is_in_exactly_one(self) -> None:
        served = [one for whole in DECODED.values() for one in ids(whole)]
        api = [route.name for route in ROUTES if not route.bare]

        assert sorted(served) == sorted(api)
        assert len(set(served)) == len(served)

    def test_the_document_for_generators_has_them_all(self) -> None:
        encoded = msgspec.json.encode(document(ROUTES))
        whole = msgspec.json.decode(encoded)
        paths = [path for one in DECODED.values() for path in one["paths"]]

        assert sorted(ids(whole)) == sorted(one for served in DECODED.values() for one in ids(served))
        assert whole["paths"].keys() == set(paths)
        assert all("description" in tag for tag in whole["tags"])
        assert len(encoded) / len(ids(whole)) < BYTES_PER_OPERATION_MAX
        assert printed() == whole
        assert printed("--for", "house") == DECODED[Audience.HOUSE]
        validate(whole, cls=OpenAPIV31SpecValidator)

    def test_the_role_decides_which(self) -> None:
        assert roles(Audience.FANS) == {"anyone", "fan"}
        assert {"organiser", "gate"} <= roles(Audience.ORGANISERS)
        assert "admin" not in roles(Audience.ORGANISERS)
        assert roles(Audience.HOUSE) == {"admin"}

    def test_a_table_may_name_another(self) -> None:
        found = ids(DECODED[Audience.ORGANISERS])

        assert {"log_in_gate", "list_my_organisations", "accept_invitation"} <= set(found)

    def test_one_name_in_two_documents_is_refused(self) -> None:
        other = Route(
            method="GET", path="/o", call=get_shows, tag="o", role=Role.ORGANISER, right=Right.MEMBER
        )

        with pytest.raises(AssertionError, match="get_shows"):
            documents([SEARCH, other])

    def test_what_only_one_of_them_uses_is_not_in_the_other(self) -> None:
        parameters = {audience: set(one["components"]["parameters"]) for audience, one in DECODED.items()}

        assert "Holdfast-Organisation" in parameters[Audience.ORGANISERS]
        assert "Holdfast-Organisation" not in parameters[Audience.FANS] | parameters[Audience.HOUSE]


def test_every_reference_leads_somewhere() -> None:
    assert all(resolved({"$ref": reference}) for reference in references(DOCUMENT))


def test_words_come_from_the_docstring_without_the_address() -> None:
    assert POST["summary"] == "Hold these seats"
    assert POST["description"] == "All of them, or none."
    assert POST["operationId"] == "post_hold"


def test_a_schema_reads_well_and_suits_generators() -> None:
    held = DOCUMENT["components"]["schemas"]["Held"]
    two = {"type": "array", "minItems": 2, "maxItems": 2}

    assert held["description"] == "A hold.\n\nIndented in the source."
    assert held["properties"]["at"] == {**two, "items": {"type": "number"}}
    assert held["properties"]["change"] == {**two, "prefixItems": [{"type": "integer"}, {"type": "string"}]}
    assert held["properties"]["ends_at"]["anyOf"][0] == {"type": "string", "format": "date-time"}


def test_a_set_of_codes_that_two_operations_share_is_a_component() -> None:
    shared = {"$ref": "#/components/responses/BusyOrEngineDownOrTimedOut"}

    assert POST["responses"]["503"] == GET["responses"]["503"] == shared
    assert "$ref" not in POST["responses"]["409"]


def test_bare_routes_are_not_part_of_it() -> None:
    assert set(DOCUMENT["paths"]) == {"/shows/{show}/holds", "/shows"}


def test_a_path_value_is_a_number_that_the_ledger_holds() -> None:
    assert resolved(POST["parameters"][0]) == {
        "name": "show",
        "in": "path",
        "required": True,
        "schema": {"type": "integer", "minimum": 1, "maximum": 2**63 - 1},
    }


def test_query_fields_become_parameters_and_no_schema() -> None:
    by_name = named(GET["parameters"])

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
    assert codes(POST, "503") <= set(list_problem_pages())


def test_operations_that_need_a_sign_in_say_so() -> None:
    assert POST["security"] == [{"bearer": []}]
    assert POST["x-role"] == "fan"
    assert GET["security"] == []


def test_the_key_is_a_header() -> None:
    assert "Idempotency-Key" in named(POST["parameters"])


def test_the_example_of_a_body_is_a_body() -> None:
    example = POST["requestBody"]["content"]["application/json"]["example"]

    assert read(HoldBody, msgspec.json.encode(example)).seats == ["J-12", "J-13"]


def test_one_name_for_two_operations_is_refused() -> None:
    with pytest.raises(AssertionError, match="unique"):
        document([HOLD, Route(method="POST", path="/other", call=post_hold, tag="holds", takes_key=True)])
