"""What anybody may read: cities, events, shows, venues. Nobody signs in, and no lock path is asked (R3, R4).

Each answer is made once a second at most, kept as bytes, and the same for everybody. All the availability
of a page is one question to the seat map.
"""

import gzip
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue.errors import NoSuchCity, NoSuchEvent, NoSuchShow, NoSuchVenue
from holdfast.catalogue.event import Event
from holdfast.catalogue.listings import (
    load_event_cards,
    load_event_page,
    load_events_page,
    load_seat_counts,
    load_venue_page,
)
from holdfast.catalogue.poster import render_poster
from holdfast.catalogue.responses import (
    CitiesPage,
    EventCardList,
    EventPage,
    EventsPage,
    EventsQuery,
    ShowPage,
    VenuePage,
    build_show_page,
    build_venue_brief,
)
from holdfast.catalogue.store import CHOSEN_MAX
from holdfast.web.context import get_app
from holdfast.web.response_cache import Page, kept_page, ready_page
from holdfast.web.responses import query, takes_packed
from holdfast.web.routing import RouteTable

if TYPE_CHECKING:
    from holdfast.app import App


# A poster carries a title that somebody typed: drawn as a picture, and as nothing else.
POSTER = {
    "Cache-Control": "public, max-age=3600",
    "Content-Security-Policy": "default-src 'none'",
    "Vary": "Accept-Encoding",
}
SHOWS_OF_CHOSEN_MAX = 3
routes = RouteTable(tag="catalogue")


@routes.get("/cities", peek=ready_page, answers={200: CitiesPage, 304: None})
async def list_cities(request: Request) -> Response:
    """The cities we sell in."""
    catalogue = get_app(request).catalogue

    async def make() -> CitiesPage:
        return CitiesPage(cities=await catalogue.cities())

    return await kept_page(request, ("cities",), make, is_slow=True)


@routes.get(
    "/events",
    peek=ready_page,
    query=EventsQuery,
    answers={200: EventsPage, 304: None},
    refusals=(NoSuchCity,),
)
async def list_events(request: Request) -> Response:
    """Events playing in a city on a date, with each show's time, venue, price and availability.

    `city` is a city's slug and `date` a date there; without them, every city and every show from now on.
    """
    app, asked = get_app(request), query(EventsQuery, request)

    async def make() -> EventsPage:
        await _refuse_unknown_city(app, asked.city)
        return await load_events_page(app, asked)

    return await kept_page(request, ("events", asked), make)


@routes.get("/events/featured", peek=ready_page, answers={200: EventCardList, 304: None})
async def list_featured_events(request: Request) -> Response:
    """Events the house recommends."""
    catalogue = get_app(request).catalogue

    async def choose() -> list[int]:
        return list(await catalogue.featured_events())

    return await _chosen(request, "featured", choose)


@routes.get("/events/trending", peek=ready_page, answers={200: EventCardList, 304: None})
async def list_trending_events(request: Request) -> Response:
    """Events wanted most: those with the most seats held or booked among the shows on sale."""
    app = get_app(request)

    async def choose() -> list[int]:
        selling = await app.catalogue.shows_selling()
        counts = await load_seat_counts(app, [show_id for show_id, _ in selling])
        wanted: Counter[int] = Counter()
        for show_id, event_id in selling:
            seen = counts.get(show_id) or {}
            wanted[event_id] += seen.get("H", 0) + seen.get("B", 0)
        return [event_id for event_id, _ in wanted.most_common(CHOSEN_MAX)]

    return await _chosen(request, "trending", choose)


@routes.get(
    "/events/{event:int}", peek=ready_page, answers={200: EventPage, 304: None}, refusals=(NoSuchEvent,)
)
async def get_event(request: Request) -> Response:
    """One event, with all its shows to come."""
    app, event_id = get_app(request), request.path_params["event"]

    async def make() -> EventPage:
        return await load_event_page(app, event_id)

    return await kept_page(request, ("event", event_id), make)


@routes.get("/shows/{show:int}", peek=ready_page, answers={200: ShowPage, 304: None}, refusals=(NoSuchShow,))
async def get_show(request: Request) -> Response:
    """One show: when, where, for how much, whether it is on sale, and what may be held.

    `layout_url` is the drawing of the hall; it never changes and may be kept for ever.
    """
    app, show_id = get_app(request), request.path_params["show"]

    async def make() -> ShowPage:
        row = await app.catalogue.show_detail(show_id)
        show = await app.catalogue.show_on_sale(show_id)
        event = await app.catalogue.event(row["event_id"])
        venue = build_venue_brief(await app.catalogue.venue(row["venue_id"]))
        counts = (await load_seat_counts(app, [show_id])).get(show_id)
        return build_show_page(row, show, event=event, venue=venue, counts=counts, now=datetime.now(UTC))

    return await kept_page(request, ("show", show_id), make)


@routes.get(
    "/venues/{venue:int}", peek=ready_page, answers={200: VenuePage, 304: None}, refusals=(NoSuchVenue,)
)
async def get_venue(request: Request) -> Response:
    """One venue: where it is, its halls, and the shows to come."""
    app, venue_id = get_app(request), request.path_params["venue"]

    async def make() -> VenuePage:
        return await load_venue_page(app, venue_id)

    return await kept_page(request, ("venue", venue_id), make)


@routes.get("/posters/{poster}", bare=True, media_types=("image/svg+xml",))
async def get_poster(request: Request) -> Response:
    """The poster we draw for an event that has none: /posters/12.svg."""
    number, _, suffix = request.path_params["poster"].partition(".")
    if not (suffix == "svg" and number.isascii() and number.isdigit() and len(number) <= 18):
        raise NoSuchEvent
    event: Event = await get_app(request).catalogue.event(int(number))
    drawn = render_poster(event.kind, event.title, event.genre).encode()
    if takes_packed(request.scope):
        packed = gzip.compress(drawn, mtime=0)  # shapes repeat themselves: a fifth of it is left
        return Response(packed, media_type=SVG[0], headers={**POSTER, "Content-Encoding": "gzip"})
    return Response(drawn, media_type=SVG[0], headers=POSTER)


async def _chosen(request: Request, name: str, choose: Callable[[], Awaitable[list[int]]]) -> Response:
    """Which events they are may be half a minute old; how many seats are left may not."""
    app = get_app(request)

    async def make() -> EventCardList:
        kept = await app.catalogue.pages.get(Page((name,), choose), is_slow=True)
        event_ids = msgspec.json.decode(kept.body, type=list[int])
        rows = await app.catalogue.shows_playing(event_ids, each_max=SHOWS_OF_CHOSEN_MAX)
        return EventCardList(events=await load_event_cards(app, event_ids, rows))

    return await kept_page(request, (name,), make)


async def _refuse_unknown_city(app: "App", slug: str | None) -> None:
    if slug is not None and slug not in {city.slug for city in await app.catalogue.cities()}:
        raise NoSuchCity(city=slug)


SVG = ("image/svg+xml",)

ROUTES = routes.all
