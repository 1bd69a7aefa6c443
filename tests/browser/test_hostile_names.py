"""Names that try to be code: on every page, in data that scripts read, in the mail, on paper."""

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Dialog, Page, expect

from holdfast.web.caller import Role
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import BOOKING, box_of
from tests.support.organiser import Stage, a_body, a_city, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import index_event
from tests.support.wait import until

# Each breaks out of something (an attribute, a JSON block, a title, a comment, an escape) and does something.
OUT_OF_SCRIPT = """'"></script><img id=pwned src=x onerror=alert(1)>"""
OUT_OF_TITLE = """</title></style><svg id=pwned onload=alert(1)>${1}"""
OUT_OF_COMMENT = """--><iframe id=pwned srcdoc='<script>alert(1)</script>'>"""
OUT_OF_ESCAPES = """\\u003cimg id=pwned src onerror=alert(1)\\u003e&lt;b id=pwned>"""
TITLE = OUT_OF_SCRIPT + OUT_OF_TITLE + OUT_OF_COMMENT
NAME = OUT_OF_SCRIPT + OUT_OF_ESCAPES
EVERYTHING = TITLE + OUT_OF_ESCAPES
MADE = "document.querySelectorAll('#pwned, [onerror], [onload], iframe[srcdoc]:not([sandbox])').length"


@dataclass(frozen=True)
class Hostile:
    city: str
    venue: int
    event: int
    show: int


def hall_body() -> dict[str, Any]:
    body = a_body(name=OUT_OF_TITLE)
    body["categories"] = [
        {"name": OUT_OF_COMMENT, "colour": "#E69F00"},
        {"name": OUT_OF_ESCAPES, "colour": "#0072B2"},
    ]
    first, second = body["sections"][0]["rows"]
    first["category"], second["category"] = OUT_OF_COMMENT, OUT_OF_ESCAPES
    body["sections"] = [{"name": OUT_OF_SCRIPT, "rows": [first]}, {"name": OUT_OF_TITLE, "rows": [second]}]
    return body


@pytest.fixture(scope="module")
async def hostile(house: Office) -> Hostile:
    """Everything that people name is named so."""
    organiser, admin = (
        await sign_in_organiser(house.app, house.api),
        await sign_in_organiser(house.app, house.api, Role.ADMIN),
    )
    city = await admin.create("/cities", a_city(name=NAME))
    place = {"name": NAME, "address": EVERYTHING, "postal_code": "400001", "lat": 19.0, "lon": 72.8}
    venue = await organiser.create("/venues", {"city_id": city["id"], **place})
    layout = await organiser.create("/layouts", hall_body())
    room = {"venue_id": venue["id"], "name": OUT_OF_SCRIPT, "layout_hash": layout["hash"]}
    hall = await organiser.create("/halls", room)
    about = {"people": [NAME], "genre": OUT_OF_SCRIPT, "description": EVERYTHING}
    event = await admin.create("/events", an_event(title=TITLE, **about))
    stage = Stage(city["id"], city["slug"], venue["id"], layout["hash"], hall["id"], event["id"])
    prices = {OUT_OF_COMMENT: 50_000, OUT_OF_ESCAPES: 20_000}
    starts_at = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    show = await admin.create("/shows", show_of(stage, prices=prices, starts_at=starts_at))
    await index_event(house.app, event["id"])
    return Hostile(city["slug"], venue["id"], event["id"], show["id"])


async def test_no_name_becomes_code_anywhere(hostile: Hostile, newcomer: Newcomer) -> None:
    page, spoken = await newcomer(), []
    email = f"eve-{hostile.event}@example.org"

    def dismiss(dialog: Dialog) -> None:
        spoken.append(dialog.message)
        spoken.append(str(asyncio.ensure_future(dialog.dismiss())))

    async def look(path: str = "", *, says: bool = True) -> None:
        if path:
            await page.goto(path)
        assert await page.evaluate(MADE) == 0, page.url
        shown = await page.evaluate("document.documentElement.textContent")
        assert not says or TITLE in shown, page.url

    page.on("dialog", dismiss)
    for path in (f"/?city={hostile.city}", f"/events/{hostile.event}", f"/venues/{hostile.venue}"):
        await look(path)
    await look(f"/find?q=onerror&city={hostile.city}", says=False)
    await look(f"/posters/{hostile.event}.svg", says=False)
    await look(f"/find?q={NAME}", says=False)
    await page.get_by_role("combobox").fill("pwned")
    await expect(page.get_by_role("option").first).to_be_visible()
    await look(says=False)
    await _chooses(page, hostile)
    await look()
    await page.fill("#name", EVERYTHING[:110])
    await page.click("#pay button")  # without an address: what was typed is shown again
    await expect(page.locator("#email")).to_be_focused()
    await look()
    await page.fill("#email", email)
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")
    await look(says=False)
    await page.click("button[value=pay]")
    await page.wait_for_selector(".qr")
    booking = page.url.partition("?")[0]
    for path in ("", "/my", f"{booking}/cancel"):
        await look(path)
    await _reads_files(page, booking)
    await page.goto(booking)
    ticket = await page.get_attribute("a[data-keep]", "href")
    await look(str(ticket))
    await _reads_mail(page, email)
    frame = page.frame_locator("iframe")
    await expect(frame.locator("body")).to_contain_text(TITLE)
    assert await frame.locator("#pwned, [onerror], [onload]").count() == 0
    assert not spoken


async def _chooses(page: Page, hostile: Hostile) -> None:
    """With the map, its tooltip, its list of parts and its grid: all of them show names."""
    await page.goto(f"/shows/{hostile.show}")
    await page.wait_for_selector("html[data-seats=ready]")
    app = await box_of(page.locator('g.seat[data-seat="4"] rect'))
    await page.mouse.move(app["x"] + app["width"] / 2, app["y"] + app["height"] / 2)
    await page.locator("#rows summary").click()
    await page.locator("[role=gridcell]").first.click()
    await expect(page.locator("#selection .picked .remove")).to_have_count(2)
    assert await page.evaluate(MADE) == 0
    embedded = await page.evaluate("JSON.parse(document.getElementById('show-data').textContent).show")
    assert embedded == hostile.show
    await page.locator("[data-hold]").click()
    await page.wait_for_url(BOOKING)


async def _reads_files(page: Page, booking: str) -> None:
    """Neither is ever taken for a page."""
    for file, kind in (("tickets.pdf", "application/pdf"), ("calendar.ics", "text/calendar")):
        answer = await page.request.get(f"{booking}/{file}")
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        assert answer.headers["x-content-type-options"] == "nosniff"


async def _reads_mail(page: Page, email: str) -> None:
    link = page.locator("li", has_text=email).locator("a").first

    async def has_come() -> bool:
        await page.goto("/demo/mail")
        assert await page.evaluate(MADE) == 0
        return await link.count() > 0

    await until(has_come, within_s=30)
    await link.click()
    await page.wait_for_url(re.compile(r"/demo/mail/\d+$"))
    assert await page.evaluate(MADE) == 0
