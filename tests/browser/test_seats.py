"""Choosing seats in a browser: by finger, by keyboard, without a script, while others choose too."""

import random
import re
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from holdfast.catalogue import OrphanRule
from holdfast.demo.halls import club, concert_hall, stadium, village_cinema
from holdfast.holds import Orphan, check_orphans
from holdfast.layouts import Layout
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import (
    BOOKING,
    box_of,
    expect_announcement,
    opened,
    picked,
    removes,
    scripts_of,
    tap,
)
from tests.support.shows import a_layout

Axe = Callable[[Page], Awaitable[None]]
FOCUSED = """() => {
  const { id, dataset, className } = document.activeElement;
  return id || dataset.zoom || ("hold" in dataset ? "hold" : className);
}"""


async def test_a_finger_chooses_two_seats_side_by_side(house: Office, phone: Page) -> None:
    show = await house.a_show(layout=Layout.build(village_cinema()))
    await opened(phone, show)
    row_d = 12 + 2 * 16  # A has 12 seats, B and C have 16

    await tap(phone, row_d + 7, touch=True)  # too small for a finger: the map comes closer
    await expect(picked(phone)).to_have_count(0)
    await tap(phone, row_d + 7, touch=True)
    await expect(picked(phone)).to_have_count(2)
    await tap(phone, row_d + 9, touch=True)  # the second tap moves the pair

    await expect(removes(phone, "Row D, seat 10")).to_have_count(1)
    await phone.locator("[data-hold]").tap()
    await phone.wait_for_url(BOOKING)


async def test_a_keyboard_alone_chooses_in_the_grid(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40)
    await opened(page, show)

    await page.locator(".skip-map").focus()
    await page.keyboard.press("Enter")
    focused = page.locator("[role=gridcell]:focus")
    await expect(focused).to_have_attribute("aria-label", "Row A, seat 1, Standard, 15 euros, available")
    await page.keyboard.press("c")
    await expect(focused).to_have_attribute("aria-label", re.compile("^Row C, seat 1,"))
    await page.keyboard.press("End")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowLeft")
    await expect(focused).to_have_attribute("aria-label", re.compile("^Row B, seat 9,"))
    await page.keyboard.press("Space")
    await expect_announcement(page, "B-9")
    await expect(page.locator('[role=gridcell][aria-selected="true"]')).to_have_count(2)

    while await page.evaluate("!document.activeElement.matches('[data-hold]')"):
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_url(BOOKING)


async def test_the_grid_is_one_tab_stop(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=40))
    await page.locator("#rows summary").click()

    stop = page.locator('[role=gridcell][tabindex="0"]')
    await expect(stop).to_have_attribute("aria-label", re.compile("^Row A, seat 1,"))
    await stop.focus()
    await page.keyboard.press("ArrowRight")
    await expect(stop).to_have_attribute("aria-label", re.compile("^Row A, seat 2,"))


async def test_without_scripts_seats_are_ticked_in_a_list(house: Office, plain: Page) -> None:
    show = await house.a_show(seats=20)
    await plain.goto(f"/shows/{show}")

    await plain.locator('#list input[value="B-4"]').check()
    await plain.locator('#list input[value="B-5"]').check()
    await plain.locator("#list button").click()

    assert BOOKING.search(plain.url), plain.url


async def test_without_scripts_the_best_of_a_part_is_held(house: Office, plain: Page) -> None:
    show = await house.a_show(layout=Layout.build(concert_hall()))
    await plain.goto(f"/shows/{show}")

    await plain.locator('input[name=quantity][value="3"]').check()
    await plain.locator(".filters summary").click()
    await plain.locator("#best-section").select_option("Circle")
    await plain.locator("[data-best]").click()

    assert BOOKING.search(plain.url), plain.url
    snapshot = await house.app.seatmap.newest(show)
    held = [snapshot.layout.labels[seat] for seat, letter in enumerate(snapshot.states) if letter == ord("H")]
    assert [label.partition("-")[0] for label in held] == ["Circle"] * 3


async def test_without_scripts_a_seat_just_taken_is_answered_with_others(house: Office, plain: Page) -> None:
    show = await house.a_show(seats=20)
    await plain.goto(f"/shows/{show}")
    (rival,) = await house.fans(1)
    await plain.locator('#list input[value="A-1"]').check()
    assert (await rival.holds(show, "A-1")).status_code == 201

    await plain.locator("#list button").click()

    await expect(plain.locator("#refused")).to_contain_text("No longer available: A-1")
    await plain.locator("#refused button").first.click()
    assert BOOKING.search(plain.url), plain.url


async def test_a_single_seat_left_is_explained_before_the_server_refuses(house: Office, page: Page) -> None:
    show = await house.a_show(seats=20, orphan_rule=OrphanRule.REFUSE)
    await opened(page, show)
    await page.locator("#one-by-one").check()

    await tap(page, 1)  # leaves A-1 alone

    await expect(page.locator("#selection .notice")).to_contain_text("single seat")
    await expect(page.locator("[data-hold]")).to_have_attribute("aria-disabled", "true")
    await page.locator("#selection .notice button").click()
    await expect(removes(page, "Row A, seat 1")).to_be_visible()
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)


async def test_the_browser_sees_single_seats_as_the_server_does(house: Office, page: Page) -> None:
    layout = Layout.build(village_cinema())
    await opened(page, await house.a_show(layout=layout))
    chance = random.Random(7)
    cases = []
    for _ in range(300):
        states = bytes(chance.choice(b"AAAH") for _ in range(layout.seat_count))
        run = chance.choice(layout.runs)
        free = [seat for seat in range(run.start, run.start + run.length) if states[seat] == ord("A")]
        if free:
            seats = sorted(chance.sample(free, min(len(free), chance.randint(1, 3))))
            verdict = check_orphans(layout, states, seats)
            cases.append(
                (states.decode(), seats, list(verdict.better) if isinstance(verdict, Orphan) else None)
            )

    found = await page.evaluate(
        """async ([base, cases]) => {
          const { decode } = await import(base + "layout.js");
          const { betterThan } = await import(base + "choose.js");
          const data = JSON.parse(document.getElementById("show-data").textContent);
          const layout = decode(await (await fetch(data.layout)).json());
          return cases.map(([letters, seats]) =>
            betterThan(layout, Uint8Array.from(letters, (l) => "AHBX".indexOf(l)), seats));
        }""",
        [await scripts_of(page), cases],
    )

    assert found == [better for _, _, better in cases]
    assert 0 < sum(better is not None for better in found) < len(found)


async def test_places_to_stand_are_chosen_by_number(house: Office, page: Page) -> None:
    show = await house.a_show(layout=Layout.build(club()))
    await opened(page, show)
    await page.locator("input[name=quantity]").first.fill("4")

    app = await box_of(page.locator("#map"))
    await page.mouse.click(app["x"] + app["width"] / 2, app["y"] + app["height"] * 0.35)

    await expect(page.locator(".picked .what")).to_have_text(re.compile("4 tickets, Floor"))
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)


async def test_fifty_thousand_seats_are_chosen_from_like_any_others(house: Office, phone: Page) -> None:
    show = await house.a_show(layout=Layout.build(stadium()))
    await opened(phone, show)

    await phone.locator("#part").select_option(label="N5: 440 left")
    await phone.locator("#map").evaluate("map => map.scrollIntoView({ block: 'center' })")
    app = await box_of(phone.locator("#map"))
    middle = app["x"] + app["width"] / 2, app["y"] + app["height"] / 2
    await phone.touchscreen.tap(*middle)  # closer
    await phone.touchscreen.tap(*middle)
    await expect(picked(phone)).to_have_count(2)
    assert "N5, row" in (await phone.locator(".picked .what").all_text_contents())[0]
    await phone.locator("[data-hold]").tap()
    await phone.wait_for_url(BOOKING)


async def test_keys_move_the_map(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(layout=Layout.build(village_cinema())))
    seat = page.locator('g.seat[data-seat="14"] rect')
    small = await box_of(seat)
    await page.locator("#map").focus()

    await page.keyboard.press("+")
    await page.keyboard.press("+")
    big = await box_of(seat)
    await page.keyboard.press("ArrowRight")
    moved = await box_of(seat)
    await page.keyboard.press("0")
    again = await box_of(seat)

    assert big["width"] > small["width"] * 2
    assert moved["x"] < big["x"]
    assert abs(again["width"] - small["width"]) < 0.5


async def test_a_show_that_is_not_on_sale_says_when(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=40, opens_in_s=3600))

    await expect(page.locator(".opening")).to_contain_text("Not on sale yet")
    await expect(page.locator("#opens [role=timer]")).to_have_text(re.compile(r"^00:59:\d\d$|^01:00:00$"))
    await tap(page, 14)
    await expect(picked(page)).to_have_count(0)


async def test_a_sale_that_is_over_says_so(house: Office, page: Page) -> None:
    show = await house.a_show(seats=40, opens_in_s=-7200, closes_in_s=-3600)

    await page.goto(f"/shows/{show}")

    await expect(page.locator(".show")).to_contain_text("Sales have ended")
    await expect(page.locator("#map")).to_have_count(0)


async def test_axe_finds_nothing_wrong_in_light_and_dark(house: Office, newcomer: Newcomer, axe: Axe) -> None:
    show = await house.a_show(layout=Layout.build(village_cinema()))
    big = await house.a_show(layout=Layout.build(concert_hall()))
    for dark in (False, True):
        page = await newcomer(dark=dark)
        await opened(page, show)
        await page.locator("#rows summary").click()
        await page.locator(".filters summary").click()
        await tap(page, 50)
        await axe(page)
    await axe(await opened(await newcomer(phone=True), big))


async def test_the_tab_order_of_the_show_page_follows_its_steps(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=40))
    await tap(page, 14)
    await page.locator("input[name=quantity]:checked").focus()

    seen: list[str] = []
    while "hold" not in seen and len(seen) < 20:
        await page.keyboard.press("Tab")
        seen.append(await page.evaluate(FOCUSED))

    order = [name for name in seen if name in ("one-by-one", "skip-map", "part", "in", "map", "hold")]
    assert order == ["one-by-one", "skip-map", "part", "in", "map", "hold"], seen


async def test_the_layout_of_the_tests_is_drawn_as_one_picture(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(layout=a_layout(30, standing=10)))

    await expect(page.locator("g.seat")).to_have_count(30)
    await expect(page.locator(".hall-area")).to_contain_text("10 left")
