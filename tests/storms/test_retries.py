"""A request whose connection was dropped is sent again with its key: one effect, one answer (R16)."""

import asyncio
import json
import secrets
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from holdfast.audit import audit
from holdfast.catalogue import OrphanRule
from holdfast.web.caller import Role
from tests.support.box_office import Office
from tests.support.organiser import a_city
from tests.support.shows import API, a_layout, fans

AT_ONCE = 50
JSON = {"Content-Type": "application/json"}
RESET = struct.pack("ii", 1, 0)  # close at once, whatever is still under way


@dataclass(frozen=True)
class Request:
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    count: str  # how many effects there are, in SQL
    counted: Any
    says: str  # part of the answer
    other_body: dict[str, Any]  # an extension has none

    def raw(self) -> bytes:
        body = json.dumps(self.body).encode()
        head = {"Host": "storm", **self.headers, **JSON, "Content-Length": len(body)}
        lines = [f"POST {API}{self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


BOOKINGS = "SELECT count(*) FROM booking WHERE owner_id = $1 AND state IN ('held', 'confirmed')"
ACCOUNTS = "SELECT count(*) FROM account WHERE contact_email = $1"
CITIES = "SELECT count(*) FROM city WHERE slug = $1"


async def a_hold(stage: Office, wish: dict[str, Any], says: str, **terms: Any) -> Request:
    (fan,) = await stage.fans(1)
    show = await stage.a_show(layout=a_layout(200, row=8, standing=50), **terms)
    other = {"seats": ["J-8"]}
    return Request(f"/shows/{show}/holds", wish, fan.headers, BOOKINGS, fan.account_id, says, other)


async def an_account(stage: Office) -> Request:
    email = f"{secrets.token_hex(8)}@example.org"
    body = {"email": email, "password": "correct horse battery", "name": "Ann"}
    return Request("/accounts", body, {}, ACCOUNTS, email, email, {**body, "name": "Bob"})


async def an_extension(stage: Office) -> Request:
    (fan,) = await stage.fans(1)
    held = await fan.holds(await stage.a_show(seats=20), "A-1")
    booking_id = held.json()["booking_id"]
    return Request(
        f"/bookings/{booking_id}/extend", {}, fan.headers, BOOKINGS, fan.account_id, "expires_at", {}
    )


async def a_new_city(stage: Office) -> Request:
    (admin,) = await fans(stage.app, stage.api, 1, Role.ADMIN)
    city = a_city()
    other = {**city, "name": "Elsewhere"}
    return Request("/admin/cities", city, admin.headers, CITIES, city["slug"], city["slug"], other)


REQUESTS: dict[str, Callable[[Office], Awaitable[Request]]] = {
    "seats by name": lambda stage: a_hold(stage, {"seats": ["C-3", "C-4"]}, '"together":true'),
    "seats that leave a single one": lambda stage: a_hold(
        stage, {"seats": ["C-2", "C-3"]}, '"better":["C-1","C-2"]', orphan_rule=OrphanRule.WARN
    ),
    "best available": lambda stage: a_hold(stage, {"best": {"count": 3}}, '"why":"nearest'),
    "best available, split": lambda stage: a_hold(
        stage, {"best": {"count": 10, "together": False}}, '"together":false'
    ),
    "standing places": lambda stage: a_hold(stage, {"places": {"area": "Floor", "count": 2}}, "Floor-1"),
    "a free show": lambda stage: a_hold(stage, {"seats": ["B-1"]}, '"state":"confirmed"', price_minor=0),
    "an account": an_account,
    "an extension": an_extension,
    "a city": a_new_city,
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_retry_after_a_dropped_connection_has_one_effect_and_one_answer(
    stage: Office, name: str
) -> None:
    request = with_a_key(await REQUESTS[name](stage))

    answers = await asyncio.gather(*(dropped_and_sent_again(stage, request, n) for n in range(AT_ONCE)))

    contents = {(answer.status_code, answer.content) for answer in answers}
    assert len(contents) == 1, contents
    assert answers[0].status_code in (200, 201), answers[0].text
    assert await stage.app.postgres.fetchval(request.count, request.counted) == 1


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_retry_gets_the_answer_of_the_first_try(stage: Office, name: str) -> None:
    request = with_a_key(await REQUESTS[name](stage))
    first = await sent(stage, request, request.body)

    answers = await asyncio.gather(*(dropped_and_sent_again(stage, request, n) for n in range(AT_ONCE)))

    assert request.says in first.text
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (first.status_code, first.content)
    }
    assert await stage.app.postgres.fetchval(request.count, request.counted) == 1


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "an extension"])
async def test_a_key_is_good_for_one_body(stage: Office, name: str) -> None:
    request = with_a_key(await REQUESTS[name](stage))
    await sent(stage, request, request.body)

    answers = await asyncio.gather(*(sent(stage, request, request.other_body) for _ in range(AT_ONCE)))

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(422, "key_reused")}
    assert await stage.app.postgres.fetchval(request.count, request.counted) == 1
    found = await audit(stage.app.postgres, stage.app.bookings, stage.app.claims)
    assert found.total == 0, found.violations


def with_a_key(request: Request) -> Request:
    return replace(request, headers={**request.headers, "Idempotency-Key": secrets.token_hex(8)})


async def dropped_and_sent_again(stage: Office, request: Request, place: int) -> httpx2.Response:
    await dropped(stage, request.raw(), after_s=place % 10 / 1000)
    return await sent(stage, request, request.body)


async def dropped(stage: Office, raw: bytes, after_s: float) -> None:
    """Send it, and hang up without waiting: sometimes before it was read, sometimes while it is worked on."""
    address = urlsplit(stage.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(raw)
    await writer.drain()
    await asyncio.sleep(after_s)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def sent(stage: Office, request: Request, body: dict[str, Any]) -> httpx2.Response:
    """Byte for byte the request that was dropped."""
    return await stage.api.post(
        API + request.path, content=json.dumps(body).encode(), headers={**request.headers, **JSON}
    )
