"""From a misspelt word to a QR code on screen and in the mail: by mouse, keys, a finger, without scripts."""

import io
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from urllib.parse import urlsplit

import pytest
import zxingcpp
from PIL import Image
from playwright.async_api import Locator, Page, expect
from playwright.async_api import TimeoutError as TooLate

from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, picked, tap
from tests.support.organiser import a_stage, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import index_event
from tests.support.wait import until

TITLE, MISSPELT = "Marigold Nocturne", "marigld nocturn"
TABS_MAX = 80
COMES_WITHIN_MS = 3000
COUNTDOWN = re.compile(r"^\d+:\d\d$")
SEES_SEATS_GO = """() => new MutationObserver((all) => {
  window.seenAt ??= all.some((one) => one.target.dataset?.state === "H") ? Date.now() : undefined;
}).observe(document.querySelector("svg.hall"), { subtree: true, attributeFilter: ["data-state"] })"""
NOTES_WHEN = """() => document.querySelector("[data-hold]")
  .addEventListener("click", () => sessionStorage.setItem("clickedAt", Date.now()), { capture: true })"""
_numbers = count(1)


@dataclass(frozen=True)
class Night:
    event: int
    show: int


@pytest.fixture(scope="module")
async def night(house: Office) -> Night:
    """A concert that search knows, in a hall of four rows."""
    organiser, admin = (
        await sign_in_organiser(house.app, house.api),
        await sign_in_organiser(house.app, house.api, Role.ADMIN),
    )
    stage = await a_stage(house.app, house.api, organiser)
    event = await admin.create("/events", an_event(title=TITLE))
    starts_at = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    show = await admin.create("/shows", show_of(stage, event_id=event["id"], starts_at=starts_at))
    await index_event(house.app, event["id"])
    return Night(event["id"], show["id"])


def new_buyer() -> tuple[str, str]:
    """A name and an address for the tickets; the address is new."""
    return "Ada Heron", f"ada-{next(_numbers)}@example.org"


async def codes_on(page: Page | Locator) -> list[str]:
    """What a scanner reads off the screen."""
    shot = await page.screenshot()
    return sorted(one.text for one in zxingcpp.read_barcodes(Image.open(io.BytesIO(shot))))


async def codes_of_booking(page: Page, how_many: int) -> list[str]:
    await expect(page.locator(".qr")).to_have_count(how_many)
    return sorted([code for qr in await page.locator(".qr").all() for code in await codes_on(qr)])


async def codes_in_mail(page: Page, email: str) -> list[str]:
    """Of the letter with the tickets, opened where the demo shows mail; read off the screen too."""
    link = page.locator("li", has_text=email).filter(has_text=TITLE).locator("a").first

    async def has_come() -> bool:
        await page.goto("/demo/mail")
        return await link.count() > 0

    await until(has_come, within_s=30)
    await link.click()
    images = page.frame_locator("iframe").locator("img")
    await expect(images.first).to_be_visible()
    found: set[str] = set()
    for image in await images.all():
        found |= set(await codes_on(image))
    return sorted(found)


async def test_with_a_mouse_while_another_buyer_views_the_same_seats(
    house: Office, night: Night, newcomer: Newcomer
) -> None:
    page, other = await newcomer(), await newcomer()
    requested: set[str] = set()
    for each in (page, other):
        each.context.on("request", lambda request: requested.add(request.url))
    name, email = new_buyer()

    await page.goto("/")
    await page.get_by_role("combobox").fill(MISSPELT)
    await page.get_by_role("combobox").press("Enter")
    await page.get_by_role("heading", name=TITLE).get_by_role("link").click()
    await page.locator(f'a[href="/shows/{night.show}"]').click()
    await page.wait_for_selector("html[data-seats=ready]")
    await other.goto(f"/shows/{night.show}")
    await other.wait_for_selector("html[data-seats=ready]")
    await other.evaluate(SEES_SEATS_GO)
    await page.evaluate(NOTES_WHEN)
    await tap(page, 14)
    await expect(picked(page)).to_have_count(2)
    await page.locator("[data-hold]").click()

    await expect(other.locator('g.seat[data-seat="14"]')).to_have_attribute("data-state", "H")
    await page.wait_for_url(BOOKING)
    took_ms = await other.evaluate("window.seenAt") - int(
        await page.evaluate("sessionStorage.getItem('clickedAt')")
    )
    print(f"\na second browser painted the seats {took_ms} ms after the click that held them")
    await tap(other, 14)
    await expect(other.locator("#selection .notice")).to_contain_text("Row B, seat 5")
    await other.locator("#selection .notice button").first.click()
    await expect(picked(other)).to_have_count(2)

    await expect(page.locator("#left")).to_have_text(COUNTDOWN)
    await page.fill("#name", name)
    await page.fill("#email", email)
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")
    await page.click("button[value=pay]")
    codes = await codes_of_booking(page, 2)
    assert len(set(codes)) == 2
    assert await codes_in_mail(page, email) == codes

    ours = {urlsplit(house.url).netloc, urlsplit(house.app.config.gateway_url).netloc}
    assert {urlsplit(url).netloc for url in requested if not url.startswith(("data:", "blob:"))} == ours


async def tab_to(page: Page, selector: str) -> None:
    """By the tabulator alone; nothing is focused by a script."""
    for _ in range(TABS_MAX):
        await page.keyboard.press("Tab")
        if await page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"{TABS_MAX} tabs do not lead to {selector} at {page.url}")


async def test_with_a_keyboard_and_nothing_else(night: Night, newcomer: Newcomer) -> None:
    page = await newcomer()
    name, email = new_buyer()
    keys = page.keyboard

    await page.goto("/")
    await tab_to(page, "#masthead-q")
    await keys.type(MISSPELT)
    await keys.press("Enter")
    await page.wait_for_url("**/find?*")
    await tab_to(page, f'a[href="/events/{night.event}"]')
    await keys.press("Enter")
    await page.wait_for_url("**/events/*")
    await tab_to(page, f'a[href="/shows/{night.show}"]')
    await keys.press("Enter")
    await page.wait_for_selector("html[data-seats=ready]")
    await tab_to(page, ".skip-map")
    await keys.press("Enter")
    await keys.press("y")  # to the row of that name
    await keys.press("Enter")
    await expect(picked(page)).to_have_count(2)
    await tab_to(page, "[data-hold]")
    await keys.press("Enter")
    await page.wait_for_url(BOOKING)
    await expect(page.locator("#left")).to_have_text(COUNTDOWN)
    await tab_to(page, "#name")
    await keys.type(name)
    await tab_to(page, "#email")
    await keys.type(email)
    await keys.press("Enter")
    await page.wait_for_url("**/pay/**")
    await tab_to(page, "button[value=pay]")
    await keys.press("Enter")

    codes = await codes_of_booking(page, 2)
    assert await codes_in_mail(page, email) == codes


async def comes(element: Locator) -> bool:
    try:
        await element.wait_for(timeout=COMES_WITHIN_MS)
    except TooLate:
        return False
    return True


async def test_on_a_phone_with_a_finger(night: Night, phone: Page) -> None:
    name, email = new_buyer()
    await phone.goto("/")
    await phone.get_by_role("combobox").tap()
    await phone.get_by_role("combobox").fill(MISSPELT)
    await phone.get_by_role("combobox").press("Enter")
    await phone.get_by_role("heading", name=TITLE).get_by_role("link").tap()
    await phone.locator(f'a[href="/shows/{night.show}"]').tap()
    await phone.wait_for_selector("html[data-seats=ready]")
    await tap(phone, 8, touch=True)
    if not await comes(picked(phone).first):  # too small for a finger: the map has come closer
        await tap(phone, 8, touch=True)
    await expect(picked(phone)).to_have_count(2)
    await phone.locator("[data-hold]").tap()
    await phone.wait_for_url(BOOKING)
    await expect(phone.locator("#left")).to_have_text(COUNTDOWN)
    await phone.fill("#name", name)
    await phone.fill("#email", email)
    await phone.locator("#pay button").tap()
    await phone.wait_for_url("**/pay/**")
    await phone.locator("button[value=pay]").tap()

    codes = await codes_of_booking(phone, 2)
    assert await codes_in_mail(phone, email) == codes


async def best_available(plain: Page) -> None:
    await plain.locator('input[name=quantity][value="2"]').check()
    await plain.locator("[data-best]").click()


async def from_the_list(plain: Page) -> None:
    await plain.locator('#list input[value="Y-9"]').check()
    await plain.locator('#list input[value="Y-10"]').check()
    await plain.locator("#list button").click()


@pytest.mark.parametrize("choose", [best_available, from_the_list])
async def test_without_scripts(night: Night, plain: Page, choose: Callable[[Page], Awaitable[None]]) -> None:
    name, email = new_buyer()
    await plain.goto("/")
    await plain.locator("#masthead-q").fill(MISSPELT)
    await plain.locator("#masthead-q").press("Enter")
    await plain.get_by_role("heading", name=TITLE).get_by_role("link").click()
    await plain.locator(f'a[href="/shows/{night.show}"]').click()
    await choose(plain)
    await plain.wait_for_url(BOOKING)
    await expect(plain.locator(".until-clock")).to_contain_text(":")
    await plain.fill("#name", name)
    await plain.fill("#email", email)
    await plain.click("#pay button")
    await plain.click("button[value=pay]")

    codes = await codes_of_booking(plain, 2)
    assert await codes_in_mail(plain, email) == codes
