"""What tests of the show's page do over and over: open it, tap a seat, look at what is chosen."""

import re

from playwright.async_api import FloatRect, Locator, Page, expect

BOOKING = re.compile(r"/bookings/[a-z2-7]{20}$")
FRAMES_MS = 50


async def opened(page: Page, show: int) -> Page:
    """The page of a show, with its map drawn."""
    await page.goto(f"/shows/{show}")
    await page.wait_for_selector("html[data-seats=ready]")
    return page


async def tap(page: Page, number: int, *, touch: bool = False) -> None:
    """A seat of a drawn hall, by its number."""
    seat = page.locator(f'g.seat[data-seat="{number}"] rect')
    await page.locator("#map").scroll_into_view_if_needed()
    app = await still(seat)
    x, y = app["x"] + app["width"] / 2, app["y"] + app["height"] / 2
    await (page.touchscreen.tap(x, y) if touch else page.mouse.click(x, y))


async def still(element: Locator) -> FloatRect:
    """Where it is, once it has stopped moving."""
    app = await box_of(element)
    while True:
        await element.page.wait_for_timeout(FRAMES_MS)
        before, app = app, await box_of(element)
        if app == before:
            return app


async def box_of(element: Locator) -> FloatRect:
    app = await element.bounding_box()
    assert app is not None, "it is not to be seen"
    return app


def picked(page: Page) -> Locator:
    """A button for each chosen seat that removes it; on a phone hidden until the list is opened."""
    return page.locator("#selection .picked .remove")


async def expect_announcement(page: Page, words: str) -> None:
    await expect(page.locator("#announce")).to_contain_text(words)


def removes(page: Page, seat: str) -> Locator:
    """The button that removes a chosen seat."""
    return page.locator(f'#selection .picked .remove[aria-label="Remove {seat}"]')


async def scripts_of(page: Page) -> str:
    """Where the map's scripts are: a test may import one of them."""
    src = await page.locator('script[src*="seats/show.js"]').get_attribute("src")
    assert src is not None
    return src.removesuffix("show.js")
