"""A waiting room in real browsers: join, draw, wait, turn, seats; reload, second tab and second device.

`pytest tests/browser/test_queue_pages.py --full` lets fifty browsers through instead of four.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room

FEW, MANY = 4, 50
AT_ONCE = 8  # browsers that load a page at the same moment
Axe = Callable[[Page], Awaitable[None]]
Step = Callable[[Page], Awaitable[None]]


@pytest.fixture
def people(pytestconfig: pytest.Config) -> int:
    return MANY if pytestconfig.getoption("--full") else FEW


async def a_room_of(house: Office, seats: int, inside: int) -> Room:
    """Open; no person is let in until the test draws the order."""
    show = await house.a_show(seats=seats)
    return await a_room(house.app, show, inside_max=inside, turn_s=600, window_s=900)


def path(room: Room) -> str:
    return f"/shows/{room.show_id}/queue"


async def opened(page: Page, room: Room) -> None:
    await page.goto(path(room))
    await page.wait_for_selector("html[data-queue=ready]")


async def joins(page: Page, room: Room) -> None:
    """As a guest: the script solves the puzzle."""

    async def is_open() -> bool:  # the web process may be a second behind
        await opened(page, room)
        return await page.locator("#join").count() == 1

    await until(is_open, within_s=60)
    await page.click("#join button")
    await expect(page.locator("h2#queue-title")).to_have_text("You're in the draw")


async def draws(house: Office, room: Room) -> None:
    """The worker draws the order and calls people."""
    await house.app.postgres.execute(
        "UPDATE waiting_room SET draw_at = now() WHERE show_id = $1", room.show_id
    )


async def place(page: Page) -> str:
    return await page.locator("#place").inner_text()


async def together(pages: list[Page], step: Step) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(page: Page) -> None:
        async with limit:
            await step(page)

    await asyncio.gather(*(one(page) for page in pages))


async def test_everybody_gets_through_and_holds_a_seat(
    house: Office, newcomer: Newcomer, people: int
) -> None:
    room = await a_room_of(house, seats=2 * people + 10, inside=max(3, people // 4))
    pages = [await newcomer(phone=number % 2 == 1) for number in range(people)]
    await together(pages, lambda page: joins(page, room))
    await draws(house, room)
    held: list[str] = []

    async def goes_in(page: Page) -> None:
        """The page follows the queue by itself; who holds a seat makes room for the next."""
        await page.wait_for_selector(".enter", timeout=300_000)
        await page.click(".enter")
        await page.wait_for_selector("#best [data-best]")
        await page.locator("#best button[data-best]").click()
        await page.wait_for_url(BOOKING)
        held.append(page.url)
        await opened(page, room)
        await page.click(".leave button")
        await expect(page.locator(".notice")).to_have_text("You've left the queue.")

    await asyncio.gather(*(goes_in(page) for page in pages))

    assert len(set(held)) == people
    taken = await house.app.postgres.fetchval(
        "SELECT count(*) FROM taken_seat WHERE show_id = $1", room.show_id
    )
    assert taken == 2 * people


async def test_a_place_survives_a_reload_a_second_tab_and_a_second_device(
    house: Office, newcomer: Newcomer, axe: Axe
) -> None:
    room = await a_room_of(house, seats=20, inside=1)
    (fan,) = await house.fans(1)
    page, device = await newcomer(), await newcomer(phone=True, dark=True)
    cookie = await house.app.sessions.open_account(fan.account_id, None)
    for one in (page, device):
        await one.context.add_cookies([{"name": "holdfast", "value": cookie, "url": house.url}])
    others = [await newcomer() for _ in range(3)]
    await together([page, *others], lambda one: joins(one, room))
    await axe(page)
    await draws(house, room)
    for one in (page, *others):
        await expect(one.locator("#place, .enter")).to_be_visible()

    waits = [one for one in (page, *others) if await one.locator("#place").count()]
    first = waits[0]
    mine = await place(first)
    await first.reload()
    again = await place(first)
    tab = await first.context.new_page()
    await tab.goto(path(room))

    assert len({await place(one) for one in waits}) == len(waits) == 3
    assert (again, await place(tab)) == (mine, mine)
    await axe(tab)
    await opened(device, room)
    shown = device.locator("#place, .enter")
    await expect(shown).to_have_text(await page.locator("#place, .enter").inner_text())
    await axe(device)


async def test_the_place_is_announced_politely_and_the_turn_at_once(
    house: Office, newcomer: Newcomer
) -> None:
    room = await a_room_of(house, seats=20, inside=1)
    pages = [await newcomer() for _ in range(2)]
    await together(pages, lambda page: joins(page, room))
    await draws(house, room)
    for page in pages:
        await expect(page.locator("#place, .enter")).to_be_visible()
    called, waits = sorted(pages, key=lambda page: page is not pages[0])
    if not await called.locator(".enter").count():
        called, waits = waits, called

    await expect(waits.locator("#ahead")).to_have_text(re.compile("next|ahead"))
    assert await waits.locator("#announce").inner_text() == "", "nothing new to say for a while"
    assert await waits.locator("#announce").get_attribute("aria-live") == "polite"
    await called.click(".leave summary")
    await called.click(".leave button")

    await expect(waits.locator(".enter")).to_be_visible()
    await expect(waits.locator("#announce")).to_have_text("It's your turn. Go in now.")
    assert (await waits.title()).startswith("Your turn!")


async def test_seats_whose_turn_is_over_lead_back_to_the_queue(house: Office, newcomer: Newcomer) -> None:
    room, page = await a_room_of(house, seats=20, inside=5), await newcomer()
    await joins(page, room)
    await draws(house, room)
    await page.click(".enter")
    await page.wait_for_selector("html[data-seats=ready]")
    await page.context.clear_cookies(name="holdfast_admission")

    await page.locator("#best button[data-best]").click()

    await page.wait_for_url(re.compile(r"/queue$"))
    await expect(page.locator("h2#queue-title")).to_have_text("You're in")


async def test_a_lost_connection_is_shown_and_the_place_stays(house: Office, page: Page) -> None:
    room = await a_room_of(house, seats=20, inside=1)
    await joins(page, room)

    await page.route("**/api/v1/shows/*/queue", lambda route: route.abort())
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(page.locator("#offline")).to_be_visible()
    await page.unroute("**/api/v1/shows/*/queue")
    await page.evaluate("dispatchEvent(new Event('online'))")

    await expect(page.locator("#offline")).to_be_hidden()
    await expect(page.locator("h2#queue-title")).to_have_text("You're in the draw")


async def test_a_countdown_runs_until_the_room_opens(house: Office, page: Page) -> None:
    show = await house.a_show(seats=20)
    opens_at = datetime.now(UTC) + timedelta(seconds=3)
    await a_room(house.app, show, is_open=False, opens_at=opens_at)

    await page.goto(f"/shows/{show}/queue")

    # By the worker's clock; the page loads itself again.
    await expect(page.locator("h2#queue-title")).to_have_text("Join the draw")


async def test_the_proof_is_checked_without_scripts(house: Office, plain: Page, page: Page, axe: Axe) -> None:
    room = await a_room_of(house, seats=20, inside=1)
    for _ in range(3):
        (fan,) = await house.fans(1)
        await fan.post(f"/shows/{room.show_id}/queue")
    await draws(house, room)

    async def is_drawn() -> bool:
        await plain.goto(f"{path(room)}/draw")
        return await plain.locator("#number").count() == 1

    await until(is_drawn, within_s=60)
    await plain.fill("#number", "2")
    await plain.click("form[action$='/draw'] button")

    await expect(plain.locator(".result")).to_have_text(re.compile(r"Number 2 has place [123]\."))
    await page.goto(plain.url)
    await axe(page)
