"""Public pages of the catalogue: cities, events, shows, venues. No sign-in; never reads locks (R3, R4).

Each response is built at most once per second, cached as bytes, and the same for every caller. The
availability of all shows on a page is one call to the seat map.
"""

import gzip
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue.errors import NoSuchCity, NoSuchEvent, NoSuchShow, NoSuchVenue
from holdfast.catalogue.event import POSTER_WIDTHS, Event, poster_srcset, poster_url
from holdfast.catalogue.listings import (
    cached_event_ids,
    find_trending_events,
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
from holdfast.web.response_cache import find_cached, respond_cached
from holdfast.web.responses import query, takes_packed
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App


# A poster contains a title that an organiser typed: the policy forbids scripts and everything else.
SVG, WEBP = "image/svg+xml", "image/webp"
POSTER_NAME = re.compile(
    r"(?P<event>[0-9]{1,18})(?:\.svg|-(?P<hash>[0-9a-f]{16})-(?P<width>[0-9]{3})\.webp)", re.ASCII
)
FOR_A_YEAR = "public, max-age=31536000, immutable"  # the address has the hash of the image
POSTER_HEADERS = {
    "Cache-Control": "public, max-age=3600",
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding",
}
SHOWS_PER_EVENT_MAX = 3
routes = RouteTable(tag="catalogue")


@routes.get("/cities", peek=find_cached, answers={200: CitiesPage, 304: None})
async def list_cities(request: Request) -> Response:
    """The cities with events."""
    catalogue = get_app(request).catalogue

    async def load() -> CitiesPage:
        return CitiesPage(cities=await catalogue.cities())

    return await respond_cached(request, ("cities",), load, is_slow=True)


@routes.get(
    "/events",
    peek=find_cached,
    query=EventsQuery,
    answers={200: EventsPage, 304: None},
    refusals=(NoSuchCity,),
)
async def list_events(request: Request) -> Response:
    """Events playing in a city on a date, with each show's time, venue, price and availability.

    `city` is a city's slug and `date` a date there; without them, every city and every show from now on.
    """
    app, events_query = get_app(request), query(EventsQuery, request)

    async def load() -> EventsPage:
        await _refuse_unknown_city(app, events_query.city)
        return await load_events_page(app, events_query)

    return await respond_cached(request, ("events", events_query), load)


@routes.get("/events/featured", peek=find_cached, answers={200: EventCardList, 304: None})
async def list_featured_events(request: Request) -> Response:
    """Events that an admin has featured."""
    app = get_app(request)

    async def load() -> EventCardList:
        event_ids = await cached_event_ids(app, ("featured", None), app.catalogue.featured_events)
        return await _load_event_cards(app, event_ids)

    return await respond_cached(request, ("featured",), load)


@routes.get("/events/trending", peek=find_cached, answers={200: EventCardList, 304: None})
async def list_trending_events(request: Request) -> Response:
    """The most popular events: those with the most seats held or booked among the shows on sale."""
    app = get_app(request)

    async def load() -> EventCardList:
        return await _load_event_cards(app, await find_trending_events(app))

    return await respond_cached(request, ("trending",), load)


@routes.get(
    "/events/{event:int}", peek=find_cached, answers={200: EventPage, 304: None}, refusals=(NoSuchEvent,)
)
async def get_event(request: Request) -> Response:
    """One event, with all its upcoming shows."""
    app, event_id = get_app(request), request.path_params["event"]

    async def load() -> EventPage:
        return await load_event_page(app, event_id)

    return await respond_cached(request, ("event", event_id), load)


@routes.get("/shows/{show:int}", peek=find_cached, answers={200: ShowPage, 304: None}, refusals=(NoSuchShow,))
async def get_show(request: Request) -> Response:
    """One show: time, place, prices, sale state and hold limits.

    `layout_url` is the drawing of the hall; it never changes and may be cached permanently.
    """
    app, show_id = get_app(request), request.path_params["show"]

    async def load() -> ShowPage:
        row = await app.catalogue.show_detail(show_id)
        show = await app.catalogue.public_show(show_id)
        event = await app.catalogue.event(row["event_id"])
        venue = build_venue_brief(await app.catalogue.venue(row["venue_id"]))
        counts = (await load_seat_counts(app, [show_id])).get(show_id)
        return build_show_page(row, show, event=event, venue=venue, counts=counts, now=datetime.now(UTC))

    return await respond_cached(request, ("show", show_id), load)


@routes.get(
    "/venues/{venue:int}", peek=find_cached, answers={200: VenuePage, 304: None}, refusals=(NoSuchVenue,)
)
async def get_venue(request: Request) -> Response:
    """One venue: where it is, its halls, and its upcoming shows."""
    app, venue_id = get_app(request), request.path_params["venue"]

    async def load() -> VenuePage:
        return await load_venue_page(app, venue_id)

    return await respond_cached(request, ("venue", venue_id), load)


@routes.get("/posters/{poster}", bare=True, media_types=(SVG, WEBP))
async def get_poster(request: Request) -> Response:
    """An uploaded poster, /posters/12-<hash>-480.webp, or the generated one, /posters/12.svg."""
    name = POSTER_NAME.fullmatch(request.path_params["poster"])
    if name is None:
        raise NoSuchEvent
    event_id, content_hash = int(name["event"]), name["hash"]
    if content_hash is not None:
        return await _uploaded_poster(get_app(request), event_id, content_hash, int(name["width"]))
    event: Event = await get_app(request).catalogue.event(event_id)
    svg = render_poster(event.kind, event.title, event.genre).encode()
    if takes_packed(request.scope):
        packed = gzip.compress(svg, mtime=0)  # to a fifth: shapes repeat
        return Response(packed, media_type=SVG, headers={**POSTER_HEADERS, "Content-Encoding": "gzip"})
    return Response(svg, media_type=SVG, headers=POSTER_HEADERS)


async def _uploaded_poster(app: "App", event_id: int, content_hash: str, width: int) -> Response:
    """The image; one that was replaced or removed leads to the current poster, for pages loaded before."""
    if width not in POSTER_WIDTHS:
        raise NoSuchEvent
    if (image := await app.catalogue.poster_image(event_id, content_hash, width)) is not None:
        return Response(image, media_type=WEBP, headers={**POSTER_HEADERS, "Cache-Control": FOR_A_YEAR})
    event = await app.catalogue.event(event_id)
    url = poster_url(event_id, event.poster)
    there = poster_srcset(url).get(width, url)
    return Response(status_code=302, headers={"Location": there, "Cache-Control": "public, max-age=60"})


async def _load_event_cards(app: "App", event_ids: list[int]) -> EventCardList:
    """The ids may be half a minute old; the seats left are loaded with every response."""
    rows = await app.catalogue.shows_playing(event_ids, each_max=SHOWS_PER_EVENT_MAX)
    return EventCardList(events=await load_event_cards(app, event_ids, rows))


async def _refuse_unknown_city(app: "App", slug: str | None) -> None:
    if slug is not None and slug not in {city.slug for city in await app.catalogue.cities()}:
        raise NoSuchCity(city=slug)


ROUTES = routes.all
