"""The panel of the show's page: what is chosen, what it costs, and the button that reserves it."""

from playwright.async_api import Page, Route, expect

from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, opened, tap


async def test_the_button_works_again_after_a_refusal(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    await tap(page, 14)
    button = page.locator("[data-hold]")

    async def no_network(route: Route) -> None:
        await route.abort()

    await page.route("**/hold", no_network)
    await button.click()
    await expect(page.locator("#selection .notice")).to_contain_text("No connection")

    await expect(button).to_have_text("Reserve 2 seats")
    await expect(button).not_to_have_attribute("aria-busy", "true")
    await expect(button).to_have_attribute("aria-disabled", "false")
    await page.unroute("**/hold")
    await button.click()
    await page.wait_for_url(BOOKING)
