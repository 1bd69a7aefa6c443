"""Changing prices on the show page; a buyer pays the price that was shown."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from tests.support.browser_session import Visitor
from tests.support.organiser import Organiser, Stage, a_stage, show_of
from tests.support.price_plans import gold_rules, in_hours, set_rules

THEN = {
    "en": ("then ₹500", "Once you reserve, your price is fixed."),
    "de": ("danach 500 ₹", "Mit der Reservierung ist dein Preis fest."),
    "hi": ("फिर ₹500", "रिज़र्व करते ही आपकी कीमत पक्की हो जाती है।"),
}


@pytest.fixture
async def show(app: App, api: httpx2.AsyncClient, organiser: Organiser) -> dict[str, Any]:
    stage: Stage = await a_stage(app, api, organiser)
    return await organiser.create("/shows", show_of(stage))


@pytest.mark.parametrize("language", ["en", "de", "hi"])
async def test_the_page_shows_when_a_price_ends_and_the_next_price(
    ann: Visitor, organiser: Organiser, show: dict[str, Any], language: str
) -> None:
    await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": -10_000}]))
    ann.client.headers["accept-language"] = language

    await ann.goes(f"/shows/{show['id']}")

    then, promise = THEN[language]
    assert ann.says(then)
    assert ann.says("IST")
    assert ann.says(promise)


async def test_a_price_that_follows_demand_alone_may_change_and_no_date_is_made_up(
    ann: Visitor, organiser: Organiser, show: dict[str, Any]
) -> None:
    await set_rules(organiser, show, gold_rules(demand=[{"sold_percent": 25, "change_minor": 8_000}]))

    await ann.goes(f"/shows/{show['id']}")

    assert ann.text.count("may change") == 1, "of two categories one moves"
    assert not ann.says("then ₹")


async def test_fixed_prices_say_nothing_of_the_sort(ann: Visitor, show: dict[str, Any]) -> None:
    await ann.goes(f"/shows/{show['id']}")

    assert not ann.says("Prices can change as seats sell")
    assert "band-soon" not in ann.text


async def test_another_price_than_was_shown_is_not_agreed_to(ann: Visitor, show: dict[str, Any]) -> None:
    path, form = f"/shows/{show['id']}/hold", {"seats": ["A-1", "A-2"]}
    wanted = {"accept": "application/json"}

    refused = await ann.client.post(path, data={**form, "expected_total_minor": "80000"}, headers=wanted)
    held = await ann.client.post(path, data={**form, "expected_total_minor": "100000"}, headers=wanted)

    refusal = refused.json()
    assert (refused.status_code, refusal["code"], refusal["total_minor"]) == (409, "price_changed", 100_000)
    assert held.json()["go"].startswith("/bookings/")


@pytest.mark.parametrize("nonsense", ["", "-1", "1.5", "many", "9" * 30])
async def test_an_invalid_expected_price_is_refused(
    nonsense: str, ann: Visitor, a_show: Callable[..., Any]
) -> None:
    form = {"seats": "A-1", "expected_total_minor": nonsense}
    answer = await ann.client.post(f"/shows/{await a_show(seats=10)}/hold", data=form)
    assert answer.status_code == 422
