"""R4: nginx with deploy/nginx.conf in front of the box office: what it caches, must not cache, and limits."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from holdfast.app import App
from holdfast.config import Config
from holdfast.routes import ROUTES
from holdfast.web.routing import Route
from tests.conftest import started
from tests.support.nginx_front import Behind, fronted, raw
from tests.support.opened import asgi_app
from tests.support.shows import API, Fan, a_layout, problem
from tests.support.wait import until
from tools.nginx import CONF

PLENTY = {"browse": 100_000, "buy": 100_000, "sign_in": 100_000}


async def get_page(request: Request) -> Response:
    """A page that any cache may store."""
    return Response("a page", headers={"Cache-Control": "public, max-age=60"})


async def get_first_page(request: Request) -> Response:
    """The same, for a client that gets a cookie with it."""
    return Response("hello", headers={"Cache-Control": "public, max-age=60", "Set-Cookie": "seen=1"})


PAGES = (
    Route(method="GET", path="/a/page", tag="pages", call=get_page, bare=True),
    Route(method="GET", path="/a/first/page", tag="pages", call=get_first_page, bare=True),
)


@pytest.fixture(scope="module")
async def behind(config: Config) -> AsyncIterator[Behind]:
    application = asgi_app(config, PAGES)
    async with started(application):
        yield Behind(application)


@pytest.fixture(scope="module")
async def nginx(
    behind: Behind, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx2.AsyncClient]:
    folder = tmp_path_factory.mktemp("nginx")
    async with behind.serving(), fronted(folder, behind.address, rates=PLENTY, per_address=1000) as client:
        yield client


def port_of(client: httpx2.AsyncClient) -> int:
    assert client.base_url.port
    return client.base_url.port


async def test_of_many_equal_requests_one_reaches_the_box_office(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any
) -> None:
    path, behind.slow_s = f"{API}/shows/{await a_show()}/layout", 0.3
    try:
        answers = await asyncio.gather(*(nginx.get(path) for _ in range(200)))
    finally:
        behind.slow_s = 0.0

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert behind.count(path) == 1


async def test_a_page_is_refilled_once_a_second_and_no_client_waits_for_it(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any
) -> None:
    path, began, cache_states = f"{API}/shows/{await a_show()}/seats", time.monotonic(), set()

    while time.monotonic() < began + 3.2:
        answers = await asyncio.gather(*(nginx.get(path) for _ in range(10)))
        cache_states |= {answer.headers["x-cache"] for answer in answers}

    assert 2 <= behind.count(path) <= 2 + (time.monotonic() - began)
    assert cache_states <= {"MISS", "HIT", "UPDATING", "STALE", "REVALIDATED"}


async def test_forms_of_a_map_are_cached_apart(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any
) -> None:
    path, compact = f"{API}/shows/{await a_show()}/seats", "application/vnd.holdfast.seats"

    text = await nginx.get(path, headers={"Accept": "text/html, */*"})
    packed = await nginx.get(path, headers={"Accept": compact})
    again = await nginx.get(path, headers={"Accept": "application/json"})

    assert text.headers["content-type"] == again.headers["content-type"] == "application/json"
    assert packed.headers["content-type"] == compact
    assert text.json()["states"] == "A" * 50


async def test_nginx_answers_304_without_the_application(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any
) -> None:
    await a_show()
    path = f"{API}/cities?"
    first = await nginx.get(path)

    again = [await nginx.get(path, headers={"If-None-Match": first.headers["etag"]}) for _ in range(5)]

    assert {(answer.status_code, answer.content) for answer in again} == {(304, b"")}
    assert behind.count(f"{API}/cities") == 1


async def test_a_layout_is_requested_once_and_compressed(
    nginx: httpx2.AsyncClient, behind: Behind, app: App, a_show: Any
) -> None:
    layout = a_layout(500)
    path = f"{API}/shows/{await a_show(layout=layout)}/layout?v={layout.hash}"

    answers = [await nginx.get(path, headers={"Accept-Encoding": "gzip"}) for _ in range(3)]
    weak = await nginx.get(path, headers={"If-None-Match": answers[0].headers["etag"]})

    assert behind.count(path) == 1
    assert "immutable" in answers[-1].headers["cache-control"]
    assert answers[-1].headers["content-encoding"] == "gzip"
    assert (answers[-1].headers["etag"], weak.status_code) == (f'W/"{layout.hash}"', 304)


async def test_pages_go_on_while_the_box_office_is_away(behind: Behind, tmp_path: Path, a_show: Any) -> None:
    known, unknown = f"{API}/shows/{await a_show()}/seats", f"{API}/shows/{await a_show()}"
    statuses = []

    async def is_stale() -> bool:
        answer = await client.get(known)
        statuses.append(answer.status_code)
        return answer.headers["x-cache"] in ("STALE", "UPDATING")

    async def is_fresh() -> bool:
        return (await client.get(unknown)).status_code == 200

    old, behind.address = behind.address, ""
    try:
        async with behind.serving():
            pass
        async with fronted(tmp_path, behind.address, rates=PLENTY) as client:
            async with behind.serving():
                statuses.append((await client.get(known)).status_code)
            await until(is_stale)
            away, page = await client.get(unknown), await client.get("/")
            async with behind.serving():
                await until(is_fresh)
    finally:
        behind.address = old

    assert set(statuses) == {200}
    assert (page.status_code, page.headers["content-type"]) == (503, "text/html")
    assert problem(away)["code"] == "engine_down"
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")


async def test_private_responses_are_never_cached(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any, alice: Fan, bob: Fan
) -> None:
    show_id = await a_show()
    mine = f"{API}/shows/{show_id}/seats/mine"

    held = await nginx.post(f"{API}/shows/{show_id}/holds", json={"seats": ["A-1"]}, headers=alice.headers)
    lost = await nginx.post(f"{API}/shows/{show_id}/holds", json={"seats": ["A-1"]}, headers=bob.headers)
    hers = [await nginx.get(mine, headers=alice.headers) for _ in range(2)]
    his = await nginx.get(mine, headers=bob.headers)
    anonymous = await nginx.get(mine)
    accounts = [
        (await nginx.get(f"{API}/me", headers=fan.headers)).json()["account_id"] for fan in (alice, bob)
    ]

    assert (held.status_code, lost.status_code, anonymous.status_code) == (201, 409, 401)
    assert [seat["label"] for answer in hers for seat in answer.json()["seats"]] == ["A-1", "A-1"]
    assert his.json()["seats"] == []
    assert behind.count(mine) == 4
    assert accounts == [alice.account_id, bob.account_id]
    assert "x-cache" not in held.headers | hers[0].headers | his.headers


async def test_no_token_and_no_cookie_enters_the_shared_cache(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any, alice: Fan
) -> None:
    path = f"{API}/shows/{await a_show()}"
    own = {"Cookie": "holdfast=secret", "X-Forwarded-Host": "evil.example", "Origin": "https://evil.example"}

    answer = await nginx.get(path, headers=alice.headers | own)

    came = behind.seen[-1]
    assert answer.status_code == 200
    assert not {"authorization", "cookie", "origin", "x-forwarded-host"} & came.keys()
    assert (await nginx.get(path)).content == answer.content


async def test_a_page_is_cached_for_anonymous_clients_only(nginx: httpx2.AsyncClient, behind: Behind) -> None:
    for _ in range(3):
        await nginx.get("/a/page")
        await nginx.get("/a/page?mine", headers={"Cookie": "other=1; holdfast=abc"})
        await nginx.get("/a/first/page")

    assert behind.count("/a/page") == 1
    assert behind.count("/a/page?mine") == 3
    assert behind.count("/a/first/page") == 3


async def test_health_is_never_cached(nginx: httpx2.AsyncClient, behind: Behind) -> None:
    answers = [await nginx.get(path) for path in ("/healthz", "/readyz") for _ in range(2)]

    assert {answer.status_code for answer in answers} == {200}
    assert behind.count("/healthz") == behind.count("/readyz") == 2


async def test_changes_of_a_map_come_through_one_by_one(
    nginx: httpx2.AsyncClient, a_show: Any, alice: Fan
) -> None:
    show_id, events = await a_show(), []

    async with nginx.stream("GET", f"{API}/shows/{show_id}/seats/stream") as stream:
        lines = stream.aiter_lines()
        async for line in lines:
            if line.startswith("event:"):
                events.append(line)
                if len(events) == 3:
                    break
                await alice.holds(show_id, f"A-{len(events)}")  # the next one comes only after this

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert events == ["event: snapshot", "event: change", "event: change"]


async def test_a_client_over_the_limit_gets_retry_after(
    nginx: httpx2.AsyncClient, behind: Behind, tmp_path: Path
) -> None:
    path, body = f"{API}/auth/login", {"email": "unknown@example.com", "password": "wrong horse battery"}
    before = behind.count(path, "POST")
    async with fronted(tmp_path, behind.address) as client:
        answers = await asyncio.gather(*(client.post(path, json=body) for _ in range(40)))

    stopped = [answer for answer in answers if answer.headers.get("retry-after") == "1"]
    assert len(stopped) >= 10
    assert {(one.status_code, problem(one)["code"]) for one in stopped} == {(429, "too_many_requests")}
    assert behind.count(path, "POST") - before == 40 - len(stopped)


async def test_forms_of_pages_are_limited_and_reading_them_is_not(
    nginx: httpx2.AsyncClient, behind: Behind, tmp_path: Path
) -> None:
    at_once = {"/shows/1/hold": 40, "/sign-in": 20, "/language": 60}
    async with fronted(tmp_path, behind.address) as client:
        for path, burst in at_once.items():
            before = behind.count(path, "POST")
            sent = await asyncio.gather(*(client.post(path, data={}) for _ in range(burst + 80)))
            stopped = [one.status_code for one in sent].count(429)
            assert 1 <= stopped <= 80, path
            assert behind.count(path, "POST") - before == burst + 80 - stopped
        read = await asyncio.gather(*(client.get("/sign-in") for _ in range(100)))

    assert 429 not in {one.status_code for one in read}


async def test_one_address_can_watch_a_limited_number_of_maps(
    nginx: httpx2.AsyncClient, behind: Behind, tmp_path: Path, a_show: Any
) -> None:
    path = f"{API}/shows/{await a_show()}/seats/stream"
    async with fronted(tmp_path, behind.address, per_address=2) as client:
        async with client.stream("GET", path) as one, client.stream("GET", path) as other:
            third = await client.get(path)

    assert (one.status_code, other.status_code, third.status_code) == (200, 200, 429)


async def test_a_long_body_is_refused_before_it_is_read(
    nginx: httpx2.AsyncClient, behind: Behind, a_show: Any, alice: Fan
) -> None:
    path = f"{API}/shows/{await a_show()}/holds"

    answer = await nginx.post(path, content=b" " * 70_000, headers=alice.headers)

    assert (answer.status_code, problem(answer)["code"]) == (413, "body_too_large")
    assert behind.count(path, "POST") == 0


async def test_the_client_address_comes_from_nginx_only(nginx: httpx2.AsyncClient, behind: Behind) -> None:
    lies = b"X-Forwarded-For: 9.9.9.9\r\nX-Real-IP: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\n"
    lies += b"X-Forwarded-Proto: https\r\n"
    sent = b"GET /healthz?%s HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lies + b"Connection: close\r\n\r\n"

    await raw(port_of(nginx), sent % b"through", source="127.0.0.3")
    through = behind.seen[-1]
    await raw(int(behind.address.partition(":")[2]), sent % b"past", source="127.0.0.4")
    past = behind.seen[-1]

    assert (through["client"][0], through["scheme"]) == ("127.0.0.3", "http")
    assert through["x-forwarded-for"] == "127.0.0.3"
    assert not {"forwarded", "x-real-ip"} & through.keys()
    assert (past["client"][0], past["scheme"]) == ("127.0.0.4", "http")


@pytest.mark.parametrize(
    "sent, status",
    [
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (
            b"POST /api/v1/accounts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
            400,
        ),
        (
            b"POST /api/v1/accounts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
            b"Content-Length: 5\r\n\r\nabcd",
            400,
        ),
        (b"POST /api/v1/accounts HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 40_000 + b"\r\n\r\n", 400),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00", 400),
    ],
    ids=[
        "name",
        "absolute",
        "two names",
        "no name",
        "both lengths",
        "two lengths",
        "strange",
        "long",
        "up",
        "tls",
    ],
)
async def test_requests_for_other_hosts_end_at_nginx(
    nginx: httpx2.AsyncClient, behind: Behind, sent: bytes, status: int
) -> None:
    before = behind.requests.total()

    answer = await raw(port_of(nginx), sent)

    assert re.match(rb"HTTP/1\.1 (\d+) ", answer), answer
    assert int(answer[9:12]) == status
    assert behind.requests.total() == before


async def test_an_address_spelt_otherwise_does_not_become_another_ones_page(
    nginx: httpx2.AsyncClient, behind: Behind
) -> None:
    """`%3F` is part of the path: its response must not be cached for the query."""
    host = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    planted = await raw(port_of(nginx), b"GET /api/v1/events%3Fpage=1" + host)
    listed = await nginx.get(f"{API}/events?page=1")
    sizes = [(await nginx.get(f"{API}/events?size={size}")).json()["size"] for size in (1, 2)]

    assert planted[9:12] == b"404"
    assert listed.status_code == 200
    assert sizes == [1, 2]


async def test_numbers_are_for_this_machine_alone(nginx: httpx2.AsyncClient) -> None:
    sent = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    for path in (b"/metrics", b"/nginx_status"):
        here = await raw(port_of(nginx), sent % path)
        elsewhere = await raw(port_of(nginx), sent % path, source="127.0.0.3")

        assert (here[9:12], elsewhere[9:12]) == (b"200", b"403")


def test_only_public_responses_can_be_cached() -> None:
    """The cached location matches public pages only, and every page of the response cache."""
    [pattern] = re.findall(r'location ~ "\(\?x\)(.*?)" \{', CONF.read_text(), re.DOTALL)
    cached = re.compile(pattern, re.VERBOSE)
    [queue] = re.findall(r"location ~ (\S+/queue\$) \{", CONF.read_text())

    for route in ROUTES:
        path = re.sub(r"\{\w+:int\}", "7", route.full_path).replace("{poster}", "7.svg")
        if re.search(queue, path):  # reading it is public, joining is not: only senders say who they are
            assert (route.role is None) == (route.method == "GET"), path
            continue
        if cached.search(path):
            assert route.role is None, path
            assert route.method == "GET", path
            assert route.asgi is None, path
        assert route.peek is None or cached.search(path), path
