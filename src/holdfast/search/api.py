"""GET /search and its suggestions: anybody may ask, and no lock path is touched (R2, R4)."""

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import City, Kind, NoSuchCity, load_event_cards, load_show_rows
from holdfast.search.errors import NoSuchPostalCode, PageTooDeep, SearchTooSlow
from holdfast.search.parsed import ParsedQuery
from holdfast.search.query import Point, Search, SearchQuery, SuggestionsQuery, parse_search
from holdfast.search.results import (
    Nearby,
    SearchPage,
    SuggestedCity,
    SuggestedEvent,
    SuggestedVenue,
    SuggestionsPage,
    Tally,
)
from holdfast.search.store import Hit, HitShow
from holdfast.search.words import split_words
from holdfast.web.context import get_app
from holdfast.web.response_cache import find_cached, respond_cached
from holdfast.web.responses import query
from holdfast.web.routing import RouteTable

if TYPE_CHECKING:
    from holdfast.app import App


PLACES_SUGGESTED_MAX = 4
routes = RouteTable(tag="search")


@routes.get(
    "/search",
    peek=find_cached,
    query=SearchQuery,
    answers={200: SearchPage, 304: None},
    refusals=(NoSuchCity, NoSuchPostalCode, PageTooDeep, SearchTooSlow),
)
async def search_events(request: Request) -> Response:
    """Events by words, place, time and price, with the shows that fit, and counts by facet.

    Words are looked for in titles, people, places, genres and descriptions, without case and accents; the
    last one may be unfinished. When nothing has them as typed, misspelt ones are corrected (`q_used`); when
    nothing has all of them, results have some (`match`).

    `language` and `genre` are names as the facets tell them. Dates are those of each city. `near` is
    `latitude,longitude`; a `postal_code` stands for the venues that have it. Prices are all-in, in minor
    units; those of several currencies are compared as numbers, so filter by `currency` or `city` with them.

    Follow `next_cursor` to read on: nothing is told twice or missed because something was added meanwhile.
    `page` goes as far as the first 1000 results.
    """
    app, asked = get_app(request), query(SearchQuery, request)
    search = parse_search(asked)

    async def make() -> SearchPage:
        return await load_search_page(app, search, asked.page if asked.cursor is None else None)

    return await respond_cached(request, ("search", asked), make)


@routes.get(
    "/search/suggestions",
    peek=find_cached,
    query=SuggestionsQuery,
    answers={200: SuggestionsPage, 304: None},
    refusals=(SearchTooSlow,),
)
async def get_search_suggestions(request: Request) -> Response:
    """What somebody who has typed this much may be looking for: events, venues and cities."""
    app, asked = get_app(request), query(SuggestionsQuery, request)

    async def make() -> SuggestionsPage:
        words = split_words(asked.q)
        return await _suggestions(app, words, asked.size) if words else _nothing()

    return await respond_cached(request, ("suggestions", asked), make)


async def load_search_page(app: "App", search: Search, number: int | None) -> SearchPage:
    """What a search finds; for the API and for pages alike."""
    city, names = search.filters.city, {known.slug: known.name for known in await app.catalogue.cities()}
    if city is not None and city not in names:
        raise NoSuchCity(field="city", city=city)
    point = await app.search.point(search)
    search = await app.search.at(search, point)
    meaning, hits = await app.search.find(search)
    shown = hits[: search.size]
    shows, tally = await asyncio.gather(_shows(app, shown, search, meaning), _counted(app, search, meaning))
    rows = await load_show_rows(app, [show.show_id for show in shows])
    totals = {show.event_id: show.shows_total for show in shows}
    far = dict(zip(search.filters.venues or (), search.filters.distances_km, strict=False))
    return SearchPage(
        total=0 if meaning.is_hopeless else _total(search, hits, tally),
        page=number,
        size=search.size,
        next_cursor=search.cursor(shown[-1].place) if len(hits) > search.size else None,
        sort=search.sort,
        q_used=" ".join(meaning.words) if meaning.is_corrected or meaning.match == "any" else None,
        match=meaning.match,
        near=_nearby(point, search.radius_km),
        events=await load_event_cards(app, [hit.event_id for hit in shown], rows, totals),
        distances_km={
            str(show.show_id): round(far[show.venue_id], 2) for show in shows if show.venue_id in far
        },
        facets=tally.facets.with_cities(names) if tally else None,
    )


async def _shows(app: "App", shown: list[Hit], search: Search, meaning: ParsedQuery) -> list[HitShow]:
    shows: list[HitShow] = []
    if shown:
        shows = await app.search.shows([hit.event_id for hit in shown], search, meaning)
    return shows


async def _counted(app: "App", search: Search, meaning: ParsedQuery) -> Tally | None:
    tally: Tally | None = None if meaning.is_hopeless else await app.search.tally(search.filters, meaning)
    return tally


async def _suggestions(app: "App", words: list[str], size: int) -> SuggestionsPage:
    events, venues = await asyncio.gather(
        app.search.suggested_events(words, size), app.search.suggested_venues(words, PLACES_SUGGESTED_MAX)
    )
    cities: list[City] = await app.catalogue.cities()
    beginning = [
        SuggestedCity(slug=city.slug, name=city.name)
        for city in cities
        if " ".join(split_words(city.name)).startswith(" ".join(words))
    ]
    return SuggestionsPage(
        events=[SuggestedEvent(**{**row, "kind": Kind(row["kind"])}) for row in events],
        venues=[SuggestedVenue(**row) for row in venues],
        cities=beginning[:PLACES_SUGGESTED_MAX],
    )


def _total(search: Search, hits: list[Hit], tally: Tally | None) -> int | None:
    """As counted some seconds ago, unless this page knows better: it is the last, or beyond that count."""
    seen = search.offset + len(hits)
    if search.after is None and len(hits) <= search.size and (hits or not search.offset):
        return seen
    return max(tally.total, seen) if tally else None


def _nothing() -> SuggestionsPage:
    return SuggestionsPage(events=[], venues=[], cities=[])


def _nearby(point: Point | None, radius_km: float) -> Nearby | None:
    return None if point is None else Nearby(lat=point.lat, lon=point.lon, radius_km=radius_km)


ROUTES = routes.all
