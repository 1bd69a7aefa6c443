"""Sign-in with a service that is another site to a real browser: its rules for cookies apply (R31)."""

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, expect

from holdfast.accounts import NewAccount
from holdfast.app import App
from holdfast.config import Config
from tests.conftest import served
from tests.fakes.oidc_provider_process import OidcProvider, oidc_provider
from tests.support.browser_session import a_site
from tools.browser import PHONE

PASSWORD = "correct horse battery staple"


@pytest.fixture
async def acme() -> AsyncIterator[OidcProvider]:
    async with oidc_provider() as running:
        yield running


@pytest.fixture
async def phone(browser: Browser, config: Config, acme: OidcProvider) -> AsyncIterator[Page]:
    """On a box office at 127.0.0.1; the service is at localhost, which is another site to a browser."""
    service = {"id": "acme", "name": "Acme", "client_id": "box", "client_secret": "s"}
    service["issuer"] = f"http://localhost:{acme.port}"
    async with a_site(replace(config, oidc_providers=json.dumps([service]))) as application:
        async with served(application) as url:
            context = await browser.new_context(base_url=url, reduced_motion="reduce", **PHONE)
            yield await context.new_page()
            await context.close()


async def test_a_new_person_and_one_with_an_account(
    app: App, acme: OidcProvider, phone: Page, axe: Callable[[Page], Awaitable[None]]
) -> None:
    email = f"ann-{secrets.token_hex(4)}@example.org"
    await acme.knows("ann", email=email, email_verified=True, name="Ann Otter")
    await acme.knows("zoe", email=f"zoe-{email}", email_verified=True)
    hashed = await app.accounts.hashed(PASSWORD)
    await app.accounts.add_many([NewAccount(f"zoe-{email}", "Zoë", password_hash=hashed)])

    await phone.goto("/sign-in")
    await axe(phone)
    await phone.get_by_role("link", name="Sign in with Acme").click()
    await agrees(phone, "ann")
    await phone.goto("/account")
    await expect(phone.get_by_text("Ann Otter").first).to_be_visible()
    await axe(phone)
    await phone.get_by_role("button", name="Disconnect Acme").click()
    await expect(phone.get_by_text("The service is disconnected.")).to_be_visible()
    await phone.get_by_role("button", name="Sign out").first.click()

    await phone.goto("/sign-in/with/acme")
    await agrees(phone, "zoe")
    await expect(phone.get_by_role("heading", name="You already have an account")).to_be_visible()
    await axe(phone)
    await phone.get_by_role("link", name="Sign in", exact=True).last.click()
    await phone.fill("#email", f"zoe-{email}")
    await phone.fill("#password", PASSWORD)
    await phone.keyboard.press("Enter")
    await phone.get_by_role("button", name="Connect Acme").click()
    await agrees(phone, "zoe")
    await expect(phone.get_by_text("The service is connected.")).to_be_visible()


async def agrees(phone: Page, sub: str) -> None:
    """On the page of the service."""
    await phone.wait_for_url("http://localhost:*/**")
    await phone.fill("input[name=sub]", sub)
    await phone.get_by_role("button", name="Authorize").click()
    await phone.wait_for_url("http://127.0.0.1:*/**")
