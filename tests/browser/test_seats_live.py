"""The show's page while others choose too: changes, lost seats, lost streams, seats already held."""

import re

from playwright.async_api import Page, Route, expect

from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, expect_announcement, opened, picked, tap
from tests.tidy.markdown_pages import blocks
from tests.tidy.tree import ROOT


async def test_changes_by_other_buyers_are_shown_at_once(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await page.evaluate(
        """() => new MutationObserver((all) => {
          window.seenAt ??= all.some((one) => one.target.dataset?.state === "H") ? Date.now() : undefined;
        }).observe(document.querySelector("svg.hall"), { subtree: true, attributeFilter: ["data-state"] })"""
    )

    requested_at = await page.evaluate("Date.now()")
    assert (await rival.holds(show, "B-3")).status_code == 201
    await expect(page.locator('g.seat[data-seat="12"]')).to_have_attribute("data-state", "H")

    seen_at = await page.evaluate("window.seenAt")
    print(f"\na seat held elsewhere was painted {seen_at - requested_at} ms after the request")


async def test_a_chosen_seat_that_another_buyer_takes_is_reported_with_alternatives(
    house: Office, page: Page
) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await tap(page, 14)
    await expect(picked(page)).to_have_count(2)

    await rival.holds(show, "B-5")

    await expect_announcement(page, "B-5")
    await expect(page.locator("#selection .notice")).to_contain_text("No longer available: B-5")
    offered = page.locator("#selection .notice button").first
    await offered.click()
    await expect(picked(page)).to_have_count(2)
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)


async def test_a_buyer_that_loses_a_seat_is_offered_alternatives_at_once(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await tap(page, 14)

    async def too_late(route: Route) -> None:  # the rival is faster than our form
        await rival.holds(show, "B-5")
        await route.continue_()

    await page.route("**/hold", too_late)
    await page.locator("[data-hold]").click()

    await expect(page.locator("#selection .notice")).to_contain_text("No longer available: B-5")
    await page.unroute("**/hold")
    await page.locator("#selection .notice button").first.click()
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)


async def test_a_choice_survives_a_lost_stream_and_the_news_go_on(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    await tap(page, 14)
    await expect(picked(page)).to_have_count(2)
    (rival,) = await house.fans(1)

    before = house.kill("web-1")
    await house.back("web-1", before)
    await rival.holds(show, "D-1")

    await expect(page.locator('g.seat[data-seat="30"]')).to_have_attribute("data-state", "H", timeout=30_000)
    await expect(picked(page)).to_have_count(2)


async def test_refused_viewers_read_the_map_now_and_then(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)

    async def no_place(route: Route) -> None:
        await route.fulfill(status=503, headers={"Retry-After": "30"}, body="{}")

    # As the server answers when there are too many viewers.
    await page.route("**/seats/stream*", no_place)
    await opened(page, show)
    (rival,) = await house.fans(1)
    await rival.holds(show, "B-3")

    await expect(page.locator('g.seat[data-seat="12"]')).to_have_attribute("data-state", "H")


async def test_a_returning_buyer_sees_the_seats_they_hold(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    await expect(page.locator("#mine")).to_be_hidden()
    await tap(page, 14)
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)

    await opened(page, show)

    await expect(page.locator("#mine")).to_contain_text("reserved for you until")
    await expect(page.locator("#mine a.button")).to_have_attribute("href", BOOKING)


async def test_own_seats_on_the_map_lead_to_the_booking(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)
    await tap(page, 14)
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)

    await opened(page, show)

    await expect(page.locator("g.seat.own")).to_have_count(2)
    await tap(page, 14)
    notice = page.locator("#selection .notice")
    await expect(notice).to_contain_text("Row B, seat 5: reserved for you.")
    await expect(notice.locator("a.button")).to_have_attribute("href", BOOKING)
    await page.locator("#rows summary").click()
    await expect(page.locator('[data-seat="14"][role=gridcell]')).to_have_attribute(
        "aria-label", "Row B, seat 5, Standard, 15 euros, reserved for you"
    )
    await page.locator("#mine form button").click()
    await page.wait_for_url(BOOKING)
    await opened(page, show)
    await expect(page.locator("g.seat.own")).to_have_count(0)


async def test_the_map_says_that_it_is_offline_and_since_when(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=40))
    chip = page.locator("#offline")
    await expect(chip).to_be_hidden()

    await page.context.set_offline(True)
    await expect(chip).to_be_visible()
    await expect(chip).to_have_text(re.compile(r"^Offline – showing seats as of \d+:\d\d"))

    await page.context.set_offline(False)
    await expect(chip).to_be_hidden()


async def test_the_page_stops_selling_when_the_last_seat_goes_and_starts_again(
    house: Office, page: Page
) -> None:
    show = await house.a_show(seats=2)
    (rival,) = await house.fans(1)
    await opened(page, show)
    sold_out = page.locator("#sold-out")
    await expect(sold_out).to_be_hidden()

    held = await rival.holds(show, "A-1", "A-2")
    await expect(sold_out).to_contain_text("All seats are in baskets right now", use_inner_text=True)
    await expect_announcement(page, "All seats are in baskets right now")
    await expect(page.locator("#best")).to_be_hidden()
    await expect(page.locator("#selection")).to_be_hidden()

    await rival.delete(f"/bookings/{held.json()['booking_id']}")
    await expect(sold_out).to_be_hidden()
    await expect_announcement(page, "available again")
    await expect(page.locator("[data-best]")).to_be_visible()
    await expect(page.locator('g.seat[data-state="A"]')).to_have_count(2)


async def test_a_sold_out_show_sells_nothing(house: Office, page: Page, plain: Page) -> None:
    show = await house.a_show(seats=2, price_minor=0)  # free: booked at once
    (rival,) = await house.fans(1)
    assert (await rival.holds(show, "A-1", "A-2")).status_code == 201

    await opened(page, show)
    await plain.goto(f"/shows/{show}")

    for each in (page, plain):
        await expect(each.locator("#sold-out")).to_contain_text("Sold out", use_inner_text=True)
        await expect(each.locator("#best")).to_be_hidden()
        await expect(each.locator("#selection")).to_be_hidden()


async def test_a_page_opened_while_the_last_seats_are_only_held_says_so(house: Office, plain: Page) -> None:
    show = await house.a_show(seats=2)
    (rival,) = await house.fans(1)
    await rival.holds(show, "A-1", "A-2")

    await plain.goto(f"/shows/{show}")

    await expect(plain.locator("#sold-out")).to_contain_text(
        "All seats are in baskets right now", use_inner_text=True
    )
    await expect(plain.locator("#sold-out")).not_to_contain_text("Sold out", use_inner_text=True)


async def test_the_program_in_the_docs_follows_a_show(house: Office, page: Page) -> None:
    """docs/live.md; what its reader brings along shows the last change in the title (R8)."""
    (program,) = [block.text for block in blocks(ROOT / "docs" / "live.md") if block.language == "js"]
    own = "const drawAll = (all) => (document.title = all.length), draw = (...one) => (document.title = one);"
    show = await house.a_show(seats=40)
    (rival,) = await house.fans(1)
    await page.goto("/problems")

    await page.evaluate(f"(show) => {{ {own} {program} }}", show)
    await expect(page).to_have_title("40")
    assert (await rival.holds(show, "B-3")).status_code == 201

    await expect(page).to_have_title("12,H")
