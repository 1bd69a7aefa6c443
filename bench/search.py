"""Figures of search: a large programme, four kinds of questions, in the database and over HTTP.

Each figure is the slowest of twenty (p95) as answers a second, against looking up one row by its key on the
same connection; over HTTP, against the page of one event. The bar is 25 ms, in the units of the run.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from statistics import quantiles

import httpx2

from bench.environment import Stage, stage, workers
from bench.figure import Figure
from bench.search_data import CITIES, Q, Words, make_programme, place, settle
from holdfast.search.parsed import ANYTHING
from holdfast.search.query import SearchQuery, parse_search

EVENTS = int(os.environ.get("BENCH_EVENTS", "200000"))
ASKED = 200  # of each kind, all different: nothing is answered from a cache
P95_MS_MAX = 25.0
HTTP_P95_MS_MAX = 100.0
KINDS = ("two words", "a typo", "near, on a date", "a prefix")

Say = Callable[[str], None]
Ask = Callable[[SearchQuery], Awaitable[None]]


async def search_figures(rounds: int, say: Say) -> list[Figure]:
    in_database = {kind: _figure(f"search: {kind}", "a row by its key") for kind in KINDS}
    over_http = {kind: _figure(f"GET /search: {kind}", "GET /events/1 and so on") for kind in KINDS}
    async with stage() as on:
        words = Words()
        say(f"{EVENTS} events, {EVENTS * 5} shows")
        await make_programme(on.config.database_url, words, EVENTS)
        began = time.monotonic()
        await on.app.search_index.reindex(lambda _what, done, total: say(f"reindex: {done} of {total}"))
        await settle(on.config.database_url)
        took = time.monotonic() - began
        counted_ms = await _timed(on.app.search.count_all())
        facets_ms = await _timed(on.app.search.tally(parse_search(SearchQuery()).filters, ANYTHING))
        for _ in range(rounds):
            await _in_database(on, words, in_database, say)
        async with workers(on, 2) as url, httpx2.AsyncClient(base_url=url) as client:
            for _ in range(rounds):
                await _over_http(client, words, over_http, say)
        notes = (
            f"reindex {EVENTS / took:,.0f} events/s",
            f"facets {facets_ms:.1f} ms",
            f"counted {counted_ms:.0f} ms",
        )
        in_database["two words"].note += "; " + ", ".join(notes)
    return [*in_database.values(), *over_http.values()]


def _figure(name: str, reference: str) -> Figure:
    return Figure(name, "a second at p95", reference, 0.0)


def questions(kind: str, words: Words) -> Iterator[SearchQuery]:
    for _ in range(ASKED):
        one, other = words.random.sample(words.random.choice(words.titles), 2)  # of one title
        soon = datetime.now(UTC).date() + timedelta(days=words.random.randint(1, 50))
        at = place(words.random.randint(1, CITIES))
        match kind:
            case "two words":
                yield SearchQuery(q=f"{one} {other}")
            case "a typo":
                yield SearchQuery(q=f"{one[:2]}{one[3:2:-1]}{one[2]}{one[4:]} {other}")
            case "near, on a date":
                yield SearchQuery(near=at, radius_km=50.0, date_from=soon, date_to=soon)
            case _:
                yield SearchQuery(q=one[: words.random.randint(1, 5)])


async def _in_database(on: Stage, words: Words, figures: dict[str, Figure], say: Say) -> None:
    finder = on.app.search

    async def ask(asked: SearchQuery) -> None:
        search = parse_search(asked)
        search = await finder.at(search, await finder.point(search))
        meaning, hits = await finder.find(search)
        if hits:
            await finder.shows([hit.event_id for hit in hits[:20]], search, meaning)

    async def suggest(asked: SearchQuery) -> None:
        words = parse_search(asked).words
        await asyncio.gather(finder.suggested_events(words, 8), finder.suggested_venues(words, 4))

    async def look_up(number: int) -> None:
        await on.app.postgres.fetchrow(Q.look_up, number)

    for kind, figure in figures.items():
        say(f"in the database: {kind}")
        plain = [await _timed(look_up(1 + n * 37 % EVENTS)) for n in range(ASKED)]
        call = suggest if kind == "a prefix" else ask
        _add(figure, [await _timed(call(asked)) for asked in questions(kind, words)], plain, P95_MS_MAX)


async def _over_http(client: httpx2.AsyncClient, words: Words, figures: dict[str, Figure], say: Say) -> None:
    async def get(path: str, **params: object) -> None:
        kept = {name: str(value) for name, value in params.items() if value is not None}
        answer = await client.get(f"/api/v1{path}", params=kept)
        assert answer.status_code == 200, answer.text

    for kind, figure in figures.items():
        say(f"over HTTP: {kind}")
        plain = [await _timed(get(f"/events/{1 + n * 41 % EVENTS}")) for n in range(ASKED)]
        path = "/search/suggestions" if kind == "a prefix" else "/search"
        names = ("q",) if kind == "a prefix" else ("q", "near", "radius_km", "date_from", "date_to")
        took = [
            await _timed(get(path, **{name: getattr(asked, name) for name in names}))
            for asked in questions(kind, words)
        ]
        _add(figure, took, plain, HTTP_P95_MS_MAX)


async def _timed(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1000


def _add(figure: Figure, ours: list[float], plain: list[float], most_ms: float) -> None:
    p50, p95 = _percentiles(ours)
    _, plain_p95 = _percentiles(plain)
    figure.add(1000 / p95, 1000 / plain_p95)
    figure.note = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, at most {most_ms:.0f} ms"
    figure.bar = max(figure.bar, (1000 / most_ms) / (1000 / plain_p95))


def _percentiles(ms: list[float]) -> tuple[float, float]:
    cuts = quantiles(ms, n=20)
    return cuts[9], cuts[18]
