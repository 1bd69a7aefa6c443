"""From a request to its answer, errors included. The routes here need no engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from holdfast.accounts import Accounts
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.holds import SoldOut
from holdfast.organisations import ApiKeys, Organisations
from holdfast.web.asgi import Application
from holdfast.web.audiences import DOCUMENTS, About
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import Route


class Body(msgspec.Struct, forbid_unknown_fields=True):
    count: int
    name: str = ""


async def post_body(request: Request) -> Response:
    """Returns its input."""
    return answer(201, read(Body, await request.body()))


SHARED = answer(200, {"shared": True})


async def get_shared(request: Request) -> Response:
    """The same response object for every request."""
    return SHARED


async def get_refused(request: Request) -> Response:
    """Always no."""
    raise SoldOut(free=3)


async def get_down(request: Request) -> Response:
    """An engine is down."""
    raise EngineDown("ledger")


async def get_bug(request: Request) -> Response:
    """A bug."""
    raise ZeroDivisionError("the secret of the house")


async def get_slow(request: Request) -> Response:
    """Longer than the time limit."""
    await asyncio.Event().wait()
    raise AssertionError


async def get_pieces(request: Request) -> Response:
    """A response that is made while it is sent."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    return StreamingResponse(pieces(), media_type="text/plain")


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """A raw stream."""
    if b"refuse" in scope["query_string"]:
        raise SoldOut
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if b"break" in scope["query_string"]:
        raise ZeroDivisionError
    await send({"type": "http.response.body", "body": b"data: 1\n\n"})


async def get_me(request: Request) -> Response:
    """Returns the caller."""
    return answer(200)


CALLS = (get_shared, get_refused, get_down, get_bug, get_slow, get_pieces)
ROUTES: tuple[Route, ...] = (
    *(Route(method="GET", path=f"/{call.__name__[4:]}", call=call, tag="test") for call in CALLS),
    Route(method="POST", path="/body", call=post_body, tag="test", body=Body, takes_key=True),
    Route(method="GET", path="/stream", asgi=stream, tag="test"),
    Route(method="GET", path="/me", call=get_me, tag="test", role=Role.FAN),
)


@dataclass(frozen=True)
class App:
    """An application whose engines are not open."""

    config: Config
    postgres: Postgres
    redis: Redis
    accounts: Accounts
    organisations: Organisations
    api_keys: ApiKeys

    def pod_chooser(self) -> None:
        return None


def app(config: Config) -> App:
    postgres = Postgres("postgresql://nowhere", pool_max=1, timeout_s=1)
    redis = open_redis("redis://nowhere", links_max=1, timeout_s=1)
    accounts = Accounts(postgres, redis, config)
    organisations, keys = Organisations(postgres, accounts, config), ApiKeys(postgres, accounts.limits)
    return App(config, postgres, redis, accounts, organisations, keys)


@asynccontextmanager
async def serving(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application that was started as a server starts it, and is stopped the same way."""

    @asynccontextmanager
    async def factory() -> AsyncIterator[App]:
        yield app(config)

    application = Application(factory, ROUTES)
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    inbox.put_nowait({"type": "lifespan.startup"})
    life = asyncio.create_task(application({"type": "lifespan"}, inbox.get, outbox.put))
    assert await outbox.get() == {"type": "lifespan.startup.complete"}
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://box/api/v1") as client:
        yield client
    inbox.put_nowait({"type": "lifespan.shutdown"})
    assert await outbox.get() == {"type": "lifespan.shutdown.complete"}
    assert application.is_draining
    await life


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(Config(body_bytes_max=100, request_timeout_s=1)) as client:
        yield client


async def test_a_request_body_is_decoded_and_the_answer_encoded(client: httpx2.AsyncClient) -> None:
    response = await client.post("/body", json={"count": 2})

    assert response.status_code == 201
    assert response.json() == {"count": 2, "name": ""}
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed"),
        (b"", 400, "malformed"),
        (b'{"count": 1, "name": "\xff"}', 400, "malformed"),
        (b"[" * 99, 422, "invalid"),
        (b'{"name": "x"}', 422, "invalid"),
        (b'{"count": 1, "colour": "red"}', 422, "invalid"),
        (b'{"count": 99999999999999999999}', 422, "invalid"),
        (b'{"count": 1, "name": "a\\u0000b"}', 422, "invalid"),
        (b'{"count": 1, "name": "' + b"x" * 100 + b'"}', 413, "body_too_large"),
    ],
)
async def test_a_bad_body_is_refused(client: httpx2.AsyncClient, body: bytes, status: int, code: str) -> None:
    response = await client.post("/body", content=body)

    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_a_body_without_a_length_has_the_same_limit(client: httpx2.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b" " * 60

    response = await client.post("/body", content=pieces())

    assert response.status_code == 413
    assert response.json()["limit"] == 100


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", None])
async def test_json_is_taken_with_and_without_its_name(client: httpx2.AsyncClient, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    response = await client.post("/body", content=b'{"count": 1}', headers=headers)

    assert response.status_code == 201


async def test_another_content_type_than_json_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post("/body", data={"count": "1"})

    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/refused", 409, "sold_out"),
        ("/down", 503, "engine_down"),
        ("/bug", 500, "internal_error"),
        ("/slow", 503, "timed_out"),
        ("/nowhere", 404, "no_such_route"),
        ("/me", 503, "engine_down"),  # the revocation list was never read
    ],
)
async def test_a_no_is_a_problem(client: httpx2.AsyncClient, path: str, status: int, code: str) -> None:
    response = await client.get(path)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) == (status == 503)


async def test_a_wrong_method_gets_the_allowed_methods(client: httpx2.AsyncClient) -> None:
    response = await client.put("/shared")

    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"


async def test_head_is_a_get_without_the_body(client: httpx2.AsyncClient) -> None:
    response = await client.head("/shared")

    assert response.status_code == 200
    assert response.headers["content-length"] == str(len(SHARED.body))
    assert response.content == b""


async def test_every_request_has_its_own_id(client: httpx2.AsyncClient) -> None:
    ids = [(await client.get("/shared")).headers.get_list("x-request-id") for _ in range(3)]

    assert [len(one) for one in ids] == [1, 1, 1]
    assert len({one[0] for one in ids}) == 3


@pytest.mark.parametrize(
    ("sent", "is_used"), [("abc-1", True), ("a b", False), ("x" * 65, False), ("", False)]
)
async def test_a_sane_id_is_taken_over(client: httpx2.AsyncClient, sent: str, is_used: bool) -> None:
    response = await client.get("/shared", headers={"X-Request-Id": sent})

    assert (response.headers["x-request-id"] == sent) == is_used


async def test_a_response_in_pieces_has_an_id_too(client: httpx2.AsyncClient) -> None:
    response = await client.get("/pieces")

    assert response.text == "one two"
    assert response.headers["x-request-id"]


async def test_a_stream_is_refused_before_it_begins_or_ends_without_an_error(
    client: httpx2.AsyncClient,
) -> None:
    assert (await client.get("/stream")).text == "data: 1\n\n"
    assert (await client.get("/stream?refuse")).json()["code"] == "sold_out"
    with pytest.raises(AssertionError):  # the client notices that the answer was never complete
        await client.get("/stream?break")


async def test_other_origins_are_refused_unless_configured(client: httpx2.AsyncClient) -> None:
    headers = {"Origin": "https://tickets.example"}
    closed = await client.get("/shared", headers=headers)
    async with serving(Config(cors_origins="https://tickets.example")) as open_client:
        allowed = await open_client.get("/shared", headers=headers)
        preflight = await open_client.options("/body", headers=headers)
        stranger = await open_client.get("/shared", headers={"Origin": "https://evil.example"})

    assert "access-control-allow-origin" not in closed.headers
    assert allowed.headers["access-control-allow-origin"] == "https://tickets.example"
    exposed = allowed.headers["access-control-expose-headers"].split(", ")
    assert {"ratelimit", "ratelimit-policy", "retry-after"} <= set(exposed)
    assert preflight.status_code == 204
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in stranger.headers


async def test_a_client_over_the_limit_has_to_wait() -> None:
    async with serving(Config(requests_per_second_max=2)) as client:
        statuses = [(await client.get("/shared")).status_code for _ in range(3)]
        refused = await client.get("/shared")

    assert statuses == [200, 200, 429]
    assert refused.headers["retry-after"] == "1"
    assert "ratelimit" in refused.headers


@pytest.mark.parametrize("path", ["/docs", "/docs/docs.js", "/problems", "/problems/sold_out"])
async def test_pages_forbid_foreign_content(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(f"http://box{path}")

    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "://" not in response.text.replace("http://www.w3.org/2000/svg", "")


async def test_the_reference_page_allows_its_icons_and_nothing_else(client: httpx2.AsyncClient) -> None:
    reference, problems = await client.get("http://box/docs"), await client.get("http://box/problems")
    policy = reference.headers["content-security-policy"]

    assert policy.replace(" data:", "") == problems.headers["content-security-policy"]
    assert "img-src 'self' data:;" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("file", ["swagger-ui.js", "swagger-ui.css"])
async def test_the_reference_is_served_from_here(client: httpx2.AsyncClient, file: str) -> None:
    page = await client.get("http://box/docs")
    found = await client.get(f"http://box/docs/{file}")
    again = await client.get(f"http://box/docs/{file}", headers={"If-None-Match": found.headers["etag"]})

    assert f"/docs/{file}" in page.text
    assert (found.status_code, again.status_code) == (200, 304)
    assert len(found.content) > 100_000


async def test_the_document_is_read_once(client: httpx2.AsyncClient) -> None:
    first = await client.get("/openapi.json")
    second = await client.get("/openapi.json", headers={"If-None-Match": first.headers["etag"]})

    assert "/body" in first.json()["paths"]
    assert (second.status_code, second.content) == (304, b"")


async def test_the_document_is_sent_packed_to_who_reads_it(client: httpx2.AsyncClient) -> None:
    plain = await client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    packed = await client.get("/openapi.json", headers={"Accept-Encoding": "br, gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert packed.json() == plain.json()
    for header in ("etag", "vary", "content-type", "content-security-policy"):
        assert packed.headers[header] == plain.headers[header]


@pytest.mark.parametrize("about", DOCUMENTS.values(), ids=DOCUMENTS.keys())
async def test_each_audience_has_a_document_and_the_reference_offers_it(
    client: httpx2.AsyncClient, about: About
) -> None:
    reference, found = await client.get("http://box/docs"), await client.get(f"http://box{about.path}")

    assert found.json()["info"]["title"] == about.title
    assert f'data-document="{about.path}"' in reference.text
    assert f'<a href="{about.path}">' in reference.text  # without JavaScript


@pytest.mark.parametrize("path", ["/docs/docs.html", "/docs/nothing.js", "/docs/.env", "/problems/nothing"])
async def test_no_page_is_a_404(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.get(f"http://box{path}")).status_code == 404


async def test_without_engines_it_is_alive_and_not_ready(client: httpx2.AsyncClient) -> None:
    alive, ready = await client.get("http://box/healthz"), await client.get("http://box/readyz")

    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert ready.status_code == 503
    assert ready.json() == {"status": "down", "ledger": "down", "holds": "down", "migrations": "unknown"}


async def test_a_box_office_that_does_not_open_stops_the_server() -> None:
    @asynccontextmanager
    async def factory() -> AsyncIterator[App]:
        raise EngineDown("ledger")
        yield

    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        messages.append(message)

    await Application(factory, ROUTES)({"type": "lifespan"}, receive, send)

    assert messages[0]["type"] == "lifespan.startup.failed"
    assert "ledger" in messages[0]["message"]
