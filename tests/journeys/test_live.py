"""A fan watches a map move, over a real connection: GET /shows/{show}/seats/stream (R8)."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.web.asgi import Application
from holdfast.web.caller import Role
from tests.conftest import served, started
from tests.support.claim_pool import Pool
from tests.support.opened import asgi_app
from tests.support.shows import API, Fan, fans, problem
from tests.support.wait import until

AShow = Callable[..., Awaitable[int]]


@dataclass(frozen=True)
class Event:
    kind: str
    id: int
    data: dict[str, Any]


@dataclass(frozen=True)
class Server:
    application: Application
    url: str
    client: httpx2.AsyncClient

    @asynccontextmanager
    async def watching(self, show_id: int, **headers: str) -> AsyncIterator["Stream"]:
        path = f"{API}/shows/{show_id}/seats/stream"
        async with self.client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200
            yield Stream(response)

    async def metric(self, name: str) -> float:
        """0 for a metric without samples."""
        lines = (await self.client.get("/metrics")).text.splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"holdfast_{name} ")), 0.0)


class Stream:
    """What an EventSource does."""

    def __init__(self, response: httpx2.Response) -> None:
        self.headers = response.headers
        self._lines = response.aiter_lines()
        self.retry_ms = 0

    async def next(self, within_s: float = 5.0) -> Event:
        async with asyncio.timeout(within_s):
            fields: dict[str, str] = {}
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if not line and "event" in fields:
                    return Event(fields["event"], int(fields["id"]), json.loads(fields["data"]))
                if name == "retry":
                    self.retry_ms = int(value)
                fields[name] = value
            raise EOFError


@asynccontextmanager
async def a_server(config: Config) -> AsyncIterator[Server]:
    application = asgi_app(config)
    async with started(application), served(application) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=10) as client:
            yield Server(application, url, client)


@pytest.fixture(scope="module")
async def server(config: Config) -> AsyncIterator[Server]:
    async with a_server(config) as opened:
        yield opened


async def test_a_fan_sees_a_seat_being_held_released_and_blocked(
    server: Server, a_show: AShow, alice: Fan, app: App, api: httpx2.AsyncClient
) -> None:
    show = await a_show(seats=20)
    (admin,) = await fans(app, api, 1, Role.ADMIN)

    async with server.watching(show) as stream:
        snapshot = await stream.next()
        booking = (await alice.holds(show, "A-2", "A-3")).json()
        held = await stream.next()
        await alice.delete(f"/bookings/{booking['booking_id']}")
        released = await stream.next()
        await admin.post(f"/admin/shows/{show}/blocks", {"seats": ["A-1"], "name": "press"})
        blocked = await stream.next()

    page = (await api.get(f"{API}/shows/{show}/seats")).json()
    assert (snapshot.kind, snapshot.data["states"]) == ("snapshot", "A" * 20)
    assert (snapshot.data["layout"], snapshot.id) == (page["layout"], snapshot.data["version"])
    assert (held.kind, held.id) == ("change", snapshot.id + 1)
    assert held.data == {"version": held.id, "changes": [[1, "H"], [2, "H"]]}
    assert released.data["changes"] == [[1, "A"], [2, "A"]]
    assert blocked.data["changes"] == [[0, "X"]]
    assert blocked.id == snapshot.id + 3


async def test_a_free_show_goes_to_booked(server: Server, a_show: AShow, alice: Fan) -> None:
    show = await a_show(seats=20, price_minor=0)

    async with server.watching(show) as stream:
        await stream.next()
        await alice.holds(show, "A-2")
        letters = [(await stream.next()).data["changes"] for _ in range(2)]

    assert letters == [[[1, "H"]], [[1, "B"]]]


@pytest.mark.alone
async def test_a_hold_that_ends_is_seen_to_end_without_other_clients(
    server: Server, a_show: AShow, alice: Fan
) -> None:
    show = await a_show(seats=20, hold_ttl_s=1)

    async with server.watching(show) as stream:
        await stream.next()
        await alice.holds(show, "A-2")
        held = await stream.next()
        ended = await stream.next(within_s=2.2)

    assert held.data["changes"] == [[1, "H"]]
    assert ended.data["changes"] == [[1, "A"]]


async def test_the_stream_passes_through_proxies_and_says_when_to_come_back(
    server: Server, a_show: AShow
) -> None:
    async with server.watching(await a_show()) as stream:
        await stream.next()

    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["cache-control"] == "no-store"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "x-request-id" in stream.headers
    assert 100 <= stream.retry_ms <= 5000


async def test_a_reconnecting_viewer_continues_after_its_last_event(
    server: Server, a_show: AShow, alice: Fan
) -> None:
    show = await a_show(seats=20)
    async with server.watching(show) as stream:
        first = await stream.next()
    await alice.holds(show, "A-1")
    await alice.holds(show, "A-2")

    async with server.watching(show, **{"Last-Event-ID": str(first.id)}) as stream:
        events = [await stream.next(), await stream.next()]
    path = f"{API}/shows/{show}/seats/stream?since={first.id + 1}"
    async with server.client.stream("GET", path) as response:
        continued = await Stream(response).next()

    assert [(event.kind, event.id) for event in events] == [("change", first.id + n) for n in (1, 2)]
    assert (continued.kind, continued.id) == ("change", first.id + 2)


@pytest.mark.parametrize("sent", ["7", "-1", "x", "9" * 30, ""])
async def test_an_unknown_last_event_id_gets_the_whole_map(server: Server, a_show: AShow, sent: str) -> None:
    async with server.watching(await a_show(), **{"Last-Event-ID": sent}) as stream:
        assert (await stream.next()).kind == "snapshot"


@pytest.mark.parametrize("query", ["since=x", "since=-1", "since=9999999999999999999", "other=1"])
async def test_a_query_that_makes_no_sense_is_refused(server: Server, a_show: AShow, query: str) -> None:
    answer = await server.client.get(f"{API}/shows/{await a_show()}/seats/stream?{query}")

    assert (answer.status_code, problem(answer)["code"]) == (422, "invalid")


async def test_a_show_that_does_not_exist_has_no_stream(server: Server) -> None:
    answer = await server.client.get(f"{API}/shows/999999999/seats/stream")

    assert (answer.status_code, problem(answer)["code"]) == (404, "no_such_show")


async def test_viewers_and_sent_messages_are_counted(server: Server, a_show: AShow, alice: Fan) -> None:
    show = await a_show(seats=20)

    async def are(count: int) -> bool:
        return await server.metric("viewers") == count

    await until(partial(are, 0))
    sent_before = await server.metric("changes_sent_total")
    async with server.watching(show) as stream, server.watching(show) as other:
        await stream.next()
        await other.next()
        await until(partial(are, 2))
        await alice.holds(show, "A-1")
        await stream.next()
        await other.next()

    assert await server.metric("changes_sent_total") - sent_before == 2
    await until(partial(are, 0))


@pytest.mark.parametrize(
    ("limit", "status", "code"),
    [("viewers_max", 503, "too_many_viewers"), ("viewers_per_address_max", 429, "too_many_streams")],
)
async def test_one_viewer_too_many_is_refused_and_admitted_later(
    config: Config, a_show: AShow, limit: str, status: int, code: str
) -> None:
    show = await a_show()
    limits: dict[str, Any] = {limit: 1}
    async with a_server(replace(config, **limits)) as small:
        async with small.watching(show) as stream:
            await stream.next()
            refused = await small.client.get(f"{API}/shows/{show}/seats/stream")

        async def is_let_in() -> bool:
            async with small.client.stream("GET", f"{API}/shows/{show}/seats/stream") as response:
                return response.status_code == 200

        await until(is_let_in)

    assert (refused.status_code, problem(refused)["code"]) == (status, code)
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.alone
async def test_a_stopping_server_ends_its_streams_and_accepts_no_new_ones(
    config: Config, a_show: AShow
) -> None:
    show = await a_show()
    async with a_server(config) as stopping, stopping.watching(show) as stream:
        await stream.next()
        stopping.application.is_draining = True
        with pytest.raises(EOFError):
            await stream.next(within_s=2)
        refused = await stopping.client.get(f"{API}/shows/{show}/seats/stream")

    assert (refused.status_code, problem(refused)["code"]) == (503, "busy")


async def test_a_viewer_that_reads_nothing_is_disconnected_and_can_resume(
    config: Config, a_show: AShow, app: App
) -> None:
    """It finds a whole end to what it was sent, and comes back; others receive everything meanwhile."""
    show = await a_show(seats=20)
    async with a_server(replace(config, viewer_backlog_bytes_max=20_000)) as narrow:
        cut_before = await narrow.metric("viewers_cut_total")

        async def is_cut() -> bool:
            await many_changes(app, show)
            return await narrow.metric("viewers_cut_total") > cut_before

        async with narrow.watching(show) as stream, asleep(narrow.url, show) as sleeper:
            first = await stream.next()
            await until(is_cut, within_s=60)
            after = await stream.next()
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                received += await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sleeper, 65_536), 30)
        last_id = max(int(line[4:]) for line in received.split(b"\n") if line.startswith(b"id: "))
        async with narrow.watching(show, **{"Last-Event-ID": str(last_id)}) as stream:
            back = await stream.next()

    assert after.id == first.id + 1
    assert back.id > last_id


@asynccontextmanager
async def asleep(url: str, show_id: int) -> AsyncIterator[socket.socket]:
    """A viewer that reads nothing, with as little room as the system allows for what it does not read."""
    with socket.socket() as sleeper:
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sleeper.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        sleeper.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sleeper, ("127.0.0.1", int(url.rsplit(":", 1)[1])))
        request = f"GET {API}/shows/{show_id}/seats/stream HTTP/1.1\r\nHost: here\r\n\r\n"
        await loop.sock_sendall(sleeper, request.encode())
        yield sleeper


async def many_changes(app: App, show_id: int) -> None:
    pool = Pool(app.claims, app.redis, show_id)
    for _ in range(100):
        claim = await pool.claim(*range(20), limit=20)
        await pool.settle("release", claim)


async def test_listings_count_what_the_map_shows_within_five_seconds(
    server: Server, a_show: AShow, alice: Fan, app: App
) -> None:
    show = await a_show(seats=20)
    event = (await server.client.get(f"{API}/shows/{show}")).json()["event"]["id"]
    await app.postgres.execute("UPDATE event SET featured = id = $1", event)

    async def left(page: str) -> set[int]:
        events = (await server.client.get(f"{API}{page}")).json()["events"]
        return {card["availability"]["available"] for found in events for card in found["shows"]}

    before = await left("/events/featured")
    await alice.holds(show, "A-1", "A-2")

    async def is_counted() -> bool:
        return await left("/events/featured") == {18}

    await until(is_counted, within_s=5)
    assert before == {20}
