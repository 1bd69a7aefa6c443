"""Every page by day and by night for axe, from the table of routes; the map where colours say nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Page, expect

from holdfast.accounts import MailToken, Purpose
from holdfast.legal import HOUSE, LegalKind
from holdfast.legal.text import LegalBody
from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_checkout import has_bought, holds
from tests.support.browser_seats import opened, tap
from tests.support.shows import fans
from tests.support.site_paths import GATEWAY_RETURN_PATH, NON_PAGE_PATHS, PROVIDER_PATHS, served_paths

AxeLook = Callable[[Page], Awaitable[None]]
OTHER_PAGES = ("/nowhere", "/demo/mail")
TERMS = LegalBody({"en": "# Terms\n\nBe kind.\n\n- Be early.\n- Be quiet."})
WITHDRAWN = LegalBody({})
# How the four sorts of seats differ where every colour is the same.
SIGNS = """(number) => {
  const seat = document.querySelector(`g.seat[data-seat="${number}"]`);
  const look = (what) => getComputedStyle(seat.querySelector(what));
  const { stroke, strokeDasharray } = look("rect");
  return [stroke !== "none" && strokeDasharray !== "none", look(".cross").display !== "none",
          look(".tick").display !== "none"];
}"""
FREE, HELD, MINE, SOLD = [False] * 3, [True, False, False], [False, False, True], [False, True, False]


@asynccontextmanager
async def all_pages(house: Office, page: Page) -> AsyncIterator[list[str]]:
    """The address of every page, for a buyer with a ticket and another hold."""
    show = await house.a_show(seats=20)
    booking = (await has_bought(page, show, "A-1")).rpartition("/")[2]
    ticket = await page.get_attribute("a[data-keep]", "href")
    row = await house.app.catalogue.show_detail(show)
    link = MailToken(purpose=Purpose.RESET, email="ann@example.org")
    named: dict[str, Any] = {
        "{token}": await house.app.mail_tokens.issue(link),
        "{show:int}": show,
        "{booking}": booking,
        "{event:int}": row["event_id"],
        "{venue:int}": row["venue_id"],
        "{organisation:int}": await house.app.postgres.fetchval(
            "SELECT organiser_id FROM show_organiser WHERE show_id = $1", show
        ),
        "{text}": "terms",
        "{version:int}": 1,
    }
    paths = sorted(served_paths("GET") - NON_PAGE_PATHS - {GATEWAY_RETURN_PATH, *PROVIDER_PATHS})
    for name, value in named.items():
        paths = [path.replace(name, str(value)) for path in paths]
    assert not [path for path in paths if "{" in path], "add values for the placeholders of new pages"
    async with terms_in_force(house, HOUSE, named["{organisation:int}"]):
        held = await holds(page, show, "A-3")
        yield [*paths, held, str(ticket), *OTHER_PAGES]


@asynccontextmanager
async def terms_in_force(house: Office, *owners: int) -> AsyncIterator[None]:
    """Withdrawn at the end: buyers of other tests in this box office agree to nothing."""
    for owner in owners:
        await house.app.legal.publish(owner, LegalKind.TERMS, TERMS)
    try:
        yield
    finally:
        for owner in owners:
            await house.app.legal.publish(owner, LegalKind.TERMS, WITHDRAWN)


async def test_axe_finds_nothing_on_any_page_by_day_and_by_night(
    house: Office, page: Page, axe: AxeLook
) -> None:
    async with all_pages(house, page) as paths:
        for path in paths:
            await page.goto(path)
            await page.emulate_media(color_scheme="light")
            await axe(page)
            await page.emulate_media(color_scheme="dark")
            await axe(page)


# The width of the hint in the field that searches, and how much of it is seen.
HINT = """() => {
  const field = document.querySelector(".masthead-find input"), look = getComputedStyle(field);
  const ink = Object.assign(document.createElement("canvas").getContext("2d"), { font: look.font });
  const room = field.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
  return [ink.measureText(field.placeholder).width, room];
}"""


@pytest.mark.parametrize("locale", ["en-GB", "de-DE", "hi-IN"])
@pytest.mark.parametrize("role", [Role.FAN, Role.ADMIN])
async def test_the_field_that_searches_shows_its_whole_hint_on_a_phone(
    house: Office, newcomer: Newcomer, locale: str, role: Role
) -> None:
    page = await newcomer(phone=True, locale=locale)
    (person,) = await fans(house.app, house.api, 1, role)
    cookie = await house.app.sessions.open_account(person.account_id, None)
    await page.context.add_cookies([{"name": "holdfast", "value": cookie, "url": house.url}])
    await page.goto("/account")

    wide, room = await page.evaluate(HINT)

    assert wide <= room


async def a_show_with_sold_seats(house: Office) -> int:
    """A-1 and A-2 are sold: they are free of charge, so holding them confirms them."""
    show = await house.a_show(seats=20, price_minor=0)
    (fan,) = await house.fans(1)
    assert (await fan.holds(show, "A-1", "A-2")).status_code == 201
    return show


@pytest.mark.parametrize("forced", ["active", "none"])
async def test_seat_states_can_be_distinguished_without_colour(
    house: Office, newcomer: Newcomer, forced: str
) -> None:
    page, show = await newcomer(forced_colors=forced), await house.a_show(seats=20)
    sold = await a_show_with_sold_seats(house)
    (rival,) = await house.fans(1)
    assert (await rival.holds(show, "A-5")).status_code == 201
    await opened(page, show)
    await expect(page.locator('g.seat[data-seat="4"]')).to_have_attribute("data-state", "H")
    await tap(page, 14)
    await expect(page.locator("g.seat.mine")).to_have_count(2)

    assert await page.evaluate(SIGNS, 0) == FREE
    assert await page.evaluate(SIGNS, 4) == HELD
    assert await page.evaluate(SIGNS, 14) == MINE
    await opened(page, sold)
    await expect(page.locator('g.seat[data-seat="0"]')).to_have_attribute("data-state", "B")
    assert await page.evaluate(SIGNS, 0) == SOLD


async def test_where_the_system_dictates_colours_a_free_seat_is_filled_and_a_held_one_is_not(
    house: Office, newcomer: Newcomer
) -> None:
    page, show = await newcomer(forced_colors="active"), await house.a_show(seats=20)
    (rival,) = await house.fans(1)
    await rival.holds(show, "A-5")
    await opened(page, show)
    await expect(page.locator('g.seat[data-seat="4"]')).to_have_attribute("data-state", "H")

    fill = "(number) => getComputedStyle(document.querySelector(`g[data-seat='${number}'] rect`)).fill"
    canvas = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert await page.evaluate(fill, 0) != canvas
    assert await page.evaluate(fill, 4) == canvas


async def test_the_tab_order_of_a_held_booking_follows_its_steps(house: Office, page: Page) -> None:
    await holds(page, await house.a_show(seats=20), "A-1")
    focused = """() => {
      const { tagName, name, form } = document.activeElement;
      return tagName === "BUTTON" ? form?.action.split("/").pop() : name;
    }"""

    seen: list[str] = []
    while "pay" not in seen and len(seen) < 40:
        await page.keyboard.press("Tab")
        seen.append(await page.evaluate(focused) or "")

    order = [name for name in seen if name in ("extend", "release", "name", "email", "pay")]
    assert order == ["extend", "release", "name", "email", "pay"], seen
