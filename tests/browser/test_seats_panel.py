"""The panel of the show's page: what is chosen, what it costs, and the button that reserves it."""

from playwright.async_api import Page, Route, expect

from holdfast.demo.halls import concert_hall
from holdfast.layouts import Layout
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, box_of, expect_announcement, opened, picked, tap

LAPTOP = {"viewport": {"width": 1440, "height": 900}}


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


async def test_eight_seats_on_a_phone_are_one_line_above_the_button(house: Office, phone: Page) -> None:
    await opened(phone, await house.a_show(seats=40))
    await phone.locator('input[name=quantity][value="8"]').check()
    await tap(phone, 14, touch=True)
    panel, line, button = (phone.locator(name) for name in ("#selection", ".tray-line", "[data-hold]"))

    await expect(line).to_have_text("8 seats · €120")
    await expect(phone.locator(".picked")).to_be_hidden()
    assert (await box_of(panel))["height"] < 844 / 4
    await expect(button).to_be_in_viewport(ratio=1)

    await line.tap()
    await expect(line).to_have_attribute("aria-expanded", "true")
    await expect(phone.locator(".picked li")).to_have_count(1)
    await expect(phone.locator(".picked li")).to_contain_text("Row B, seats 1–8")
    await expect(phone.locator(".picked li")).to_contain_text("8 × €15")
    await expect(button).to_be_in_viewport(ratio=1)
    await phone.get_by_role("button", name="Remove Row B, seat 8").tap()
    await expect(line).to_have_text("7 seats · €105")


async def test_one_button_is_loud_and_always_in_sight(house: Office, newcomer: Newcomer) -> None:
    page = await newcomer(**LAPTOP)
    show = await house.a_show(seats=40)
    await opened(page, show)
    best, button = page.locator("[data-best]"), page.locator("[data-hold]")
    assert "quiet" not in (await best.get_attribute("class") or "")

    await page.locator('input[name=quantity][value="8"]').check()
    await tap(page, 14)
    await expect(picked(page)).to_have_count(8)
    assert "quiet" in (await best.get_attribute("class") or "")
    await expect(button).to_be_in_viewport(ratio=1)

    (rival,) = await house.fans(1)
    await rival.holds(show, "B-5")
    await expect(page.locator("#selection .notice")).to_contain_text("No longer available: B-5")
    await expect(button).to_be_in_viewport(ratio=1)

    while await picked(page).count():
        await picked(page).first.click()
    assert "quiet" not in (await best.get_attribute("class") or "")


async def test_an_empty_choice_does_not_cover_places_to_stand(house: Office, newcomer: Newcomer) -> None:
    page = await newcomer(viewport={"width": 1280, "height": 800})
    await opened(page, await house.a_show(layout=Layout.build(concert_hall())))

    standing, selection = (
        await box_of(page.locator(".standing").last),
        await box_of(page.locator("#selection")),
    )

    assert standing["y"] + standing["height"] <= selection["y"]


async def test_a_lost_seat_is_replaced_and_announced(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await tap(page, 14)
    await expect(picked(page)).to_have_count(2)

    await rival.holds(show, "B-5")

    notice = page.locator("#selection .notice")
    await expect(notice).to_contain_text("No longer available: B-5. We've selected B-3, B-4 for you instead.")
    await expect_announcement(page, "We've selected B-3, B-4")
    await expect(page.locator("[data-hold]")).to_have_text("Reserve 2 seats")
    await expect(picked(page)).to_have_count(2)
    await notice.get_by_role("button", name="Keep only B-4").click()
    await expect(picked(page)).to_have_count(1)


async def test_where_nothing_similar_is_left_the_rest_of_a_choice_stays(house: Office, page: Page) -> None:
    show = await house.a_show(seats=2)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await tap(page, 0)
    await expect(picked(page)).to_have_count(2)

    await rival.holds(show, "A-1")

    await expect(page.locator("#selection .notice")).to_have_text("No longer available: A-1.")
    await expect(page.locator("[data-hold]")).to_have_text("Reserve 1 seat")
