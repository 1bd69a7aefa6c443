"""GET /search and its suggestions: public, and never reads locks (R2, R4)."""

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import City, Kind, NoSuchCity, load_event_cards, load_show_rows
from holdfast.search.errors import NoSuchPostalCode, PageTooDeep, SearchTooSlow
from holdfast.search.query import (
    WORDS_MAX,
    EventSearchQuery,
    ParsedQuery,
    Point,
    Search,
    SuggestionsQuery,
    parse_search,
)
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
from holdfast.web.response_cache import find_cached, respond_cached
from holdfast.web.responses import query
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App


PLACES_SUGGESTED_MAX = 4
routes = RouteTable(tag="search")


@routes.get(
    "/search",
    peek=find_cached,
    query=EventSearchQuery,
    answers={200: SearchPage, 304: None},
    refusals=(NoSuchCity, NoSuchPostalCode, PageTooDeep, SearchTooSlow),
)
async def search_events(request: Request) -> Response:
    """Events by words, place, time and price, with the shows that fit, and counts by facet.

    Words are matched in titles, people, places, genres and descriptions, ignoring case and accents; the last
    one may be incomplete. If nothing matches, misspelt words are corrected (`q_used`); if nothing matches all
    words, results match some of them (`match`).

    `language` and `genre` are values from the facets. Dates are local to each city. `near` is
    `latitude,longitude`; a `postal_code` stands for the venues that have it. Prices include fee and tax, in
    minor units; prices in different currencies are compared as numbers, so also filter by `currency` or
    `city`.

    Follow `next_cursor` for more: no result is repeated or skipped because the catalogue changes meanwhile.
    `page` reaches only the first 1000 results.
    """
    app, search_query = get_app(request), query(EventSearchQuery, request)
    search = parse_search(search_query)

    async def load() -> SearchPage:
        return await load_search_page(app, search, search_query.page if search_query.cursor is None else None)

    return await respond_cached(request, ("search", search_query), load)


@routes.get(
    "/search/suggestions",
    peek=find_cached,
    query=SuggestionsQuery,
    answers={200: SuggestionsPage, 304: None},
    refusals=(SearchTooSlow,),
)
async def get_search_suggestions(request: Request) -> Response:
    """Events, venues and cities that match an incomplete query.

    If nothing matches, misspelt words are corrected as search corrects them (`q_used`).
    """
    app, suggestions_query = get_app(request), query(SuggestionsQuery, request)

    async def load() -> SuggestionsPage:
        words = split_words(suggestions_query.q)[:WORDS_MAX]
        return await _load_suggestions(app, words, suggestions_query.size) if words else _no_suggestions()

    return await respond_cached(request, ("suggestions", suggestions_query), load)


async def load_search_page(app: "App", search: Search, number: int | None) -> SearchPage:
    """The results of a search, for the API and for pages."""
    city, names = search.filters.city, {known.slug: known.name for known in await app.catalogue.cities()}
    if city is not None and city not in names:
        raise NoSuchCity(field="city", city=city)
    point = await app.search.point(search)
    search = await app.search.at(search, point)
    parsed, hits = await app.search.find(search)
    shown = hits[: search.size]
    shows, tally = await asyncio.gather(
        _load_shows(app, shown, search, parsed), _load_tally(app, search, parsed)
    )
    found = await load_show_rows(app, [show.show_id for show in shows])
    rows = [row for row in found if not row["hidden"]]  # the index follows seconds later
    totals = {show.event_id: show.shows_total for show in shows}
    distance_km = dict(zip(search.filters.venues or (), search.filters.distances_km, strict=False))
    return SearchPage(
        total=0 if parsed.has_no_match else _total(search, hits, tally),
        page=number,
        size=search.size,
        next_cursor=search.cursor(shown[-1].place) if len(hits) > search.size else None,
        sort=search.sort,
        q_used=" ".join(parsed.words) if parsed.is_corrected or parsed.match == "any" else None,
        match=parsed.match,
        near=_nearby(point, search.radius_km),
        events=await load_event_cards(app, [hit.event_id for hit in shown], rows, totals),
        distances_km={
            str(show.show_id): round(distance_km[show.venue_id], 2)
            for show in shows
            if show.venue_id in distance_km
        },
        facets=tally.facets.with_cities(names) if tally else None,
    )


async def _load_shows(app: "App", shown: list[Hit], search: Search, parsed: ParsedQuery) -> list[HitShow]:
    shows: list[HitShow] = []
    if shown:
        shows = await app.search.shows([hit.event_id for hit in shown], search, parsed)
    return shows


async def _load_tally(app: "App", search: Search, parsed: ParsedQuery) -> Tally | None:
    tally: Tally | None = None if parsed.has_no_match else await app.search.tally(search.filters, parsed)
    return tally


async def _load_suggestions(app: "App", words: list[str], size: int) -> SuggestionsPage:
    events, venues = await asyncio.gather(
        app.search.suggested_events(words, size), app.search.suggested_venues(words, PLACES_SUGGESTED_MAX)
    )
    cities: list[City] = await app.catalogue.cities()
    beginning = [
        SuggestedCity(slug=city.slug, name=city.name)
        for city in cities
        if " ".join(split_words(city.name)).startswith(" ".join(words))
    ]
    if not (events or venues or beginning):
        return await _load_corrected_suggestions(app, tuple(words), size)
    return _suggestions(events, venues, beginning[:PLACES_SUGGESTED_MAX])


async def _load_corrected_suggestions(app: "App", words: tuple[str, ...], size: int) -> SuggestionsPage:
    """What search itself would find for misspelt words."""
    parsed: ParsedQuery = await app.search.interpret(words)
    if parsed.has_no_match or parsed.words == words:
        return _no_suggestions()
    events, venues = await asyncio.gather(
        app.search.corrected_events(parsed, size),
        app.search.suggested_venues(parsed.words, PLACES_SUGGESTED_MAX),
    )
    return _suggestions(events, venues, [], " ".join(parsed.words))


def _suggestions(
    events: list[Any], venues: list[Any], cities: list[SuggestedCity], q_used: str | None = None
) -> SuggestionsPage:
    return SuggestionsPage(
        q_used=q_used,
        events=[SuggestedEvent(**{**row, "kind": Kind(row["kind"])}) for row in events],
        venues=[SuggestedVenue(**row) for row in venues],
        cities=cities,
    )


def _total(search: Search, hits: list[Hit], tally: Tally | None) -> int | None:
    """The cached total, unless this page is the last one or lies beyond that total."""
    seen = search.offset + len(hits)
    if search.after is None and len(hits) <= search.size and (hits or not search.offset):
        return seen
    return max(tally.total, seen) if tally else None


def _no_suggestions() -> SuggestionsPage:
    return SuggestionsPage(events=[], venues=[], cities=[])


def _nearby(point: Point | None, radius_km: float) -> Nearby | None:
    return None if point is None else Nearby(lat=point.lat, lon=point.lon, radius_km=radius_km)


ROUTES = routes.all
