"""Pages for browsers: their size, their first paint on slow 4G, and how many per second the workers serve.

The catalogue is the demo's. Chromium visits each page for the first time: bytes count as they arrive,
gzipped and with headers, over Chromium's own emulation of 1.6 Mbit/s and 150 ms per request. What the seat
map fetches after the page is counted separately. Pages per second: a page that is the same for all visitors
is rendered once per second and compared with bytes of that size in the memory of the same worker. The page
of a booking is rendered from PostgreSQL each time and compared with the bare authenticated endpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Browser

from bench.environment import Environment, start_environment, start_workers, write_tokens
from bench.figure import Figure
from bench.load import HoldLoad, PageLoad, load_holds, load_pages
from bench.session import Session
from holdfast.demo.seed import populate
from tests.support.shows import API
from tools.browser import PHONE, chromium

BYTES_MAX = 100_000
PAINT_MS_MAX = 1_000
SLOW_4G = {"latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
FETCHED = frozenset({"Fetch", "XHR", "EventSource"})  # by a script after the page has loaded
CITY = "mumbai"
ACCOUNTS = 100
SLICES, SLICE_S = 4, 1
SETTLED_MS = 500
PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
PUBLIC = ("home", "a search", "an event", "a show")  # pages whose rate is measured
OWN = "a booking that is held"  # and one that only its owner sees


@dataclass(frozen=True)
class Site:
    env: Environment
    url: str
    cookie: str  # of a visitor that holds two seats and has two tickets
    tokens: Path
    paths: Mapping[str, str]  # by name


@dataclass(frozen=True)
class Visit:
    """The first visit to a page."""

    page_bytes: int
    map_bytes: int
    paint_ms: float


async def measure_pages(session: Session) -> list[Figure]:
    weight = Figure("the heaviest page", "bytes allowed", "bytes sent", 1.0)
    paint = Figure("the slowest first paint on slow 4G", "ms allowed", "ms taken", 1.0)
    rates = {name: Figure(f"{name}, as a page", "pages/s", "bare GET of that size", 0.10) for name in PUBLIC}
    rates[OWN] = Figure(f"{OWN}, as a page", "pages/s", "bare authenticated endpoint", 0.10)
    worst: dict[str, list[Visit]] = {}
    async with start_environment() as env:
        session.report("seeding the demo's catalogue")
        shows = [show["id"] for show in (await populate(env.app, lambda *_: None)).shows[:5]]
        await env.app.search_index.reindex()
        async with start_workers(env, 2) as url:
            site = await _prepare_site(env, url, free=shows[0], stadium=shows[3], small=shows[4])
            async with chromium() as browser:
                session.report("visiting each page once, to warm up the workers")
                await _visit_all(browser, site)
                async for attempt in session.repeat(weight, paint):
                    session.report(f"pages on slow 4G, attempt {attempt + 1}")
                    visits = await _visit_all(browser, site)
                    _add_worst(weight, paint, visits)
                    for name, visit in visits.items():
                        worst.setdefault(name, []).append(visit)
            async for attempt in session.repeat(*rates.values()):
                session.report(f"pages per second, attempt {attempt + 1}")
                for name, figure in rates.items():
                    await _alternate(site, name, figure)
    if weight.is_measured:
        table = _render_table(worst)
        print(table)
        (session.results / "pages.md").write_text(table)
    return [weight, paint, *rates.values()]


async def _prepare_site(env: Environment, url: str, *, free: int, stadium: int, small: int) -> Site:
    async with httpx2.AsyncClient(base_url=url, timeout=30) as client:
        held, tickets = [await _hold_two(client, show) for show in (small, free)]
        cookie = client.cookies["holdfast"]
    row = await env.app.catalogue.show_detail(small)
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
    return Site(env, url, cookie, await write_tokens(env, ACCOUNTS), paths)


async def _hold_two(client: httpx2.AsyncClient, show: int) -> str:
    """Hold two seats as a guest; returns the path of the booking's page."""
    headers = {"Accept": "application/json"}
    response = await client.post(f"/shows/{show}/hold", data={"quantity": "2"}, headers=headers)
    return str(response.raise_for_status().json()["go"])


async def _visit_all(browser: Browser, site: Site) -> dict[str, Visit]:
    return {name: await _visit(browser, site, name) for name in site.paths}


async def _visit(browser: Browser, site: Site, name: str) -> Visit:
    context = await browser.new_context(base_url=site.url, **PHONE)
    try:
        if name not in ("home", "a search", "sign in"):
            await context.add_cookies([{"name": "holdfast", "value": site.cookie, "url": site.url}])
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        kinds: dict[str, str] = {}
        sizes: dict[str, float] = {}

        def on_request(event: dict[str, Any]) -> None:
            kinds[event["requestId"]] = event.get("type", "Other")

        def on_finished(event: dict[str, Any]) -> None:
            sizes[event["requestId"]] = event["encodedDataLength"]

        session.on("Network.requestWillBeSent", on_request)
        session.on("Network.loadingFinished", on_finished)
        await session.send("Network.enable")
        await session.send("Network.emulateNetworkConditions", {"offline": False, **SLOW_4G})
        await page.goto(site.paths[name])
        if site.paths[name].startswith("/shows/"):
            await page.wait_for_selector("html[data-seats=ready]")
        paint_ms = float(await page.evaluate(PAINTED))
        await page.wait_for_timeout(SETTLED_MS)
    finally:
        await context.close()
    fetched = sum(size for request, size in sizes.items() if kinds.get(request) in FETCHED)
    return Visit(round(sum(sizes.values()) - fetched), round(fetched), paint_ms)


async def _alternate(site: Site, name: str, figure: Figure) -> None:
    """Both for a second in turn, several times, so that other load on the machine affects both."""
    headers = {"Accept-Encoding": "gzip", "Accept": "text/html"}
    if site.paths[name].startswith("/bookings/"):
        headers["Cookie"] = f"holdfast={site.cookie}"
    load, ours, theirs = PageLoad(seconds=SLICE_S, headers=headers), 0.0, 0.0
    async with httpx2.AsyncClient(base_url=site.url, headers=headers) as client:
        size = (await client.get(site.paths[name])).raise_for_status().headers["Content-Length"]
    for _ in range(SLICES):
        pages = await load_pages(site.url, [site.paths[name]], load, site.env.folder)
        if name == OWN:
            bare = (await load_holds(site.url, site.tokens, HoldLoad("bare", seconds=SLICE_S))).expect(201)
        else:
            bare = await load_pages(site.url, [f"{API}/bare/{size}"], load, site.env.folder)
        ours, theirs = ours + pages.per_second / SLICES, theirs + bare.per_second / SLICES
        figure.note = f"{int(size):,} bytes, p99 {pages.p99_ms:.0f} ms"
    figure.add(ours, theirs)


def _add_worst(weight: Figure, paint: Figure, visits: Mapping[str, Visit]) -> None:
    heaviest = max(visits, key=lambda name: visits[name].page_bytes)
    slowest = max(visits, key=lambda name: visits[name].paint_ms)
    weight.add(BYTES_MAX, visits[heaviest].page_bytes)
    paint.add(PAINT_MS_MAX, visits[slowest].paint_ms)
    weight.note, paint.note = heaviest, slowest


def _render_table(visits: Mapping[str, list[Visit]]) -> str:
    """The weight and the first paint of each page, the worst of all rounds."""
    lines = ["| page | weight, gzipped | its map | first paint, slow 4G |", "|---|--:|--:|--:|"]
    for name, rounds in visits.items():
        page, more = max(each.page_bytes for each in rounds), max(each.map_bytes for each in rounds)
        fetched = f"{more / 1000:.1f} kB" if more else ""
        paint_ms = max(each.paint_ms for each in rounds)
        lines.append(f"| {name} | {page / 1000:.1f} kB | {fetched} | {paint_ms:.0f} ms |")
    return "\n".join(lines) + "\n"
