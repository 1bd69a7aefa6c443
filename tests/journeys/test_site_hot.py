"""A show that very many guests want: each solves a puzzle, or waits; buyers with an account do neither."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.web.asgi import Application
from tests.support.browser_session import Forms, Visitor, a_site, a_visitor
from tests.support.puzzle_solver import solve
from tests.support.wait import until

BITS = 8
JSON = {"accept": "application/json"}
PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="module")
async def hot_site(config: Config) -> AsyncIterator[Application]:
    """One try in a second is hot."""
    hot = replace(config, puzzle_from_holds_per_second=1, puzzle_bits=BITS, puzzle_wait_s=1)
    async with a_site(hot) as application:
        yield application


@pytest.fixture
async def fan(hot_site: Application) -> AsyncIterator[Visitor]:
    async with a_visitor(hot_site) as visitor:
        yield visitor


async def test_a_guest_solves_a_puzzle_and_it_counts_once(
    fan: Visitor, app: App, a_show: Callable[..., Any]
) -> None:
    show, form = await a_show(seats=20), {"seats": ["A-1"], "key": "k"}
    accounts = await app.postgres.fetchval("SELECT count(*) FROM account")

    refused = await fan.client.post(f"/shows/{show}/hold", data=form, headers=JSON)
    proof = solve(refused.json()["puzzle"], refused.json()["bits"])
    unmade = await app.postgres.fetchval("SELECT count(*) FROM account")
    held = await fan.client.post(f"/shows/{show}/hold", data=form | {"proof": proof}, headers=JSON)
    fan.client.cookies.clear()
    again = await fan.client.post(
        f"/shows/{show}/hold", data={"seats": ["A-5"], "proof": proof}, headers=JSON
    )

    assert (refused.status_code, refused.json()["code"]) == (429, "proof_needed")
    assert int(refused.headers["retry-after"]) == 1
    assert refused.headers["ratelimit-policy"].startswith('"proof"')
    assert unmade == accounts, "no guest is made before the proof"
    assert held.status_code == 200
    assert (again.status_code, again.json()["code"]) == (429, "proof_needed")


async def test_without_scripts_waiting_is_the_proof(fan: Visitor, a_show: Callable[..., Any]) -> None:
    """The page offers the same choice again; sent before its time it is offered once more."""
    show = await a_show(seats=20)
    answer = await fan.client.post(f"/shows/{show}/hold", data={"seats": ["A-1", "A-2"]})
    assert "Very many people want these seats" in answer.text

    async def presses_the_button() -> bool:
        form = next(form for form in Forms(answer.text).found if ("seats", "A-1") in form.fields)
        data: dict[str, list[str]] = {}
        for name, value in form.fields:
            data.setdefault(name, []).append(value)
        assert data["seats"] == ["A-1", "A-2"]
        pressed = await fan.client.post(form.action, data=data)
        return pressed.status_code == 303

    await until(presses_the_button)


async def test_an_account_needs_none(fan: Visitor, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=20)
    await fan.goes("/sign-up")
    await fan.sends("/sign-up", name="Fan", email=f"fan{show}@hot.example", password=PASSWORD)

    assert await fan.holds(show, "A-1")
