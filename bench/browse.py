"""Browsing: pages cached by a worker, pages cached by nginx, and holds while many clients browse.

Each figure through nginx is against a file of the same size that the same nginx serves in the same run. The
log of nginx counts the requests it passes on; the engines count the commands they run.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import httpx2

from bench.environment import Environment, Q, create_shows, start_environment, start_workers, write_tokens
from bench.errors import require
from bench.figure import Figure
from bench.load import HoldLoad, LoadResult, PageLoad, load_holds, load_pages
from bench.nginx import RunningNginx, start_nginx
from bench.session import Session
from holdfast.engines.postgres import require_row
from tests.support.shows import API, a_layout
from tests.support.watched_show import audience

SHOWS_PER_RUN = 2_000  # of 200 seats: more than a run can sell
ACCOUNTS = 2_000
SECONDS = 4
SLICES, SLICE_S = 4, 1
LONG_S = 8  # runs whose refills or whose p99 count
VIEWERS = 1_000
PAGES_PER_SECOND = 12_000  # requested; over 10 000 are served, because a connection waits for its response
BROWSERS, BUYERS = 200, 128  # connections
HALF = 0.58  # share of the top rate that is requested, so that a little more than half of it is served
KINDS = ("a show", "its map", "a search")


@dataclass(frozen=True)
class Site:
    env: Environment
    url: str  # of the web workers
    nginx: RunningNginx
    tokens: Path
    show: int  # the one that all clients read

    @property
    def paths(self) -> dict[str, str]:
        """By kind."""
        show = f"{API}/shows/{self.show}"
        return {"a show": show, "its map": f"{show}/seats", "a search": f"{API}/search?q=test&size=5"}

    async def prepare_holds(self, *, pause_ms: int, seconds: int = SECONDS) -> HoldLoad:
        """Create shows and load their maps in every worker."""
        (first, *_) = await create_shows(self.env, a_layout(200), SHOWS_PER_RUN)
        await load_holds(self.url, self.tokens, HoldLoad("warm", first, SHOWS_PER_RUN, seconds=2))
        return HoldLoad("hold", first, SHOWS_PER_RUN, connections=BUYERS, seconds=seconds, pause_ms=pause_ms)

    async def hold(self, load: HoldLoad) -> LoadResult:
        return (await load_holds(self.url, self.tokens, load)).expect(201)


async def measure_browsing(session: Session) -> list[Figure]:
    direct = {
        kind: Figure(f"{kind} without nginx", "pages/s", "bare GET of that size", 0.5) for kind in KINDS
    }
    cached = {kind: Figure(f"{kind} through nginx", "pages/s", "a file of that size", 0.7) for kind in KINDS}
    refills = Figure("refills that reach a web worker", "allowed/s", "refills/s", 1.0)
    commands = Figure("pages per engine command while clients browse", "pages/s", "commands/s", 100.0)
    beside = Figure("holds beside 10 000 pages/s and 1 000 viewers", "1/p99", "the same holds alone", 0.5)
    async with start_environment() as env:
        session.report("creating shows and accounts")
        tokens = await write_tokens(env, ACCOUNTS)
        (show,) = await create_shows(env, a_layout(200), 1)
        await env.app.search_index.reindex()
        async with start_workers(env, 2) as url, start_nginx(env.folder / "nginx", url) as nginx:
            site = Site(env, url, nginx, tokens, show)
            async for attempt in session.repeat(*direct.values(), *cached.values(), refills, commands):
                session.report(f"pages, attempt {attempt + 1}")
                await _load_direct(site, direct)
                await _load_through_nginx(site, cached)
                session.report(f"refills, attempt {attempt + 1}")
                await _count_refills(site, refills, commands)
            await _hold_beside(site, beside, session)
    return [*direct.values(), *cached.values(), refills, commands, beside]


async def _load_direct(site: Site, figures: dict[str, Figure]) -> None:
    """A page from the cache of a worker, against bytes in the memory of the same worker."""
    for kind, path in site.paths.items():
        size = await _fetch_size(site.url + path)
        figures[kind].add(*await _alternate(site, site.url, path, f"{API}/bare/{size}"))


async def _load_through_nginx(site: Site, figures: dict[str, Figure]) -> None:
    for kind, path in site.paths.items():
        file = site.nginx.create_file(await _fetch_size(site.url + path))
        figures[kind].add(*await _alternate(site, site.nginx.url, path, file))


async def _alternate(site: Site, url: str, ours: str, theirs: str) -> tuple[float, float]:
    """Both for a second in turn, several times, so that other load on the machine affects both."""
    rates: dict[str, float] = {ours: 0.0, theirs: 0.0}
    for _ in range(SLICES):
        for path in rates:
            result = await load_pages(url, [path], PageLoad(seconds=SLICE_S), site.env.folder)
            rates[path] += result.per_second / SLICES
    return rates[ours], rates[theirs]


async def _count_refills(site: Site, refills: Figure, commands: Figure) -> None:
    """Without buyers: every engine command meanwhile is caused by browsing, or by background work."""
    paths = list(site.paths.values())
    passed_before, counts_before = await site.nginx.count_passed_on(), await _count_commands(site.env)
    pages = await site.nginx.load_pages(paths, PageLoad(seconds=LONG_S))
    counts = await _count_commands(site.env)
    passed = (await site.nginx.count_passed_on()) - passed_before
    allowed = len(paths) * (LONG_S + 1)  # one per second and path, and the first
    refills.add(allowed / LONG_S, passed.total() / LONG_S)
    refills.note = f"{pages.per_second * LONG_S:,.0f} pages, {passed.total()} refills of {len(paths)} pages"
    more = {name: counts[name] - counts_before[name] for name in counts}
    require(more["rows written"] == 0, f"browsing wrote to PostgreSQL: {more}")
    commands.add(pages.per_second, max(1, more["scripts"] + more["transactions"]) / LONG_S)
    commands.note = ", ".join(f"{count} {name}" for name, count in more.items())


async def _hold_beside(site: Site, figure: Figure, session: Session) -> None:
    """The same holds at half of the top rate: alone, and while many clients browse and watch."""
    top = await site.hold(await site.prepare_holds(pause_ms=0))
    pause_ms = round(1000 * BUYERS / (top.per_second * HALF) - top.p50_ms / 2)
    async for attempt in session.repeat(figure):
        session.report(f"holds beside browsers, attempt {attempt + 1}")
        alone = await site.hold(await site.prepare_holds(pause_ms=pause_ms, seconds=LONG_S))
        holds = await site.prepare_holds(pause_ms=pause_ms, seconds=LONG_S)
        async with audience(
            site.env.folder, site.nginx.url, site.show, count=VIEWERS, keeps_states=False
        ) as viewers:
            load = PageLoad(connections=BROWSERS, seconds=LONG_S + 2, per_second=PAGES_PER_SECOND)
            browsing = asyncio.create_task(site.nginx.load_pages(site.paths.values(), load))
            await asyncio.sleep(1)
            held = await site.hold(holds)
            pages = await browsing
            seen = await viewers.go_home()
        require(not seen.wrong, f"viewers saw wrong maps: {seen.wrong}")
        figure.add(1000 / held.p99_ms, 1000 / alone.p99_ms)
        figure.note = (
            f"{held.per_second:,.0f} holds/s of {top.per_second:,.0f}, p99 {held.p99_ms:.1f} ms, alone "
            f"{alone.p99_ms:.1f} ms; {pages.per_second:,.0f} pages/s, p99 {pages.p99_ms:.1f} ms"
        )


async def _count_commands(env: Environment) -> dict[str, int]:
    """What the engines have run so far, by their own count."""
    await asyncio.sleep(1.5)  # a PostgreSQL backend publishes its counters up to a second later
    stats = (await env.app.redis.call("INFO", "commandstats")).decode()
    counts = [line.split("calls=")[1].split(",")[0] for line in stats.splitlines() if _is_script(line)]
    row = require_row(await env.app.postgres.fetchrow(Q.transactions_and_writes))
    return {"scripts": sum(map(int, counts)), **dict(row)}


def _is_script(line: str) -> bool:
    return line.startswith(("cmdstat_eval", "cmdstat_fcall"))


async def _fetch_size(url: str) -> int:
    async with httpx2.AsyncClient() as client:
        return len((await client.get(url)).raise_for_status().content)
