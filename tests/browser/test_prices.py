"""A price that changes while a buyer chooses: the page says so and needs a new confirmation."""

from playwright.async_api import Page, expect

from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, expect_announcement, opened, picked, tap
from tests.support.organiser import a_stage, show_of, sign_in_organiser
from tests.support.price_plans import gold_rules, in_hours, set_rules
from tests.support.wait import until

DEARER = "from ₹1,000 to ₹1,400"


async def test_a_changed_price_must_be_confirmed_by_the_buyer(house: Office, page: Page) -> None:
    organiser = await sign_in_organiser(house.app, house.api)
    show = await organiser.create("/shows", show_of(await a_stage(house.app, house.api, organiser)))
    await opened(page, show["id"])
    await tap(page, 2)
    await expect(picked(page)).to_have_count(2)
    await expect(page.locator("#selection .sum strong")).to_have_text("₹1,000")
    await set_rules(organiser, show, gold_rules(early=[{"until": in_hours(24), "change_minor": 20_000}]))
    await until(lambda: _costs(house, show["id"], 70_000), within_s=15)

    await page.locator("[data-hold]").click()

    await expect(page.locator("#selection .notice")).to_contain_text(DEARER)
    await expect_announcement(page, DEARER)
    (rival,) = await house.fans(1)
    await rival.holds(show["id"], "A-5")  # beside the choice
    await expect(page.locator('g.seat[data-seat="4"]')).to_have_attribute("data-state", "H")
    await expect(page.locator("#selection .notice")).to_contain_text(DEARER)
    await expect(page.locator("#selection .sum strong")).to_have_text("₹1,400")
    await expect(page.locator(".band strong").first).to_have_text("₹700")
    await expect(picked(page)).to_have_count(2)
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)
    await expect(page.locator("button.pay")).to_contain_text("₹1,400")


async def _costs(house: Office, show: int, price_minor: int) -> bool:
    show_page = (await house.api.get(f"/api/v1/shows/{show}")).json()
    return bool(show_page["prices"][0]["price_minor"] == price_minor)
