"""The seat map of 50 000 seats in Chromium against our limits, with a plain SVG of the same seats beside it.

Chromium draws in software, without a GPU, as on a cheap phone. A time is shown as how often it fits into a
second, so that more is better as in every other figure; the notes have milliseconds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from playwright.async_api import Browser, CDPSession, Page

from bench.environment import Environment, create_shows, start_environment, start_workers
from bench.errors import require
from bench.figure import Figure
from bench.session import Session
from holdfast.demo.halls import stadium
from holdfast.layouts import Layout
from tests.support.wait import until
from tools.browser import DESKTOP, PHONE, chromium

PAINT_MS_MAX, PAINT_SLOW_MS_MAX, FRAME_MS_MAX, CHANGE_MS_MAX = 400.0, 1200.0, 20.0, 5.0
BYTES_MAX = 100_000
SLOWER = 4  # how many times slower the processor of the cheap phone is
OPENED_S = 2.0  # a new browser is busy for a while; visitors take longer than that to type an address
FRAMES = 90
CHANGED = 200
ALLOWED = "the limit"


# Resolves when the map is on the screen: two frames after the script has painted it.
WAITS = """new Promise((done) => {
  const later = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  const look = () => performance.getEntriesByName("seats:painted").length ? later() : setTimeout(look, 4);
  look();
})"""
COUNT_FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const frame = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""
# The same layout, decoded by the same script, drawn in the obvious way: one element per seat.
PLAIN_SVG = """<!doctype html><style>body {{ margin: 0 }} svg {{ width: 100vw; height: 90vh }}</style>
<div id="map"></div><script type="module">
import {{ decode }} from "{scripts}layout.js";
const layout = decode(await (await fetch("{layout}")).json());
const [left, top, right, bottom] = layout.bounds, colours = layout.categories.map((each) => each.colour);
let drawn = "";
for (let seat = 0; seat < layout.count; seat++) {{
  drawn += `<circle cx="${{layout.x[seat]}}" cy="${{layout.y[seat]}}" r=".2"`
    + ` fill="${{colours[layout.category[seat]]}}"/>`;
}}
const map = document.getElementById("map");
const box = [left, top, right - left, bottom - top].join(" ");
map.innerHTML = `<svg viewBox="${{box}}"><g>${{drawn}}</g></svg>`;
performance.mark("seats:painted");
const group = map.querySelector("g"), circles = group.children;
let x = 0, y = 0, scale = 1, isDown = false;
const move = () => group.setAttribute("transform", `translate(${{x}} ${{y}}) scale(${{scale}})`);
addEventListener("pointerdown", () => (isDown = true));
addEventListener("pointerup", () => (isDown = false));
addEventListener("pointermove", ({{ movementX, movementY }}) => {{
  if (isDown) {{ x += movementX / 5; y += movementY / 5; move(); }}
}});
addEventListener("wheel", ({{ deltaY }}) => {{ scale *= Math.exp(-deltaY / 500); move(); }});
window.change = (count) => {{
  const began = performance.now();
  for (let i = 0; i < count; i++) circles[i * 250].setAttribute("fill", "#999");
  return performance.now() - began;
}};
</script>"""


@dataclass(frozen=True)
class Visit:
    """One visit to the map, in milliseconds and bytes."""

    paint_ms: float
    pan_ms: float
    zoom_ms: float
    change_ms: float
    size: int


async def measure_maps(session: Session) -> list[Figure]:
    paint = Figure("map of 50 000 seats painted", "per second", ALLOWED, 1.0)
    slow = Figure(f"the same on a processor {SLOWER} times slower", "per second", ALLOWED, 1.0)
    pan = Figure("frames while the map is panned, p95", "per second", ALLOWED, 1.0)
    zoom = Figure("frames while the map is zoomed, p95", "per second", ALLOWED, 1.0)
    change = Figure(f"changes of {CHANGED} seats applied by the script", "per second", ALLOWED, 1.0)
    size = Figure("pages of 50 000 seats per megabyte", "pages", ALLOWED, 1.0)
    async with start_environment() as env, start_workers(env, 1) as url, chromium() as browser:
        layout = Layout.build(stadium())
        (show, *_) = await create_shows(env, layout, 1)
        await _visit_plain(browser, url, show)  # the worker builds and caches the layout
        async for attempt in session.repeat(paint, slow, pan, zoom, change, size):
            session.report(f"maps, attempt {attempt + 1}")
            ours, theirs = await _visit_ours(browser, env, url, show), await _visit_plain(browser, url, show)
            cheap = await _visit_ours(browser, env, url, show, slower=SLOWER)
            cheap_plain = await _visit_plain(browser, url, show, slower=SLOWER)
            for figure, ms, most, plain in (
                (paint, ours.paint_ms, PAINT_MS_MAX, theirs.paint_ms),
                (slow, cheap.paint_ms, PAINT_SLOW_MS_MAX, cheap_plain.paint_ms),
                (pan, ours.pan_ms, FRAME_MS_MAX, theirs.pan_ms),
                (zoom, ours.zoom_ms, FRAME_MS_MAX, theirs.zoom_ms),
                (change, ours.change_ms, CHANGE_MS_MAX, theirs.change_ms),
            ):
                figure.add(1000 / max(ms, 0.05), 1000 / most)
                figure.note = f"{ms:.1f} ms of {most:.0f}; plain SVG {plain:.1f} ms"
            size.add(1e6 / ours.size, 1e6 / BYTES_MAX)
            size.note = f"{ours.size / 1000:.1f} kB of {BYTES_MAX / 1000:.0f}, packed"
    return [paint, slow, pan, zoom, change, size]


@asynccontextmanager
async def _open_page(browser: Browser, slower: int) -> AsyncIterator[tuple[Page, CDPSession]]:
    """A page in a new browser profile; with `slower` above 1, on a phone."""
    context = await browser.new_context(**(PHONE if slower > 1 else DESKTOP))
    try:
        page = await context.new_page()
        wire = await context.new_cdp_session(page)
        await asyncio.sleep(OPENED_S)
        await wire.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        yield page, wire
    finally:
        await context.close()


async def _visit_ours(browser: Browser, env: Environment, url: str, show: int, slower: int = 1) -> Visit:
    async with _open_page(browser, slower) as (page, wire):
        sizes: list[int] = []
        await wire.send("Network.enable")
        wire.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
        await page.goto(f"{url}/shows/{show}", wait_until="commit")
        paint_ms = await page.evaluate(WAITS)
        await page.wait_for_selector("html[data-seats=ready]")
        await page.wait_for_load_state("load")
        size = sum(sizes)
        await page.locator("#map").scroll_into_view_if_needed()
        await page.locator("#part").select_option(index=6)  # a section: seats one by one
        await page.wait_for_timeout(600)
        change_ms = await _change(page, env, show)
        pan_ms, zoom_ms = await _measure_frames(page)
        return Visit(paint_ms, pan_ms, zoom_ms, change_ms, size)


async def _visit_plain(browser: Browser, url: str, show: int, slower: int = 1) -> Visit:
    async with _open_page(browser, slower) as (page, _):
        await page.goto(f"{url}/shows/{show}", wait_until="load")
        script = await page.locator('script[src*="seats/show.js"]').get_attribute("src")
        layout = await page.evaluate("JSON.parse(document.getElementById('show-data').textContent).layout")
        body = PLAIN_SVG.format(scripts=str(script).removesuffix("show.js"), layout=layout)
        await page.route("**/plain", lambda route: route.fulfill(body=body, content_type="text/html"))
        await page.goto(f"{url}/plain", wait_until="commit")
        paint_ms = await page.evaluate(WAITS)
        change_ms = await page.evaluate(f"window.change({CHANGED})")
        pan_ms, zoom_ms = await _measure_frames(page)
        return Visit(paint_ms, pan_ms, zoom_ms, change_ms, 0)


async def _change(page: Page, env: Environment, show: int) -> float:
    """Block many visible seats at once; returns how long our script takes to apply the change."""
    count = "performance.getEntriesByName('seats:change').reduce((sum, each) => sum + each.detail, 0)"
    await page.wait_for_timeout(300)
    before = await page.evaluate(count)
    first = 6 * 440  # the visible section
    block = await env.app.holds.block(show, range(first, first + CHANGED), "bench", 1)
    require(isinstance(block, int), f"free seats could not be blocked: {block}")
    await until(lambda: _evaluate(page, f"{count} >= {before + CHANGED}"), within_s=30)
    (booking,) = [each for each in await env.app.bookings.blocks(show) if each.number == block]
    await env.app.holds.unblock(booking, 1)
    await until(lambda: _evaluate(page, f"{count} >= {before + 2 * CHANGED}"), within_s=30)
    took: list[tuple[float, int]] = await page.evaluate(
        "performance.getEntriesByName('seats:change').map((each) => [each.duration, each.detail])"
    )
    return max(ms for ms, seats in took if seats >= CHANGED // 2)


async def _evaluate(page: Page, claim: str) -> bool:
    """wait_for_function would need eval in the page, which our content security policy forbids."""
    return bool(await page.evaluate(claim))


async def _measure_frames(page: Page) -> tuple[float, float]:
    """p95 of the time between frames while the map is panned, and while it is zoomed."""
    size = page.viewport_size
    assert size is not None
    x, y = size["width"] / 3, size["height"] / 2
    await page.evaluate(COUNT_FRAMES)
    await page.mouse.move(x, y)
    await page.mouse.down()
    pan = await _count_frames(page, lambda i: page.mouse.move(x + i % 60 * 2, y + i % 40 * 2))
    await page.mouse.up()
    zoom = await _count_frames(page, lambda i: page.mouse.wheel(0, -30 if i % 30 < 15 else 30))
    return pan, zoom


async def _count_frames(page: Page, act: Callable[[int], Any]) -> float:
    await page.evaluate("() => { window.frames_.length = 0; }")
    for i in range(FRAMES * 20):
        await act(i)
        if i % 10 == 9 and await page.evaluate("window.frames_.length") >= FRAMES:
            break
        await asyncio.sleep(0)
    frames: list[float] = await page.evaluate("window.frames_.slice()")
    return quantiles(frames, n=20)[-1]
