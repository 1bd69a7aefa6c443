"""Home, event and venue pages and the choice of a city. Public, cached, apart from the sale (R3, R4)."""

import math
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.catalogue import (
    City,
    EventCard,
    EventPage,
    EventsQuery,
    NoSuchCity,
    cached_event_ids,
    find_events_opening_soon,
    find_trending_events,
    load_event_cards,
    load_event_page,
    load_events_page,
    load_venue_page,
)
from holdfast.errors import Invalid
from holdfast.search import EventSearchQuery, SearchTooSlow, Sort, load_search_page, parse_search
from holdfast.site.cookies import CITY, get_city, safe_path
from holdfast.site.crawlers import ROUTES as CRAWLERS
from holdfast.site.crawlers import build_json_ld, home_url
from holdfast.site.i18n import format_address
from holdfast.site.pages import (
    clear_cookie_header,
    get_localiser,
    read_form,
    redirect,
    render_page,
    render_public_page,
    set_cookie_header,
)
from holdfast.site.search_page import ROUTES as FOUND
from holdfast.site.template_context import build_template_context, ground_ink, today_in, upcoming_shows
from holdfast.site.timetable import build_timetable, group_by_event, venue_days
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App


TONIGHT_MAX, ROW_MAX, SOON_MAX, HEROES_MAX, ALSO_MAX = 12, 10, 6, 5, 8
SHOWS_OF_CARD_MAX = 3
EARTH_KM = 6371.0
routes = RouteTable(tag="site", bare=True)


def read_text(request: Request, name: str) -> str | None:
    return request.query_params.get(name) or None


def read_day(request: Request) -> date | None:
    """The day in the address; what is none is as good as no day."""
    try:
        return date.fromisoformat(request.query_params.get("day", ""))
    except ValueError:
        return None


@routes.get("/")
async def get_home(request: Request) -> Response:
    app, l10n = get_app(request), get_localiser(request)
    if not await app.house.is_open():
        return render_page(request, "browse/closed.html")
    chosen_city = read_text(request, "city") or get_city(request)

    async def make() -> dict[str, Any]:
        now = datetime.now(UTC)
        cities = sort_cities(await app.catalogue.cities(), l10n.locale)
        city = next((each for each in cities if each.slug == chosen_city), None)
        slug = city.slug if city else None
        evening, night = await _next_evening(app, city, now) if city else (None, [])
        trending = await _trending(app, slug)
        featured = await _featured(app, slug)
        heroes = list({card.id: card for card in (*featured, *trending) if card.shows}.values())[:HEROES_MAX]
        return build_template_context(l10n, now) | {
            "city": city,
            "cities": cities,
            "nearest": await _nearest_playing(app, city, cities) if city and not night else [],
            "evening": evening,
            "night": night[:TONIGHT_MAX],
            "night_more": len(night) > TONIGHT_MAX,
            "trending": trending,
            "featured": featured,
            "heroes": heroes,
            "ground": ground_ink(heroes),
            "opening": await _opening(app, slug),
        }

    return await render_public_page(request, "browse/home.html", (chosen_city,), make)


async def _next_evening(app: "App", city: City, now: datetime) -> tuple[date | None, list[Any]]:
    """What is on today in the city and has not begun; else tomorrow; else on the next day with anything."""
    today = today_in(city.timezone, now)
    for day in (today, today + timedelta(days=1), None):
        page = await load_events_page(app, EventsQuery(city=city.slug, date=day, size=40))
        if night := upcoming_shows(page.events, now):
            return night[0][1][0].local_date if day is None else day, night
    return None, []


async def _trending(app: "App", city: str | None) -> list[EventCard]:
    event_ids = (await find_trending_events(app, city))[:ROW_MAX]
    rows = await app.catalogue.shows_playing(event_ids, city=city, each_max=SHOWS_OF_CARD_MAX)
    return [card for card in await load_event_cards(app, event_ids, rows) if card.shows]


async def _featured(app: "App", city: str | None) -> list[EventCard]:
    event_ids = await app.catalogue.featured_events()
    rows = await app.catalogue.shows_playing(event_ids, city=city, each_max=SHOWS_OF_CARD_MAX)
    return [card for card in await load_event_cards(app, event_ids, rows) if card.shows]


async def _opening(app: "App", city: str | None) -> list[EventCard]:
    async def choose() -> list[int]:
        return await find_events_opening_soon(app, city, SOON_MAX)

    event_ids = await cached_event_ids(app, ("opening", city), choose)
    rows = await app.catalogue.shows_playing(event_ids, city=city, each_max=1)
    return [card for card in await load_event_cards(app, event_ids, rows) if card.shows]


def sort_cities(cities: list[City], locale: str) -> list[City]:
    """Cities of the country that the reader's locale names come first: en_IN, de_DE."""
    country = locale.partition("_")[2]
    return sorted(cities, key=lambda city: (city.country != country, city.country, city.name))


async def _nearest_playing(app: "App", city: City, cities: list[City]) -> list[City]:
    """Other cities with something on, the nearest first."""
    playing = await app.catalogue.cities_playing()
    others = [each for each in cities if each.slug != city.slug and each.slug in playing]
    return sorted(others, key=lambda each: _km(city, each))[:SOON_MAX]


def _km(one: City, other: City) -> float:
    lat, far = math.radians(one.lat), math.radians(other.lat)
    lon = math.radians(other.lon - one.lon)
    cosine = math.sin(lat) * math.sin(far) + math.cos(lat) * math.cos(far) * math.cos(lon)
    return EARTH_KM * math.acos(max(-1.0, min(1.0, cosine)))


class CityForm(msgspec.Struct):
    city: str = ""
    back: str = "/"


@routes.post("/city")
async def post_city(request: Request) -> Response:
    """The city is stored for a year; an empty one means all cities. Accepts a name or a slug."""
    data = await read_form(request, CityForm)
    back = safe_path(data.back)
    if not data.city:
        return redirect(back, clear_cookie_header(request, CITY))
    named = data.city.casefold()
    for city in await get_app(request).catalogue.cities():
        if named in (city.slug, city.name.casefold()):
            return redirect(back, set_cookie_header(request, CITY, city.slug))
    raise Invalid(field="city", detail="Expected a city that we sell in.")


@routes.get("/events/{event:int}")
async def get_event(request: Request) -> Response:
    app, l10n, event_id = get_app(request), get_localiser(request), request.path_params["event"]
    city, day, home = read_text(request, "city") or get_city(request), read_day(request), home_url(request)

    async def make() -> dict[str, Any]:
        event = await load_event_page(app, event_id)
        cities = sort_cities(await app.catalogue.cities(), l10n.locale)
        at_home = [each.slug for each in cities if l10n.locale.endswith(each.country)]
        plan = build_timetable(event.shows, [city or "", *at_home], day)
        shows = [show for day_shows in plan.listed for place in day_shows.places for show in place.shows]
        return build_template_context(l10n, datetime.now(UTC)) | {
            "event": event,
            "plan": plan,
            "also": await _similar_events(app, event, plan.here[0].city if plan.here else city),
            "city_names": {each.slug: each.name for each in cities},
            "home": home,
            "json_ld": build_json_ld(event, shows, home),
        }

    return await render_public_page(request, "browse/event.html", (city, day, home), make)


async def _similar_events(app: "App", event: EventPage, city: str | None) -> list[EventCard]:
    """Others of its kind in the city, the most wanted first. Which ones may be half a minute old."""

    async def choose() -> list[int]:
        data = EventSearchQuery(city=city, kind=event.kind, sort=Sort.POPULARITY, size=ALSO_MAX)
        try:
            return [card.id for card in (await load_search_page(app, parse_search(data), 1)).events]
        except (NoSuchCity, SearchTooSlow):
            return []

    chosen = await cached_event_ids(app, ("also", city, event.kind), choose)
    event_ids = [each for each in chosen if each != event.id]
    rows = await app.catalogue.shows_playing(event_ids, city=city, each_max=SHOWS_OF_CARD_MAX)
    return [card for card in await load_event_cards(app, event_ids, rows) if card.shows]


@routes.get("/venues/{venue:int}")
async def get_venue(request: Request) -> Response:
    app, l10n, venue_id = get_app(request), get_localiser(request), request.path_params["venue"]
    day, home = read_day(request), home_url(request)

    async def make() -> dict[str, Any]:
        venue = await load_venue_page(app, venue_id)
        days, chosen = venue_days(venue, day)
        shows = [show for show in venue.shows if show.local_date == chosen]
        events = await app.catalogue.events(list({show.event_id for show in shows}))
        city = next((each for each in await app.catalogue.cities() if each.slug == venue.city), None)
        return build_template_context(l10n, datetime.now(UTC)) | {
            "venue": venue,
            "days": days,
            "chosen": chosen,
            "bill": group_by_event(shows),
            "events": events,
            "city_name": city.name if city else venue.city,
            "country": city.country if city else "",
            "format_address": format_address,
            "home": home,
        }

    return await render_public_page(request, "browse/venue.html", (day, home), make)


ROUTES = (*routes.all, *FOUND, *CRAWLERS)
