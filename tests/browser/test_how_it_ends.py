"""Time runs out on the payment page: the booking page shows the real state, whatever the payer does."""

from playwright.async_api import Page, expect

from tests.support.box_office import Office
from tests.support.browser_checkout import begins_to_pay, charges, holds, is_given_up, pays


async def test_declining_after_the_deadline_charges_nothing_and_seats_can_be_held_again(
    page: Page, house: Office
) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    await begins_to_pay(page)
    await is_given_up(house, path)

    await page.click("button[value=decline]")
    await page.wait_for_url("**/bookings/**")

    await expect(page.get_by_text("The seats are back on sale. You haven't been charged.")).to_be_visible()
    await page.click("text=Get the same seats again")
    await page.wait_for_url(lambda url: not url.endswith(path))
    await pays(page)
    await expect(page.locator(".qr")).to_have_count(1)


async def test_a_late_payment_gets_the_seats_if_they_are_still_free(page: Page, house: Office) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    await begins_to_pay(page)
    await is_given_up(house, path)

    await page.click("button[value=pay]")
    await page.wait_for_url("**/bookings/**")

    await expect(
        page.get_by_text("Your payment arrived late, but your seats were still available")
    ).to_be_visible()
    await expect(page.locator(".qr")).to_have_count(1)
    assert await charges(house, path) == 1


async def test_a_buyer_returning_early_sees_that_the_payment_is_still_unknown(
    page: Page, house: Office
) -> None:
    path = await holds(page, await house.a_show(seats=10), "A-1")
    await begins_to_pay(page)
    await is_given_up(house, path)

    await page.goto(path)

    await expect(page.get_by_text("still waiting to hear whether your payment went through")).to_be_visible()
    await expect(page.get_by_text("You don't need to do anything")).to_be_visible()
    assert await page.locator("#pay button, form[action$=again]").count() == 0, "a second payment is offered"
