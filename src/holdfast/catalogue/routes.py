"""What anybody may read: cities, events, shows, venues. Nobody signs in, and no lock path is asked (R3, R4).

Each answer is made once a second at most, kept as bytes, and the same for everybody. All the availability
of a page is one question to the seat map.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue.cards.store import counts_of, event_cards, show_cards
from holdfast.catalogue.event import Event
from holdfast.catalogue.pages import (
    Asked,
    ChosenEvents,
    CitiesPage,
    EventPage,
    EventsPage,
    ShowPage,
    VenuePage,
    event_page,
    show_page,
    venue_brief,
)
from holdfast.catalogue.poster import poster
from holdfast.catalogue.store import CHOSEN_MAX
from holdfast.refusals import NoSuchCity, NoSuchEvent, NoSuchShow, NoSuchVenue
from holdfast.web.answers import answer, query, unchanged
from holdfast.web.routing import Route

Box = Any  # holdfast.app.Box, which imports us
Make = Callable[[], Awaitable[object]]

# Short enough that counts are under 5 s old for who reads through one more cache, long enough for a stampede.
SECONDS = {"Cache-Control": "public, max-age=1, stale-while-revalidate=2"}
MINUTE = {"Cache-Control": "public, max-age=30, stale-while-revalidate=60"}
# A poster carries a title that somebody typed: drawn as a picture, and as nothing else.
POSTER = {"Cache-Control": "public, max-age=3600", "Content-Security-Policy": "default-src 'none'"}
SHOWS_OF_CHOSEN_MAX = 3


async def get_cities(request: Request) -> Response:
    """The cities we sell in."""
    catalogue = request.state.box.catalogue

    async def make() -> CitiesPage:
        return CitiesPage(cities=await catalogue.cities())

    return await _ready_slow(request, ("cities",), make)


async def get_events(request: Request) -> Response:
    """Events playing in a city on a date, with each show's time, venue, price and availability.

    `city` is a city's slug and `date` a date there; without them, every city and every show from now on.
    """
    box, asked = request.state.box, query(Asked, request)

    async def make() -> EventsPage:
        await _refuse_unknown_city(box, asked.city)
        event_ids = await box.catalogue.events_playing(asked)
        chosen = event_ids[(asked.page - 1) * asked.size : asked.page * asked.size]
        rows = await box.catalogue.shows_playing(chosen, city=asked.city, day=asked.date)
        events = await event_cards(box, chosen, rows)
        return EventsPage(total=len(event_ids), page=asked.page, size=asked.size, events=events)

    return await _ready(request, ("events", asked), make)


async def get_featured_events(request: Request) -> Response:
    """Events the house recommends."""
    catalogue = request.state.box.catalogue

    async def choose() -> list[int]:
        return list(await catalogue.featured_events())

    return await _chosen(request, "featured", choose)


async def get_trending_events(request: Request) -> Response:
    """Events wanted most: those with the most seats held or booked among the shows on sale."""
    box = request.state.box

    async def choose() -> list[int]:
        selling = await box.catalogue.shows_selling()
        counts = await counts_of(box, [show_id for show_id, _ in selling])
        wanted: Counter[int] = Counter()
        for show_id, event_id in selling:
            seen = counts.get(show_id) or {}
            wanted[event_id] += seen.get("H", 0) + seen.get("B", 0)
        return [event_id for event_id, _ in wanted.most_common(CHOSEN_MAX)]

    return await _chosen(request, "trending", choose)


async def get_event(request: Request) -> Response:
    """One event, with all its shows to come."""
    box, event_id = request.state.box, request.path_params["event"]

    async def make() -> EventPage:
        event = await box.catalogue.event(event_id)
        rows = await box.catalogue.shows_of_event(event_id)
        return event_page(event, await show_cards(box, rows), _total(rows))

    return await _ready(request, ("event", event_id), make)


async def get_show(request: Request) -> Response:
    """One show: when, where, for how much, whether it is on sale, and what may be held.

    `layout_url` is the drawing of the hall; it never changes and may be kept for ever.
    """
    box, show_id = request.state.box, request.path_params["show"]

    async def make() -> ShowPage:
        row = await box.catalogue.show_card(show_id)
        show = await box.catalogue.show_on_sale(show_id)
        event = await box.catalogue.event(row["event_id"])
        venue = venue_brief(await box.catalogue.venue(row["venue_id"]))
        counts = (await counts_of(box, [show_id])).get(show_id)
        return show_page(row, show, event=event, venue=venue, counts=counts, now=datetime.now(UTC))

    return await _ready(request, ("show", show_id), make)


async def get_venue(request: Request) -> Response:
    """One venue: where it is, its halls, and the shows to come."""
    box, venue_id = request.state.box, request.path_params["venue"]

    async def make() -> VenuePage:
        venue = await box.catalogue.venue(venue_id)
        rows = await box.catalogue.shows_of_venue(venue_id)
        told = ("id", "city", "timezone", "name", "address", "postal_code", "lat", "lon")
        return VenuePage(
            halls=await box.catalogue.halls_of_venue(venue_id),
            shows=await show_cards(box, rows),
            shows_total=_total(rows),
            **{name: venue[name] for name in told},
        )

    return await _ready(request, ("venue", venue_id), make)


async def get_poster(request: Request) -> Response:
    """The poster we draw for an event that has none: /posters/12.svg."""
    number, _, suffix = request.path_params["poster"].partition(".")
    if not (suffix == "svg" and number.isascii() and number.isdigit() and len(number) <= 18):
        raise NoSuchEvent
    event: Event = await request.state.box.catalogue.event(int(number))
    drawn = poster(event.kind, event.title, event.genre, event.language)
    return Response(drawn, media_type=SVG[0], headers=POSTER)


async def _ready(request: Request, key: tuple[Hashable, ...], make: Make) -> Response:
    page = await request.state.box.catalogue.ready(key, make)
    return unchanged(request, page.etag) or answer(200, page.body, {"ETag": page.etag, **SECONDS})


async def _ready_slow(request: Request, key: tuple[Hashable, ...], make: Make) -> Response:
    page = await request.state.box.catalogue.ready_slow(key, make)
    return unchanged(request, page.etag) or answer(200, page.body, {"ETag": page.etag, **MINUTE})


async def _chosen(request: Request, name: str, choose: Callable[[], Awaitable[list[int]]]) -> Response:
    """Which events they are may be half a minute old; how many seats are left may not."""
    box = request.state.box

    async def make() -> ChosenEvents:
        kept = await box.catalogue.ready_slow((name,), choose)
        event_ids = msgspec.json.decode(kept.body, type=list[int])
        rows = await box.catalogue.shows_playing(event_ids, each_max=SHOWS_OF_CHOSEN_MAX)
        return ChosenEvents(events=await event_cards(box, event_ids, rows))

    return await _ready(request, (name,), make)


async def _refuse_unknown_city(box: Box, slug: str | None) -> None:
    if slug is not None and slug not in {city.slug for city in await box.catalogue.cities()}:
        raise NoSuchCity(city=slug)


def _total(rows: list[Any]) -> int:
    return rows[0]["shows_total"] if rows else 0


TAG = "catalogue"
SVG = ("image/svg+xml",)

ROUTES: tuple[Route, ...] = (
    Route(method="GET", path="/cities", tag=TAG, call=get_cities, answers={200: CitiesPage, 304: None}),
    Route(
        method="GET",
        path="/events",
        tag=TAG,
        call=get_events,
        query=Asked,
        answers={200: EventsPage, 304: None},
        refusals=(NoSuchCity,),
    ),
    Route(
        method="GET",
        path="/events/featured",
        tag=TAG,
        call=get_featured_events,
        answers={200: ChosenEvents, 304: None},
    ),
    Route(
        method="GET",
        path="/events/trending",
        tag=TAG,
        call=get_trending_events,
        answers={200: ChosenEvents, 304: None},
    ),
    Route(
        method="GET",
        path="/events/{event:int}",
        tag=TAG,
        call=get_event,
        answers={200: EventPage, 304: None},
        refusals=(NoSuchEvent,),
    ),
    Route(
        method="GET",
        path="/shows/{show:int}",
        tag=TAG,
        call=get_show,
        answers={200: ShowPage, 304: None},
        refusals=(NoSuchShow,),
    ),
    Route(
        method="GET",
        path="/venues/{venue:int}",
        tag=TAG,
        call=get_venue,
        answers={200: VenuePage, 304: None},
        refusals=(NoSuchVenue,),
    ),
    Route(
        method="GET",
        path="/posters/{poster}",
        tag=TAG,
        call=get_poster,
        bare=True,
        media_types=("image/svg+xml",),
    ),
)
