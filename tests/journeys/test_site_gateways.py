"""The page where people pay, with gateways that have a form of their own: it alone is let in."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.sandbox.process import SandboxSetup
from tests.conftest import served
from tests.fakes.gateway_server import open_fake_gateways
from tests.support.browser_session import ANN, Visitor, a_site, a_visitor, booking_key
from tests.support.gateway_setups import PAGES, SECRET, settings


@asynccontextmanager
async def a_shop(name: str, config: Config, folder: Path) -> AsyncIterator[tuple[Visitor, str]]:
    """A visitor of a box office with that gateway, and the address of the gateway."""
    async with (
        open_fake_gateways(SandboxSetup(folder=folder, secret=SECRET)) as sandbox,
        served(sandbox) as url,
    ):
        there = settings(name, url, gateway_timeout_ms=2000)
        changes = {one: getattr(there, one) for one in vars(there) if one.startswith((name, "gateway"))}
        if name == "stripe":
            changes["stripe_publishable_key"] = "pk_test_of_the_tests"
        async with a_site(replace(config, **changes)) as site, a_visitor(site) as ann:
            yield ann, url


async def pays_there(app: App, name: str, url: str, path: str, choice: str) -> None:
    """In the gateway's own form."""
    payment = await app.payments.latest(*booking_key(path))
    assert payment is not None
    charge = Charge(answer=GatewayAnswer.UNKNOWN, client_secret=payment.client_secret)
    async with aiohttp.ClientSession() as session:
        page = await PAGES[name](url, charge)
        async with session.post(page, data={"choice": choice}, allow_redirects=False) as answer:
            assert answer.status == 303


async def test_stripes_form_is_embedded_only_where_stripe_is_the_gateway(
    app: App, config: Config, tmp_path: Path, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10)
    async with a_shop("stripe", config, tmp_path) as (ann, url):
        path = await ann.holds(show, "A-1")
        await ann.sends("/pay", **ANN)

        assert ann.at == path
        assert ann.says("How would you like to pay?")
        assert 'data-key="pk_test_of_the_tests"' in ann.text
        assert '<script src="https://js.stripe.com/v3/"' in ann.text
        assert "needs JavaScript" in ann.text
        assert "http-equiv" not in ann.text, "a reload would lose the card details being typed"
        policy = ann.headers["content-security-policy"]
        assert "script-src 'self' https://js.stripe.com;" in policy
        assert "frame-src https://js.stripe.com https://hooks.stripe.com" in policy

        await pays_there(app, "stripe", url, path, "pay")
        await ann.goes(f"{path}/return")
        assert ann.says("Your ticket")
        assert "js.stripe.com" not in ann.headers["content-security-policy"]


@pytest.mark.parametrize("choice", ["pay", "decline"])
async def test_razorpays_page_is_opened_and_left_by_a_form(
    choice: str, app: App, config: Config, tmp_path: Path, a_show: Callable[..., Any]
) -> None:
    show = await a_show(seats=10)
    async with a_shop("razorpay", config, tmp_path) as (ann, url):
        path = await ann.holds(show, "A-1")
        await ann.sends("/pay", **ANN)
        assert 'action="https://api.razorpay.com/v1/checkout/embedded"' in ann.text
        assert "form-action 'self' https://api.razorpay.com;" in ann.headers["content-security-policy"]

        await pays_there(app, "razorpay", url, path, choice)
        # By a form of theirs, from their site, without our cookie: believed in nothing, and led on.
        back = await ann.client.post(
            f"{path}/return",
            data={"razorpay_payment_id": "pay_made_up"},
            headers={"sec-fetch-site": "cross-site", "cookie": ""},
        )
        assert (back.status_code, back.headers["location"]) == (303, f"{path}/return")
        await ann.goes(f"{path}/return")

        # Razorpay lets its payers try again within one order: it is still open.
        assert ann.says("Your ticket" if choice == "pay" else "How would you like to pay?")
