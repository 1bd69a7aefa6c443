"""Passkeys in Chromium, with its virtual authenticator (R31)."""

import secrets
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from holdfast.accounts import NewAccount
from tests.support.box_office import Office

PASSWORD = "correct horse battery staple"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


async def signs_in(house: Office, page: Page, base: str) -> str:
    email = f"zoe-{secrets.token_hex(4)}@example.org"
    hashed = await house.app.accounts.hashed(PASSWORD)
    await house.app.accounts.add_many([NewAccount(email, "Zoë Łukasiewicz", password_hash=hashed)])
    await page.goto(f"{base}/sign-in?back=/account/security")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{base}/account/security")
    return email


async def test_a_passkey_is_added_and_signs_in_without_an_address(
    house: Office, phone: Page, axe: Callable[[Page], Awaitable[None]]
) -> None:
    # Browsers use passkeys for names, not for addresses such as 127.0.0.1.
    base = house.url.replace("127.0.0.1", "localhost")
    devtools = await phone.context.new_cdp_session(phone)
    await devtools.send("WebAuthn.enable")
    await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    await signs_in(house, phone, base)
    await axe(phone)

    await phone.fill("#name", "My phone")
    await phone.fill("#passkey-proof", "a guess")
    await phone.get_by_role("button", name="Add a passkey").click()
    await expect(phone.locator("#passkey-wrong")).to_have_text("The password is wrong. Please try again.")
    await phone.fill("#name", "My phone")
    await phone.fill("#passkey-proof", PASSWORD)
    await phone.get_by_role("button", name="Add a passkey").click()
    await expect(phone.locator(".codes li")).to_have_count(10)
    await axe(phone)
    assert await phone.evaluate(FITS)
    await phone.get_by_role("link", name="I've saved the codes").click()
    await expect(phone.locator(".passkey b")).to_have_text("My phone")

    await phone.goto(f"{base}/account")
    await phone.get_by_role("button", name="Sign out").first.click()
    await phone.goto(f"{base}/sign-in?back=/account/security")
    await axe(phone)
    await phone.get_by_role("button", name="Sign in with a passkey").click()
    await expect(phone).to_have_url(f"{base}/account/security")
    await expect(phone.locator(".passkey .fine")).to_contain_text("Last used")
    await axe(phone)
    assert await phone.evaluate(FITS)


async def test_a_passkey_is_the_second_step_of_a_password(
    house: Office, page: Page, axe: Callable[[Page], Awaitable[None]]
) -> None:
    base = house.url.replace("127.0.0.1", "localhost")
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    email = await signs_in(house, page, base)
    await page.fill("#totp-proof", PASSWORD)
    await page.get_by_role("button", name="Set up an authenticator app").click()
    await expect(page.locator("img.qr")).to_be_visible()
    await axe(page)
    await page.goto(f"{base}/account/security")
    await page.fill("#name", "Key ring")
    await page.fill("#passkey-proof", PASSWORD)
    await page.get_by_role("button", name="Add a passkey").click()
    await page.get_by_role("link", name="I've saved the codes").click()

    await page.context.clear_cookies()
    await page.goto(f"{base}/sign-in?back=/account")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("One more step")
    await axe(page)
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page).to_have_url(f"{base}/account")
