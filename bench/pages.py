"""Pages for people: how heavy they are, how soon a phone on slow 4G shows something, how many can be had.

The programme is the demo's. A page is weighed and timed by a Chromium that comes for the first time: bytes
as they arrive, gzipped and with their headers, over Chromium's own idea of 1.6 Mbit/s and 150 ms a request.
What the map of a show fetches afterwards (hall and letters) is told apart. Pages a second: what everybody
sees is rendered once a second, and is against bytes of the same size that lie ready in the same process; the
page of a booking is rendered, and asks the ledger, each time, and is against the bare authenticated endpoint,
as holds are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Browser

from bench.environment import Stage, stage, tokens, workers
from bench.figure import Figure
from bench.load import Load, run
from bench.nginx import Browse, browse
from holdfast.demo.seed import populate
from tests.support.shows import API
from tools.browser import PHONE, chromium

BYTES_MAX = 100_000
PAINT_MS_MAX = 1_000
SLOW_4G = {"latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
FETCHED = frozenset({"Fetch", "XHR", "EventSource"})  # by a script that is there already
CITY = "mumbai"
PEOPLE = 100
SLICES, SLICE_S = 4, 1
SETTLED_MS = 500
RESULTS = Path(__file__).parent / "results"
PAINTED = """() => new Promise((seen) => new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName("first-contentful-paint")) seen(one.startTime);
}).observe({ type: "paint", buffered: true }))"""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Scene:
    on: Stage
    url: str
    cookie: str  # of somebody who holds two seats and has two tickets
    people: Path  # tokens
    paths: Mapping[str, str]  # by what it is


@dataclass(frozen=True)
class Seen:
    """One visit to a page, for the first time."""

    page_bytes: int
    map_bytes: int
    paint_ms: float


async def page_figures(rounds: int, say: Say) -> list[Figure]:
    weight = Figure("the heaviest page", "bytes allowed", "bytes sent", 1.0)
    paint = Figure("the slowest first paint on slow 4G", "ms allowed", "ms taken", 1.0)
    rates = {name: Figure(f"{name}, as a page", "pages/s", "bare GET of that size", 0.10) for name in ASKED}
    rates[OWN] = Figure(f"{OWN}, as a page", "pages/s", "bare authenticated endpoint", 0.10)
    seen: dict[str, list[Seen]] = {}
    async with stage() as on:
        say("the demo's programme")
        shows = [show["id"] for show in (await populate(on.app, lambda *_: None)).shows[:5]]
        await on.app.search_index.reindex()
        async with workers(on, 2) as url:
            scene = await _scene(on, url, free=shows[0], stadium=shows[3], small=shows[4])
            async with chromium() as browser:
                for i in range(rounds + 1):
                    say(f"on slow 4G, {i} of {rounds}" if i else "each page once: the server is warm")
                    for name in scene.paths:
                        one = await _seen(browser, scene, name)
                        seen.setdefault(name, []).extend([one] if i else [])
            for i in range(rounds):
                say(f"pages a second, {i + 1} of {rounds}")
                for name, figure in rates.items():
                    await _in_turn(scene, name, figure)
    _worst(weight, paint, seen, rounds)
    table = _table(seen)
    print(table)
    (RESULTS / "pages.md").write_text(table)
    return [weight, paint, *rates.values()]


ASKED = ("home", "a search", "an event", "a show")  # what is counted in a second
OWN = "a booking that is held"  # and is somebody's own


async def _scene(on: Stage, url: str, *, free: int, stadium: int, small: int) -> Scene:
    async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
        held, tickets = [await _held(client, show) for show in (small, free)]
        cookie = client.cookies["holdfast"]
    row = await on.app.catalogue.show_detail(small)
    paths = {
        "home": f"/?city={CITY}",
        "a search": f"/find?city={CITY}",
        "an event": f"/events/{row['event_id']}",
        "a venue": f"/venues/{row['venue_id']}",
        "a show": f"/shows/{small}",
        "a show in a stadium": f"/shows/{stadium}",
        "a booking that is held": held,
        "a booking with its tickets": tickets,
        "my tickets": "/my",
        "sign in": "/sign-in",
    }
    people = on.folder / "tokens"
    people.write_text("\n".join(await tokens(on, PEOPLE)) + "\n")
    return Scene(on, url, cookie, people, paths)


async def _held(client: httpx2.AsyncClient, show: int) -> str:
    wish, takes = {"quantity": "2"}, {"Accept": "application/json"}
    answer = await client.post(f"/shows/{show}/hold", data=wish, headers=takes)
    return str(answer.raise_for_status().json()["go"])


async def _seen(browser: Browser, scene: Scene, name: str) -> Seen:
    context = await browser.new_context(base_url=scene.url, locale="en-GB", **PHONE)
    try:
        if name not in ("home", "a search", "sign in"):
            await context.add_cookies([{"name": "holdfast", "value": scene.cookie, "url": scene.url}])
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        kinds: dict[str, str] = {}
        sizes: dict[str, float] = {}

        def begun(event: dict[str, Any]) -> None:
            kinds[event["requestId"]] = event.get("type", "Other")

        def arrived(event: dict[str, Any]) -> None:
            sizes[event["requestId"]] = event["encodedDataLength"]

        session.on("Network.requestWillBeSent", begun)
        session.on("Network.loadingFinished", arrived)
        await session.send("Network.enable")
        await session.send("Network.emulateNetworkConditions", {"offline": False, **SLOW_4G})
        await page.goto(scene.paths[name])
        if scene.paths[name].startswith("/shows/"):
            await page.wait_for_selector("html[data-seats=ready]")
        paint_ms = float(await page.evaluate(PAINTED))
        await page.wait_for_timeout(SETTLED_MS)
    finally:
        await context.close()
    fetched = sum(size for one, size in sizes.items() if kinds.get(one) in FETCHED)
    return Seen(round(sum(sizes.values()) - fetched), round(fetched), paint_ms)


async def _in_turn(scene: Scene, name: str, figure: Figure) -> None:
    """Both for a second, again and again: whatever else the machine does, it does to both."""
    headers = {"Accept-Encoding": "gzip", "Accept": "text/html"}
    if scene.paths[name].startswith("/bookings/"):
        headers["Cookie"] = f"holdfast={scene.cookie}"
    how, ours, theirs = Browse(seconds=SLICE_S, headers=headers), 0.0, 0.0
    async with httpx2.AsyncClient(base_url=scene.url, headers=headers) as client:
        size = (await client.get(scene.paths[name])).raise_for_status().headers["Content-Length"]
    for _ in range(SLICES):
        one = await browse(scene.url, [scene.paths[name]], how, scene.on.folder)
        if name == OWN:
            bare = (await run(scene.url, scene.people, Load("bare", seconds=SLICE_S))).only(201)
        else:
            bare = await browse(scene.url, [f"{API}/bare/{size}"], how, scene.on.folder)
        ours, theirs = ours + one.per_second / SLICES, theirs + bare.per_second / SLICES
        figure.note = f"{int(size):,} bytes, p99 {one.p99_ms:.0f} ms"
    figure.add(ours, theirs)


def _worst(weight: Figure, paint: Figure, seen: Mapping[str, list[Seen]], rounds: int) -> None:
    for i in range(rounds):
        heavy = max(seen, key=lambda name: seen[name][i].page_bytes)
        slow = max(seen, key=lambda name: seen[name][i].paint_ms)
        weight.add(BYTES_MAX, seen[heavy][i].page_bytes)
        paint.add(PAINT_MS_MAX, seen[slow][i].paint_ms)
        weight.note, paint.note = heavy, slow


def _table(seen: Mapping[str, list[Seen]]) -> str:
    """Of each page what it weighs and when something is seen, the worst of all rounds."""
    lines = ["| page | weight, gzipped | its map | first paint, slow 4G |", "|---|--:|--:|--:|"]
    for name, visits in seen.items():
        page, more = max(one.page_bytes for one in visits), max(one.map_bytes for one in visits)
        fetched = f"{more / 1000:.1f} kB" if more else ""
        paint_ms = max(one.paint_ms for one in visits)
        lines.append(f"| {name} | {page / 1000:.1f} kB | {fetched} | {paint_ms:.0f} ms |")
    return "\n".join(lines) + "\n"
