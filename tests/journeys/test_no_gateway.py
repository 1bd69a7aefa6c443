"""A box office without a payment gateway: free tickets work, and nothing can have a price."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from tests.conftest import started
from tests.support import shows as cast
from tests.support.opened import asgi_app
from tests.support.organiser import a_stage, show_of, sign_in_organiser
from tests.support.shows import Fan, problem

FREE = {"Gold": 0, "Silver": 0}


@pytest.fixture(scope="module")
async def free_api(config: Config) -> AsyncIterator[httpx2.AsyncClient]:
    application = asgi_app(replace(config, gateway="none", gateway_url="", gateway_secret=""))
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://free.house") as client:
            yield client


@pytest.fixture
async def fan(app: App, free_api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, free_api, 1))[0]


async def test_a_free_booking_is_confirmed_and_can_be_given_back(app: App, fan: Fan) -> None:
    show = await cast.a_show(app, 20, price_minor=0)

    booked = (await fan.holds(show, "A-4", "A-5")).json()
    tickets = (await fan.get(f"/bookings/{booked['booking_id']}/tickets")).json()
    given_back = await fan.delete(f"/bookings/{booked['booking_id']}")

    assert booked["state"] == "confirmed"
    assert len(tickets["tickets"]) == 2
    assert given_back.json()["state"] == "refunded"


async def test_a_show_with_a_price_cannot_be_put_on_sale(app: App, free_api: httpx2.AsyncClient) -> None:
    organiser = await sign_in_organiser(app, free_api)
    stage = await a_stage(app, free_api, organiser)

    refused = await organiser.send("POST", "/shows", show_of(stage))
    made = await organiser.create("/shows", show_of(stage, prices=FREE))
    raised = await organiser.send("PATCH", f"/shows/{made['id']}", {"prices": {"Gold": 100}})
    rule = {"category": "Gold", "base_minor": 400, "floor_minor": 300, "ceiling_minor": 500}
    rules = {"currency": "INR", "rules": [rule]}
    ruled = await organiser.send("PUT", f"/shows/{made['id']}/price-rules", rules)

    assert [problem(answer)["code"] for answer in (refused, raised, ruled)] == ["no_gateway"] * 3
    assert refused.status_code == 409


async def test_a_show_that_had_a_price_before_can_still_be_cancelled(
    app: App, api: httpx2.AsyncClient, free_api: httpx2.AsyncClient
) -> None:
    organiser = await sign_in_organiser(app, api)
    stage = await a_stage(app, api, organiser)
    priced = await organiser.create("/shows", show_of(stage))
    same_organiser = replace(organiser, who=replace(organiser.who, api=free_api))

    cancelled = await same_organiser.send("PATCH", f"/shows/{priced['id']}", {"cancelled": True})

    assert cancelled.status_code == 200, cancelled.text


async def test_a_hold_with_a_price_cannot_be_paid(app: App, fan: Fan) -> None:
    show = await cast.a_show(app, 20)
    held = (await fan.holds(show, "A-1")).json()

    refused = await fan.post(f"/bookings/{held['booking_id']}/pay", {"method": "tok_ok"})

    assert (refused.status_code, problem(refused)["code"]) == (409, "no_gateway")
    assert (await fan.get(f"/bookings/{held['booking_id']}")).json()["state"] == "held"


async def test_a_webhook_for_no_gateway_is_refused(free_api: httpx2.AsyncClient) -> None:
    answers = [await free_api.post(f"/webhooks/{name}", json={}) for name in ("none", "sandbox")]

    assert [problem(answer)["code"] for answer in answers] == ["bad_webhook", "no_such_route"]
