"""A sandbox in this process, the adapters that reach it, and a payer who uses its page.

Every adapter passes the same contract (gateway_contract.py); this module sets each of them up.
"""

import base64
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from holdfast.config import Config
from holdfast.payments.gateway import Charge, ChargeOrder, Gateway
from holdfast.payments.gateways import open_gateway
from holdfast.sandbox.process import SandboxSetup
from holdfast.sandbox.webhook import api_key
from tests.conftest import served
from tests.fakes.gateway_server import open_fake_gateways

SECRET = "a secret of this test"
TIMEOUT_MS = 1500  # long enough for every answer that comes, on a busy machine too


@dataclass(frozen=True)
class Counter:
    """A gateway, and what only its payer and its owner can do there."""

    gateway: Gateway
    url: str  # of the sandbox
    page_of: Callable[[str, Charge], Awaitable[str]]  # where the payer goes with a charge
    method: str = "tok_ok"  # empty: there are no tokens, buyers pay on the page

    def order(self, method: str | None = None, *, amount_minor: int = 4500, key: str = "") -> ChargeOrder:
        return ChargeOrder(
            key=key or f"pay-{secrets.token_hex(8)}",
            amount_minor=amount_minor,
            currency="EUR",
            method=self.method if method is None else method,
            description="2 seats, Hamlet",
            return_url="https://shop.example/back",
        )

    async def choose(self, charge: Charge, choice: str) -> None:
        """As the payer, on the page."""
        async with aiohttp.ClientSession() as session:
            page = await self.page_of(self.url, charge)
            async with session.post(page, data={"choice": choice}, allow_redirects=False) as answer:
                assert answer.status == 303, await answer.text()

    async def at_sandbox(self, method: str, path: str, body: Any = None) -> Any:
        """Its own API: what only the payer's bank can do."""
        headers = {"Authorization": f"Bearer {api_key(SECRET)}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, self.url + path, json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def dispute(self, key: str, state: str) -> None:
        (payment,) = (await self.at_sandbox("GET", f"/v1/payments?reference={key}"))["payments"]
        await self.at_sandbox("POST", f"/v1/payments/{payment['id']}/dispute", {"state": state})

    async def paid(self, order: ChargeOrder) -> Charge:
        """A payment that was made, however one pays here."""
        charge = await self.gateway.charge(order)
        if not order.method:
            await self.choose(charge, "pay")
            charge = await self.gateway.look_up(key=order.key, reference=charge.reference)
        return charge


@asynccontextmanager
async def a_sandbox(folder: Path, notify_url: str = "") -> AsyncIterator[str]:
    """Its address."""
    setup = SandboxSetup(folder=folder, secret=SECRET, notify_url=notify_url)
    async with open_fake_gateways(setup) as application, served(application) as url:
        yield url


def settings(name: str, url: str, **changes: Any) -> Config:
    """Each adapter pointed at the same sandbox."""
    common = {"gateway": name, "gateway_timeout_ms": TIMEOUT_MS, "gateway_url": url, "gateway_secret": SECRET}
    stripe = {"stripe_secret_key": api_key(SECRET), "stripe_webhook_secrets": SECRET}
    stripe |= {"stripe_api_url": f"{url}/stripe"}
    razorpay = {"razorpay_key_id": "rzp_test_1", "razorpay_key_secret": api_key(SECRET)}
    razorpay |= {"razorpay_api_url": f"{url}/razorpay", "razorpay_webhook_secrets": SECRET}
    return Config(**{**common, **stripe, **razorpay, **changes})


async def _action(url: str, charge: Charge) -> str:
    assert charge.action_url is not None
    return charge.action_url


async def _stripes(url: str, charge: Charge) -> str:
    """3-D Secure has an address. Otherwise the browser has a secret; our page stands for Stripe's form."""
    assert charge.client_secret is not None
    return charge.action_url or f"{url}/pay/{charge.client_secret.partition('_secret_')[2]}"


async def _razorpays(url: str, charge: Charge) -> str:
    auth = base64.b64encode(f"rzp_test_1:{api_key(SECRET)}".encode()).decode()
    async with aiohttp.ClientSession(headers={"Authorization": f"Basic {auth}"}) as session:
        async with session.get(f"{url}/razorpay/v1/orders/{charge.client_secret}") as answer:
            page: str = (await answer.json())["sandbox_page"]
            return page


PAGES = {"sandbox": _action, "stripe": _stripes, "razorpay": _razorpays}


@asynccontextmanager
async def a_counter(name: str, url: str, **changes: Any) -> AsyncIterator[Counter]:
    gateway = open_gateway(settings(name, url, **changes))
    try:
        yield Counter(gateway, url, PAGES[name], "" if name == "razorpay" else "tok_ok")
    finally:
        await gateway.close()
