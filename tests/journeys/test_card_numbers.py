"""No route accepts a card number, and no log contains one."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.routes import ROUTES
from holdfast.web.caller import Role
from holdfast.web.card_number import has_card_number
from holdfast.web.routing import Route
from tests.support import shows as cast
from tests.support.browser_session import LIKE_A_BROWSER
from tests.support.cli_process import free_port
from tests.support.opened import engines_of
from tests.support.shows import Fan, problem
from tests.support.wait import until

CARD = "4111111111111111"
WRITTEN = (CARD, "4111 1111 1111 1111", "4111-1111-1111-1111")
TAKING = [route for route in ROUTES if route.body is not None and not route.long_numbers]
ASKING = [route for route in ROUTES if route.query is not None and route.call is not None]


def address(route: Route, who: Fan) -> str:
    """An organiser owns the organisation with the id of their account."""
    path = route.full_path.replace("{organisation:int}", str(who.account_id))
    return re.sub(r"\{\w+(:int)?\}", "7", path)


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture
async def account_per_role(app: App, api: httpx2.AsyncClient) -> dict[Role | None, Fan]:
    """One account of every role."""
    known: dict[Role | None, Fan] = {None: (await cast.fans(app, api, 1))[0]}
    for role in Role:
        known[role] = (await cast.fans(app, api, 1, role))[0]
    return known


def test_only_layouts_and_pictures_are_not_searched() -> None:
    assert {route.path for route in ROUTES if route.long_numbers} == {
        "/admin/events/{event:int}/poster",
        "/admin/layouts",
        "/admin/layouts/import",
    }
    assert len(TAKING) > 10


@pytest.mark.parametrize("route", TAKING, ids=name)
async def test_every_route_with_a_body_refuses_a_card_number(
    account_per_role: dict[Role | None, Fan], api: httpx2.AsyncClient, route: Route
) -> None:
    who = account_per_role[route.role]
    for card in WRITTEN:
        for body in ({"note": f"my card: {card}"}, {card: 1}, [[{"x": card}]]):
            answer = await api.request(route.method, address(route, who), json=body, headers=who.headers)
            assert (answer.status_code, problem(answer)["code"]) == (422, "card_number")
            assert CARD not in answer.text


@pytest.mark.parametrize("route", ASKING, ids=name)
async def test_every_route_with_a_query_refuses_a_card_number(
    account_per_role: dict[Role | None, Fan], api: httpx2.AsyncClient, route: Route
) -> None:
    who = account_per_role[route.role]
    for card in WRITTEN:
        answer = await api.request(route.method, address(route, who), params={"x": card}, headers=who.headers)
        assert (answer.status_code, problem(answer)["code"]) == (422, "card_number"), answer.text


async def test_a_layout_may_have_any_coordinates(app: App, api: httpx2.AsyncClient) -> None:
    (admin,) = await cast.fans(app, api, 1, Role.ADMIN)
    body = f'{{"name": "Hall", "focal": [{CARD}, 0]}}'

    answer = await api.post("/api/v1/admin/layouts", content=body, headers=admin.headers)

    assert problem(answer)["code"] != "card_number"


@asynccontextmanager
async def a_server(config: Config, log: Path) -> AsyncIterator[str]:
    """A web process of its own that logs every request."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    env |= {
        **engines_of(config),
        "HOLDFAST_GATEWAY": "sandbox",
        "HOLDFAST_GATEWAY_URL": config.gateway_url,
        "HOLDFAST_GATEWAY_SECRET": config.gateway_secret,
        "HOLDFAST_ACCESS_LOG": "1",
    }
    ready, port = log.with_suffix(".ready"), free_port()
    words = ("web-worker", "--host", "127.0.0.1", "--port", str(port), "--ready", str(ready))
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", *words), env=env, stdout=output, stderr=output
        )
        try:
            await until(
                lambda: asyncio.sleep(0, ready.exists() or process.returncode is not None), within_s=30
            )
            assert process.returncode is None, f"the server ended: see {log}"
            yield f"http://127.0.0.1:{port}"
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()


@pytest.mark.parametrize(
    ("name", "email", "is_refused"),
    [("4242 4242 4242 4242", "ann@example.org", True), ("Ann Otter", "4242424242424242@example.org", False)],
)
async def test_forms_are_searched_as_they_were_typed(
    api: httpx2.AsyncClient, name: str, email: str, is_refused: bool
) -> None:
    form = {"name": name, "email": email, "password": ""}

    answer = await api.post("/sign-up", data=form, headers=LIKE_A_BROWSER)

    assert answer.status_code == 422
    assert ("Card numbers are not accepted" in answer.text) == is_refused


async def test_the_log_contains_no_card_number(
    app: App, config: Config, account_per_role: dict[Role | None, Fan], tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    requests = 0
    async with a_server(config, log) as url, httpx2.AsyncClient(base_url=url) as client:
        for route in (*TAKING, *ASKING):
            who = account_per_role[route.role]
            headers = {**who.headers, "X-Request-Id": CARD}
            await client.request(
                route.method, address(route, who), params={"x": CARD}, json={"x": CARD}, headers=headers
            )
            requests += 1
        for path in (f"/bookings/{CARD}", f"/shows/{CARD}", f"/problems/{CARD}", f"/{CARD}"):
            await client.get(f"/api/v1{path}", headers=account_per_role[Role.FAN].headers)
            requests += 1

    text = log.read_text()
    assert text.count('"event":"request"') >= requests
    assert "[card number]" in text
    lines = [json.loads(line) for line in text.splitlines() if '"event":"request"' in line]
    assert {line["client"] for line in lines} == {"127.0.0.1"}
    assert account_per_role[Role.FAN].account_id in {line.get("account_id") for line in lines}
    assert [line for line in text.splitlines() if has_card_number(line)] == []
