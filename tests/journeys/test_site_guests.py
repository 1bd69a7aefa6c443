"""A client that drops its cookie becomes a new guest each time; guests per address are limited."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.web.asgi import Application
from tests.support.browser_session import LIKE_A_BROWSER, SITE, a_site

GUESTS_MAX = 3
SAYS = {
    "en": "too many reservations from your network",
    "de": "Aus deinem Netzwerk kommen gerade zu viele Reservierungen",
    "hi": "आपके नेटवर्क से अभी बहुत सारे रिज़र्वेशन",
}
_addresses = count(1)


@pytest.fixture(scope="module")
async def strict(config: Config) -> AsyncIterator[Application]:
    async with a_site(replace(config, guests_per_minute_max=GUESTS_MAX)) as application:
        yield application


@asynccontextmanager
async def crowd(application: Application, address: str = "") -> AsyncIterator[httpx2.AsyncClient]:
    """Clients behind one address; they send no cookies unless a test passes one."""
    client = (address or f"198.51.100.{next(_addresses)}", 1)
    transport = httpx2.ASGITransport(application, client=client)
    async with httpx2.AsyncClient(transport=transport, base_url=SITE, headers=LIKE_A_BROWSER) as http:
        yield http


async def holds(http: httpx2.AsyncClient, show: int, seat: int, **headers: str) -> httpx2.Response:
    http.cookies.clear()
    return await http.post(f"/shows/{show}/hold", data={"seats": f"A-{seat}"}, headers=headers)


@pytest.mark.parametrize("language", ["en", "de", "hi"])
async def test_one_guest_too_many_gets_a_retry_time_and_a_way_to_continue(
    strict: Application, app: App, a_show: Callable[..., Any], language: str
) -> None:
    show = await a_show(seats=20)
    async with crowd(strict) as http:
        for seat in range(1, GUESTS_MAX + 1):
            assert (await holds(http, show, seat)).status_code == 303
        guests = await app.postgres.fetchval("SELECT count(*) FROM account")

        refused = await holds(http, show, 9, **{"accept-language": language})

        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert SAYS[language] in refused.text
        assert 'href="/sign-in?back=' in refused.text
        assert "set-cookie" not in refused.headers
        assert await app.postgres.fetchval("SELECT count(*) FROM account") == guests
        assert (await app.seatmap.newest(show)).states.count(b"H") == GUESTS_MAX


async def test_a_script_gets_the_same_refusal(strict: Application, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=20)
    async with crowd(strict) as http:
        for seat in range(1, GUESTS_MAX + 1):
            await holds(http, show, seat)

        refused = await holds(http, show, 9, accept="application/json")

        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert int(refused.headers["retry-after"]) > 0


async def test_known_guests_and_other_addresses_are_not_limited(
    strict: Application, a_show: Callable[..., Any]
) -> None:
    show, others = await a_show(seats=30), [await a_show(seats=10) for _ in range(GUESTS_MAX + 1)]
    async with crowd(strict) as http, crowd(strict) as elsewhere:
        first = await holds(http, show, 1)
        cookie = first.headers["set-cookie"].partition(";")[0]
        for other in others:
            answer = await holds(http, other, 1, cookie=cookie)
            assert answer.status_code == 303, "the same guest again and again"
        for seat in range(9, 9 + GUESTS_MAX - 1):
            await holds(http, show, seat)
        assert (await holds(http, show, 10)).status_code == 429

        answer = await elsewhere.post(f"/shows/{show}/hold", data={"seats": "B-1"})
        assert answer.status_code == 303


async def test_a_whole_ipv6_network_counts_as_one_address(
    strict: Application, a_show: Callable[..., Any]
) -> None:
    show, statuses = await a_show(seats=20), []
    for seat in range(1, GUESTS_MAX + 2):
        async with crowd(strict, f"2001:db8:7::{seat:x}") as http:
            statuses.append((await holds(http, show, seat)).status_code)

    assert statuses == [303] * GUESTS_MAX + [429]


async def test_a_refused_visitor_is_the_same_guest_at_the_next_try(
    strict: Application, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=20)
    async with crowd(strict) as http, crowd(strict) as rival:
        await rival.post(f"/shows/{show}/hold", data={"seats": "A-1"})

        statuses = [
            (await http.post(f"/shows/{show}/hold", data={"seats": "A-1"})).status_code
            for _ in range(GUESTS_MAX + 2)
        ]

        assert statuses == [409] * (GUESTS_MAX + 2), "never 429: the cookie came with the first refusal"
        assert (await http.post(f"/shows/{show}/hold", data={"seats": "A-3"})).status_code == 303
