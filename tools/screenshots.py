"""Take the screenshots in docs/pictures: `make screenshots`. Needs Chromium.

A demo of its own on a free port and in a temporary folder; a few dozen people hold and buy in it first,
always the same; then a desktop and a phone browser go from the first page to the ticket.
"""

import asyncio
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from PIL import Image
from playwright.async_api import Browser, Page

from holdfast.engines.embedded.privilege import child_setup
from tools.browser import chromium

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
START_WITHIN_S = 120
COLOURS = 256  # per screenshot: none contains a photograph
WAIT_MS = 20_000
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PARTY_SIZES = (2, 4, 3, 2, 2, 5, 2, 3, 4, 2)  # seats per guest, repeated
SOLD, HELD = 24, 6  # parties in the small hall
CROWDED = {"N101": 6, "N102": 20, "N103": 10}  # parties in sections of the stadium
CITY = "mumbai"


@dataclass(frozen=True)
class Demo:
    url: str
    small: int  # a show in a small hall
    stadium: int


@dataclass(frozen=True)
class Camera:
    """A browser whose pictures end in the name of its device."""

    page: Page
    kind: str

    async def take(self, name: str, *, and_dark: bool = False) -> None:
        await self._take(f"{name}-{self.kind}")
        if and_dark:
            await self.page.emulate_media(color_scheme="dark")
            await self._take(f"{name}-{self.kind}-dark")
            await self.page.emulate_media(color_scheme="light")

    async def _take(self, name: str) -> None:
        await self.page.evaluate("document.activeElement?.blur()")
        await self.page.wait_for_timeout(300)  # animations have ended
        sent = await self.page.screenshot(caret="hide", animations="disabled")
        save(name, sent)


def save(name: str, sent: bytes) -> None:
    """Write a PNG with a palette: a third of the size."""
    picture = Image.open(io.BytesIO(sent)).convert("RGB")
    # Not the median cut: it would replace the colour of a few small elements by a shade of the background.
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    target = PICTURES / f"{name}.png"
    few.save(target, optimize=True)
    print(f"{target.name:32} {target.stat().st_size / 1000:5.0f} kB", flush=True)


async def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with start_demo() as demo, chromium() as browser:
        await create_guests(demo)
        async with open_sessionor(browser, demo, "desktop", **DESKTOP) as camera:
            await look_around(camera)
            await look_at_stadium(camera, demo)
            await buy(camera, demo)
        async with open_sessionor(browser, demo, "phone", **PHONE) as camera:
            await look_around(camera)
            await look_at_stadium(camera, demo)
            await buy(camera, demo)
        async with open_sessionor(browser, demo, "phone-hindi", **PHONE, locale="hi-IN") as camera:
            await look_at_home(camera)
    total = sum(each.stat().st_size for each in PICTURES.glob("*.png"))
    print(f"{'all':32} {total / 1000:5.0f} kB")


@asynccontextmanager
async def start_demo() -> AsyncIterator[Demo]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    # All guests come from one address.
    unlimited = ("REQUESTS_PER_SECOND_MAX", "LOGINS_PER_MINUTE_MAX", "RANGE_SEATS_MAX")
    variables |= {f"HOLDFAST_{name}": "0" for name in unlimited}
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder:
        words = ("demo", "--port", "0", "--json", "--workers", "1", "--data", f"{folder}/data")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", *words),
            env=variables,
            stdout=asyncio.subprocess.PIPE,
            preexec_fn=child_setup(None, signal.SIGTERM),  # it ends with this process
        )
        try:
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
            facts: dict[str, Any] = json.loads(line)
            stadium = facts["shows"][3]["id"]  # of those to try first: see demo/seed.py
            yield Demo(facts["url"], await find_film_show(facts["url"]), stadium)
        finally:
            process.terminate()
            await process.wait()


async def find_film_show(url: str) -> int:
    """A show of tomorrow or later in a cinema of the city."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    query = {"city": CITY, "kind": "film", "size": "50"}
    async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
        events = (await client.get("/api/v1/events", params=query)).raise_for_status().json()["events"]
    shows = [show for event in events for show in event["shows"] if show["sale_state"] == "ON_SALE"]
    return int(next(show["show_id"] for show in shows if show["starts_at"][:10] > tomorrow))


async def create_guests(demo: Demo) -> None:
    """Let other guests hold and buy, so that the maps look realistic."""
    for number in range(SOLD + HELD):
        await run_guest(demo, demo.small, number, pays=number < SOLD)
    for section, parties in CROWDED.items():
        for number in range(parties):
            await run_guest(demo, demo.stadium, number, pays=False, section=section)


async def run_guest(demo: Demo, show: int, number: int, *, pays: bool, section: str = "") -> None:
    """A new guest holds seats and, if `pays`, pays for them."""
    async with httpx2.AsyncClient(base_url=demo.url, timeout=30) as client:
        selection = {"quantity": str(PARTY_SIZES[number % len(PARTY_SIZES)]), "section": section}
        accepts = {"Accept": "application/json"}
        response = await client.post(f"/shows/{show}/hold", data=selection, headers=accepts)
        path = response.raise_for_status().json()["go"]
        if not pays:
            return
        contact = {"attempt": "1", "name": f"Guest {number}", "email": f"guest{number}@example.org"}
        gateway = (await client.post(f"{path}/pay", data=contact)).headers["Location"]
        await client.post(gateway, data={"choice": "pay"})


@asynccontextmanager
async def open_sessionor(browser: Browser, demo: Demo, kind: str, **given: Any) -> AsyncIterator[Camera]:
    how = {"locale": "en-GB", "timezone_id": "Asia/Kolkata", **given}
    context = await browser.new_context(base_url=demo.url, reduced_motion="reduce", **how)
    context.set_default_timeout(WAIT_MS)
    await context.add_cookies([{"name": "holdfast_city", "value": CITY, "url": demo.url}])
    try:
        yield Camera(await context.new_page(), kind)
    finally:
        await context.close()


async def look_around(camera: Camera) -> None:
    await look_at_home(camera, and_dark=True)
    await camera.page.goto("/find?q=monsun")  # with a typo
    await camera.take("find")
    await camera.page.click("main a[href^='/events/'] >> nth=0")
    await camera.page.wait_for_url("**/events/**")
    await camera.take("event")


async def look_at_home(camera: Camera, *, and_dark: bool = False) -> None:
    await camera.page.goto("/")
    await camera.take("home", and_dark=and_dark)


async def look_at_stadium(camera: Camera, demo: Demo) -> None:
    page = camera.page
    await page.goto(f"/shows/{demo.stadium}")
    await page.wait_for_selector("html[data-seats=ready]")
    await show_map(camera)
    await camera.take("stadium")
    parts = await page.locator("#part option").all_inner_texts()
    await page.select_option("#part", index=next(i for i, part in enumerate(parts) if "N102" in part))
    await camera.take("stadium-section")


async def buy(camera: Camera, demo: Demo) -> None:
    page = camera.page
    await page.goto(f"/shows/{demo.small}")
    await page.wait_for_selector("html[data-seats=ready]")
    await choose_two_seats(camera)
    await camera.take("seats", and_dark=True)
    await page.click("[data-hold]")
    await page.wait_for_url("**/bookings/**")
    await page.wait_for_selector("#left:not([hidden])")
    await camera.take("held")
    await page.fill("#name", "Ann Otter")
    await page.fill("#email", f"ann.{camera.kind}@example.org")
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")
    await camera.take("pay")
    await page.click("button[value=pay]")
    await page.wait_for_selector(".qr")
    await camera.take("ticket", and_dark=camera.kind == "phone")
    await page.goto("/my")
    await camera.take("my")
    await page.goto("/demo/mail")
    await page.wait_for_selector("a[href^='/demo/mail/']")
    await page.click("a[href^='/demo/mail/'] >> nth=0")
    await camera.take("mail")


async def show_map(camera: Camera) -> None:
    """On a phone it is below the form: scrolled to where the sheet at the foot leaves it whole."""
    if camera.kind != "desktop":
        await camera.page.evaluate("scrollTo(0, document.querySelector('.stage').offsetTop - 76)")


async def choose_two_seats(camera: Camera) -> None:
    """Two free seats beside each other, as far in front as there are any."""
    page = camera.page
    seats = page.locator("g.seat[data-state=A]")
    free = [int(number) for number in await seats.evaluate_all("all => all.map(one => one.dataset.seat)")]
    first = next(seat for seat in free if seat > 60 and {seat + 1, seat + 2, seat + 3} <= set(free))
    await show_map(camera)
    for _ in range(2 if camera.kind != "desktop" else 1):  # for a finger the map comes closer first
        app = await page.locator(f'g.seat[data-seat="{first}"] rect').bounding_box()
        assert app is not None
        x, y = app["x"] + app["width"] / 2, app["y"] + app["height"] / 2
        await (page.touchscreen.tap(x, y) if camera.kind != "desktop" else page.mouse.click(x, y))
        await page.wait_for_timeout(300)
    await page.wait_for_selector("#selection [data-hold]")


if __name__ == "__main__":
    asyncio.run(main())
