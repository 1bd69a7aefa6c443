"""deploy/nginx.conf and waiting rooms: one status for everybody, private joins, and the stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support.nginx_front import Behind, fronted
from tests.support.opened import asgi_app
from tests.support.shows import API, Fan
from tests.support.waiting_room import a_room

PLENTY = {"browse": 100_000, "buy": 100_000, "holds": 100_000}


@pytest.fixture(scope="module")
async def behind(config: Config) -> AsyncIterator[Behind]:
    application = asgi_app(config)
    async with started(application):
        yield Behind(application)


@pytest.fixture(scope="module")
async def nginx(
    behind: Behind, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx2.AsyncClient]:
    folder = tmp_path_factory.mktemp("nginx")
    async with behind.serving(), fronted(folder, behind.address, rates=PLENTY, per_address=1000) as client:
        yield client


async def test_the_status_of_a_waiting_room_is_cached_and_joining_it_is_not(
    nginx: httpx2.AsyncClient, behind: Behind, app: App, a_show: Any, alice: Fan, bob: Fan
) -> None:
    room = await a_room(app, await a_show())
    path, own = f"{API}/shows/{room.show_id}/queue", {"Cookie": "holdfast=secret"}

    joined = [await nginx.post(path, headers=fan.headers) for fan in (alice, bob, alice)]
    anonymous = await nginx.post(path)
    answers = await asyncio.gather(*(nginx.get(path, headers=alice.headers | own) for _ in range(50)))

    assert [answer.status_code for answer in joined] == [201, 201, 200]
    assert [answer.json()["account_id"] for answer in joined[:2]] == [alice.account_id, bob.account_id]
    assert anonymous.status_code == 401
    assert {answer.status_code for answer in answers} == {200}
    assert behind.count(path) <= 2
    assert not {"authorization", "cookie"} & behind.seen[-1].keys()
    assert "max-age=1" in answers[0].headers["cache-control"]
    assert behind.count(path, "POST") == 4


async def test_the_stream_of_a_room_comes_through(nginx: httpx2.AsyncClient, app: App, a_show: Any) -> None:
    room = await a_room(app, await a_show())

    async with nginx.stream("GET", f"{API}/shows/{room.show_id}/queue/stream") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                break

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert f'"show_id":{room.show_id}' in line
