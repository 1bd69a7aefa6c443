"""The refund page in a real browser: what is ticked, what the button says and what is refunded are one."""

import asyncio
import re

from playwright.async_api import Page, Route, expect

from tests.support.box_office import Office
from tests.support.browser_checkout import has_bought


async def test_unticking_a_ticket_requotes_and_refunds_exactly_what_is_ticked(
    page: Page, house: Office
) -> None:
    path = await has_bought(page, await house.a_show(seats=10, price_minor=28_000), "A-1", "A-2")
    await page.goto(f"{path}/cancel")
    red = page.locator("#refund .pay")
    await expect(red).to_have_text(re.compile(r"Refund 2 tickets \(A-1, A-2\), get €560"))

    await page.uncheck("input[value=A-1]")

    await expect(red).to_have_text(re.compile(r"Refund 1 ticket \(A-2\), get €280"))
    await red.click()
    await page.wait_for_url("**/bookings/*?notice=reduced")
    await expect(page.locator(".qr")).to_have_count(1)
    await expect(page.locator(".ticket:has(.qr) .reference")).to_have_text("A-1")


async def test_the_button_cannot_be_pressed_while_its_quote_is_of_other_tickets(
    page: Page, house: Office
) -> None:
    path = await has_bought(page, await house.a_show(seats=10), "A-1", "A-2")
    await page.goto(f"{path}/cancel")
    red, may_answer = page.locator("#refund .pay"), asyncio.Event()
    await expect(red).to_be_enabled()

    async def answer_later(route: Route) -> None:
        await may_answer.wait()
        await route.continue_()

    await page.route("**/cancel?*", answer_later)
    await page.uncheck("input[value=A-1]")
    await expect(red).to_be_disabled()
    may_answer.set()
    await expect(red).to_be_enabled()
    await expect(red).to_contain_text("Refund 1 ticket (A-2)")

    await page.uncheck("input[value=A-2]")
    await expect(red).to_have_count(0)
    await expect(page.get_by_text("Choose at least one ticket.")).to_be_visible()


async def test_without_a_network_the_page_says_so_and_refunds_nothing(page: Page, house: Office) -> None:
    path = await has_bought(page, await house.a_show(seats=10), "A-1", "A-2")
    await page.goto(f"{path}/cancel")
    red = page.locator("#refund .pay")
    await expect(red).to_be_enabled()
    await page.context.set_offline(True)

    await page.uncheck("input[value=A-1]")

    await expect(red).to_be_disabled()
    await expect(page.get_by_role("alert")).to_contain_text("No connection")
    await page.context.set_offline(False)
    await expect(red).to_contain_text("Refund 1 ticket (A-2)")
    await expect(red).to_be_enabled()
