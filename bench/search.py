"""Search in a large catalogue: four kinds of queries, in PostgreSQL and over HTTP.

Each figure is p95 as responses per second, against reading one row by its key on the same connection; over
HTTP, against the page of one event. The bar is 25 ms (100 ms over HTTP), in the units of the run.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Iterator
from datetime import UTC, datetime, timedelta
from statistics import quantiles

import httpx2

from bench.environment import Environment, start_environment, start_workers
from bench.errors import require
from bench.figure import Figure
from bench.search_data import CITIES, Q, Words, analyze, city_centre, create_catalogue
from bench.session import Session
from holdfast.search.query import ANYTHING, EventSearchQuery, parse_search

EVENTS = int(os.environ.get("BENCH_EVENTS", "200000"))
QUERIES = 200  # of each kind, all different, so that no response comes from a cache
P95_MS_MAX = 25.0
HTTP_P95_MS_MAX = 100.0
KINDS = ("two words", "a typo", "near, on a date", "a prefix")


async def measure_search(session: Session) -> list[Figure]:
    in_postgres = {kind: _create_figure(f"search: {kind}", "a row by its key") for kind in KINDS}
    over_http = {kind: _create_figure(f"GET /search: {kind}", "GET /events/{id}") for kind in KINDS}
    async with start_environment() as env:
        words = Words()

        def report(_what: str, done: int, total: int) -> None:
            session.report(f"reindex: {done} of {total}")

        session.report(f"{EVENTS} events, {EVENTS * 5} shows")
        await create_catalogue(env.config.database_url, words, EVENTS)
        began = time.monotonic()
        await env.app.search_index.reindex(report)
        await analyze(env.config.database_url)
        took = time.monotonic() - began
        counted_ms = await _time_ms(env.app.search.count_all())
        facets_ms = await _time_ms(env.app.search.tally(parse_search(EventSearchQuery()).filters, ANYTHING))
        async for attempt in session.repeat(*in_postgres.values()):
            session.report(f"search in PostgreSQL, attempt {attempt + 1}")
            await _search_postgres(env, words, in_postgres)
        async with start_workers(env, 2) as url, httpx2.AsyncClient(base_url=url) as client:
            async for attempt in session.repeat(*over_http.values()):
                session.report(f"search over HTTP, attempt {attempt + 1}")
                await _search_http(client, words, over_http)
        notes = (
            f"reindex {EVENTS / took:,.0f} events/s",
            f"facets {facets_ms:.1f} ms",
            f"counted {counted_ms:.0f} ms",
        )
        in_postgres["two words"].note += "; " + ", ".join(notes)
    _set_bars(in_postgres, P95_MS_MAX)
    _set_bars(over_http, HTTP_P95_MS_MAX)
    return [*in_postgres.values(), *over_http.values()]


def _set_bars(figures: dict[str, Figure], ms_max: float) -> None:
    """The limit in the units of the run: that of the slowest reference."""
    for figure in figures.values():
        figure.bar = max(((1000 / ms_max) / theirs for _, theirs in figure.runs), default=0.0)


def _create_figure(name: str, reference: str) -> Figure:
    return Figure(name, "per second at p95", reference, 0.0)


def create_queries(kind: str, words: Words) -> Iterator[EventSearchQuery]:
    for _ in range(QUERIES):
        one, other = words.random.sample(words.random.choice(words.titles), 2)  # of one title
        soon = datetime.now(UTC).date() + timedelta(days=words.random.randint(1, 50))
        at = city_centre(words.random.randint(1, CITIES))
        match kind:
            case "two words":
                yield EventSearchQuery(q=f"{one} {other}")
            case "a typo":
                yield EventSearchQuery(q=f"{one[:2]}{one[3:2:-1]}{one[2]}{one[4:]} {other}")
            case "near, on a date":
                yield EventSearchQuery(near=at, radius_km=50.0, date_from=soon, date_to=soon)
            case _:
                yield EventSearchQuery(q=one[: words.random.randint(1, 5)])


async def _search_postgres(env: Environment, words: Words, figures: dict[str, Figure]) -> None:
    finder = env.app.search

    async def search(query: EventSearchQuery) -> None:
        parsed = parse_search(query)
        parsed = await finder.at(parsed, await finder.point(parsed))
        meaning, hits = await finder.find(parsed)
        if hits:
            await finder.shows([hit.event_id for hit in hits[:20]], parsed, meaning)

    async def suggest(query: EventSearchQuery) -> None:
        words = parse_search(query).words
        await asyncio.gather(finder.suggested_events(words, 8), finder.suggested_venues(words, 4))

    async def look_up(number: int) -> None:
        await env.app.postgres.fetchrow(Q.look_up, number)

    for kind, figure in figures.items():
        plain = [await _time_ms(look_up(1 + n * 37 % EVENTS)) for n in range(QUERIES)]
        call = suggest if kind == "a prefix" else search
        _add(
            figure, [await _time_ms(call(query)) for query in create_queries(kind, words)], plain, P95_MS_MAX
        )


async def _search_http(client: httpx2.AsyncClient, words: Words, figures: dict[str, Figure]) -> None:
    async def get(path: str, **params: object) -> None:
        given = {name: str(value) for name, value in params.items() if value is not None}
        response = await client.get(f"/api/v1{path}", params=given)
        require(response.status_code == 200, f"GET {path}: {response.text}")

    for kind, figure in figures.items():
        plain = [await _time_ms(get(f"/events/{1 + n * 41 % EVENTS}")) for n in range(QUERIES)]
        path = "/search/suggestions" if kind == "a prefix" else "/search"
        names = ("q",) if kind == "a prefix" else ("q", "near", "radius_km", "date_from", "date_to")
        took = [
            await _time_ms(get(path, **{name: getattr(query, name) for name in names}))
            for query in create_queries(kind, words)
        ]
        _add(figure, took, plain, HTTP_P95_MS_MAX)


async def _time_ms(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


def _add(figure: Figure, ours: list[float], plain: list[float], ms_max: float) -> None:
    p50, p95 = _percentiles(ours)
    _, plain_p95 = _percentiles(plain)
    figure.add(1000 / p95, 1000 / plain_p95)
    figure.note = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, at most {ms_max:.0f} ms"


def _percentiles(ms: list[float]) -> tuple[float, float]:
    cuts = quantiles(ms, n=20)
    return cuts[9], cuts[18]
