"""A booking is paid through Stripe and through Razorpay: their SDKs, and our sandbox behind (R20, R23)."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.sandbox.process import SandboxSetup
from holdfast.web.asgi import Application
from tests.conftest import served, started
from tests.fakes.gateway_server import open_fake_gateways
from tests.support import shows as cast
from tests.support.gateway_setups import PAGES, SECRET, settings
from tests.support.opened import asgi_app
from tests.support.shows import Fan
from tests.support.wait import until


@asynccontextmanager
async def an_office(name: str, config: Config, folder: Path) -> AsyncIterator[tuple[str, str]]:
    """A box office with that gateway, and the gateway's address; they talk over HTTP."""
    app: list[Application] = []

    # The gateway has to know our address before we are there.
    async def late(scope: Any, receive: Any, send: Any) -> None:
        await app[0](scope, receive, send)

    async with served(late) as url:
        setup = SandboxSetup(folder=folder, secret=SECRET, notify_url=f"{url}/webhooks/{name}")
        async with open_fake_gateways(setup) as sandbox, served(sandbox) as gateway_url:
            there = settings(name, gateway_url, gateway_timeout_ms=2000)
            changes = {
                field: getattr(there, field) for field in vars(there) if field.startswith((name, "gateway"))
            }
            app.append(asgi_app(replace(config, **changes)))
            async with started(app[0]):
                yield url, gateway_url


@asynccontextmanager
async def a_fan(app: App, url: str) -> AsyncIterator[Fan]:
    async with httpx2.AsyncClient(base_url=url) as client:
        [fan] = await cast.fans(app, client, 1)
        yield fan


async def choose(name: str, gateway_url: str, page: dict[str, Any], choice: str) -> None:
    charge = Charge(
        answer=GatewayAnswer.UNKNOWN,
        action_url=page.get("action_url"),
        client_secret=page.get("client_secret"),
    )
    async with aiohttp.ClientSession() as session:
        address = await PAGES[name](gateway_url, charge)
        async with session.post(address, data={"choice": choice}, allow_redirects=False) as answer:
            assert answer.status == 303


async def is_confirmed(fan: Fan, booking: str) -> bool:
    return bool((await fan.get(f"/bookings/{booking}")).json()["state"] == "confirmed")


@pytest.mark.parametrize("name", ["stripe", "razorpay"])
async def test_a_payment_on_the_gateways_page_confirms_by_webhook(
    name: str, app: App, config: Config, a_show: Callable[..., Any], tmp_path: Path
) -> None:
    show = await a_show(seats=4)
    async with an_office(name, config, tmp_path) as (url, gateway_url), a_fan(app, url) as fan:
        booking = (await fan.holds(show, "A-1", "A-2")).json()["booking_id"]

        started = await fan.post(f"/bookings/{booking}/pay", {})
        assert started.status_code == 202, started.text
        await choose(name, gateway_url, started.json(), "pay")

        await until(lambda: is_confirmed(fan, booking))
        paid = (await fan.get(f"/bookings/{booking}/payment")).json()

    assert (paid["gateway"], paid["state"]) == (name, "confirmed")


async def test_a_token_of_stripes_is_charged_at_once_and_a_declined_one_leaves_the_hold(
    app: App, config: Config, a_show: Callable[..., Any], tmp_path: Path
) -> None:
    show = await a_show(seats=4)
    async with an_office("stripe", config, tmp_path) as (url, _), a_fan(app, url) as fan:
        booking = (await fan.holds(show, "A-1")).json()["booking_id"]

        declined = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_insufficient"})
        paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})

    assert (declined.status_code, paid.status_code) == (402, 200), (declined.text, paid.text)
    assert paid.json()["state"] == "confirmed"
