"""The account page and the header of shared pages, in a real browser (R31)."""

import re
import secrets
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from holdfast.accounts import NewAccount
from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office

PASSWORD = "correct horse battery staple"


async def signs_in(house: Office, page: Page, role: Role = Role.FAN) -> str:
    email = f"zoe-{secrets.token_hex(4)}@example.org"
    hashed = await house.app.accounts.hashed(PASSWORD)
    await house.app.accounts.add_many([NewAccount(email, "Zoë Łukasiewicz", role, hashed)])
    await page.goto("/sign-in")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url(lambda url: "/sign-in" not in url)
    return email


async def test_pages_that_all_readers_share_show_the_name_of_the_reader(
    house: Office, page: Page, newcomer: Newcomer
) -> None:
    await signs_in(house, page)
    await page.goto("/")
    await expect(page.locator(".who-name")).to_have_text("Zoë")
    await expect(page.locator(".who-am-i")).to_have_attribute("title", "You're signed in as Zoë Łukasiewicz.")

    other = await newcomer()
    await other.goto("/")
    await expect(other.locator(".who-name")).to_have_text("Sign in")
    await page.goto("/account")
    await page.get_by_role("button", name="Sign out").first.click()
    await expect(page.locator(".who-name")).to_have_text("Sign in")


async def test_headings_keep_clear_of_what_follows(phone: Page) -> None:
    below = (
        """([h1]) => h1.nextElementSibling.getBoundingClientRect().top - h1.getBoundingClientRect().bottom"""
    )
    for path in ("/sign-in", "/sign-up", "/no-such-page"):
        await phone.goto(path)

        assert await phone.locator("main h1").evaluate_all(below) > 8, path


async def test_the_account_page_is_accessible_and_fits_a_phone(
    house: Office, phone: Page, axe: Callable[[Page], Awaitable[None]]
) -> None:
    await signs_in(house, phone, Role.ORGANISER)
    await expect(phone).to_have_url(re.compile(rf"{house.url}/desk/\d+"))
    await axe(phone)
    await phone.goto("/account")
    await phone.get_by_text("Delete your account").click()
    await axe(phone)
    await phone.emulate_media(color_scheme="dark")
    await axe(phone)
    width = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert await phone.evaluate(width)
