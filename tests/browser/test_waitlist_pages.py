"""The waitlist in a real browser: sold out leads to it, an offer arrives by itself and is bought."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING
from tests.support.shows import Fan
from tests.support.wait import until

Axe = Callable[[Page], Awaitable[None]]


@pytest.fixture
async def fan_page(house: Office, newcomer: Newcomer) -> Page:
    """Signed in, with a confirmed address, on a phone by night."""
    (fan,) = await house.fans(1)
    page = await newcomer(phone=True, dark=True)
    cookie = await house.app.sessions.open_account(fan.account_id, None)
    await page.context.add_cookies([{"name": "holdfast", "value": cookie, "url": house.url}])
    return page


async def a_full_show(house: Office) -> tuple[int, Fan, str]:
    """Every seat is held by one buyer."""
    show, (buyer,) = await house.a_show(seats=4), await house.fans(1)
    held = await buyer.holds(show, "A-1", "A-2", "A-3", "A-4")
    return show, buyer, held.json()["booking_id"]


async def test_from_sold_out_to_an_offer_that_is_bought(house: Office, fan_page: Page, axe: Axe) -> None:
    show, buyer, booking = await a_full_show(house)
    page = fan_page
    await page.goto(f"/shows/{show}")
    await page.click("#sold-out a.button")
    await page.wait_for_url(f"**/shows/{show}/waitlist")
    await axe(page)
    await page.select_option("#seats", "2")
    await page.click("form[action$='/waitlist'] button")
    await expect(page.locator(".place .figure")).to_have_text("1")
    await axe(page)

    await buyer.delete(f"/bookings/{booking}")

    # The worker makes the offer; the page follows.
    await expect(page.locator("a[href^='/bookings/']")).to_be_visible()
    await axe(page)
    await page.click("a[href^='/bookings/']")
    await page.wait_for_url(BOOKING)
    await expect(page.locator(".offer")).to_contain_text("Offered to you from the waitlist until")
    await axe(page)
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")
    await page.click("button[value=pay]")
    await page.wait_for_selector(".qr")


async def test_an_offer_is_declined(house: Office, fan_page: Page) -> None:
    show, buyer, booking = await a_full_show(house)
    page = fan_page
    await page.goto(f"/shows/{show}/waitlist")
    await page.click("form[action$='/waitlist'] button")
    await expect(page.locator(".place .figure")).to_have_text("1")
    await buyer.delete(f"/bookings/{booking}")

    async def is_offered() -> bool:
        await page.reload()
        return await page.locator("a[href^='/bookings/']").count() == 1

    await until(is_offered, within_s=60)
    await page.click("a[href^='/bookings/']")
    await page.click("form[action$='/decline'] button")

    await expect(page.locator(".notice")).to_contain_text("You declined an offer.")
