"""Loads lists of events, an event page and a venue page; the API and the site show the same data."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.catalogue.errors import NoSuchVenue
from holdfast.catalogue.responses import (
    Counts,
    EventCard,
    EventPage,
    EventsPage,
    EventsQuery,
    ShowCard,
    VenuePage,
    build_event_card,
    build_event_page,
    show_detail,
)
from holdfast.catalogue.store import CHOSEN_MAX, SHOWS_LISTED_MAX, parse_terms
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Queries
from holdfast.web.response_cache import CacheableResponse

if TYPE_CHECKING:
    from holdfast.app import App

Q = Queries("holdfast.catalogue", "listings")


async def load_events_page(app: "App", query: EventsQuery, each_max: int = SHOWS_LISTED_MAX) -> EventsPage:
    """One page of the events that play in a city on a date."""
    event_ids = await app.catalogue.events_playing(query)
    page_ids = event_ids[(query.page - 1) * query.size : query.page * query.size]
    rows = await app.catalogue.shows_playing(page_ids, city=query.city, day=query.date, each_max=each_max)
    events = await load_event_cards(app, page_ids, rows)
    return EventsPage(total=len(event_ids), page=query.page, size=query.size, events=events)


async def load_event_page(app: "App", event_id: int) -> EventPage:
    """One event, with all its upcoming shows."""
    event = await app.catalogue.event(event_id)
    rows = await app.catalogue.shows_of_event(event_id)
    return build_event_page(event, await load_show_cards(app, rows), _total(rows))


async def load_venue_page(app: "App", venue_id: int) -> VenuePage:
    """One venue: where it is, its halls, and its upcoming shows."""
    venue = await app.catalogue.venue(venue_id)
    if not venue["published"]:
        raise NoSuchVenue(venue_id=venue_id)
    rows = await app.catalogue.shows_of_venue(venue_id)
    columns = ("id", "city", "timezone", "name", "address", "postal_code", "lat", "lon")
    return VenuePage(
        halls=await app.catalogue.halls_of_venue(venue_id),
        shows=await load_show_cards(app, rows),
        shows_total=_total(rows),
        **{name: venue[name] for name in columns},
    )


async def find_events_opening_soon(app: "App", city: str | None, limit: int) -> list[int]:
    """Ids of announced events without any show on sale yet; the earliest sale first."""
    return [row["event_id"] for row in await app.postgres.fetch(Q.events_opening, city, limit)]


async def find_trending_events(app: "App", city: str | None = None) -> list[int]:
    """Ids of the events with the most seats held or booked among the shows on sale.

    The one definition of trending, for the API and for pages.
    """

    async def choose() -> list[int]:
        selling = await app.catalogue.shows_selling(city)
        counts = await load_seat_counts(app, [show_id for show_id, _ in selling])
        taken: Counter[int] = Counter()
        for show_id, event_id in selling:
            by_state = counts.get(show_id) or {}
            taken[event_id] += by_state.get("H", 0) + by_state.get("B", 0)
        return [event_id for event_id, _ in taken.most_common(CHOSEN_MAX)]

    return await cached_event_ids(app, ("trending", city), choose)


async def cached_event_ids(
    app: "App", key: tuple[Hashable, ...], choose: Callable[[], Awaitable[list[int]]]
) -> list[int]:
    """Ids of selected events; `choose` runs at most once per half minute, however many callers wait."""
    cached = await app.catalogue.pages.get(CacheableResponse(key, choose), is_slow=True)
    return msgspec.json.decode(cached.body, type=list[int])


def _total(rows: list[Any]) -> int:
    return rows[0]["shows_total"] if rows else 0


async def load_event_cards(
    app: "App", event_ids: Iterable[int], rows: list[Any], totals: dict[int, int] | None = None
) -> list[EventCard]:
    """The events in this order, each with its shows from `rows`."""
    event_ids = list(event_ids)
    events = await app.catalogue.events(event_ids)
    cards: dict[int, list[ShowCard]] = {event_id: [] for event_id in event_ids}
    for card in await load_show_cards(app, rows):
        cards[card.event_id].append(card)
    if totals is None:
        totals = {row["event_id"]: row["shows_total"] for row in rows}
    return [
        build_event_card(events[event_id], cards[event_id], totals.get(event_id, 0))
        for event_id in event_ids
        if event_id in events
    ]


async def load_show_cards(app: "App", rows: list[Any]) -> list[ShowCard]:
    show_ids = [row["show_id"] for row in rows]
    counts, prices = await asyncio.gather(load_seat_counts(app, show_ids), _load_from_prices(app, show_ids))
    now = datetime.now(UTC)
    return [
        show_detail(
            row,
            parse_terms(row),
            counts=counts.get(row["show_id"]),
            offered=prices.get(row["show_id"]),
            now=now,
        )
        for row in rows
    ]


async def _load_from_prices(app: "App", show_ids: list[int]) -> Mapping[int, int | None]:
    """Prices of the cheapest free seats, as the search index has them."""
    if not show_ids:
        return {}
    prices: Mapping[int, int | None] = await app.search_index.from_prices(show_ids)
    return prices


async def load_seat_counts(app: "App", show_ids: list[int]) -> Mapping[int, Counts]:
    """Seats by state for many shows, in one call to each pod. While its Redis is down, there is none."""
    if not app.router.has_pods:
        return await _load_counts_of_pod(app, show_ids)
    by_pod: defaultdict[str, list[int]] = defaultdict(list)
    for show_id in show_ids:
        by_pod[app.router.directory.pod_of(show_id)].append(show_id)
    found = await asyncio.gather(*(_load_counts_of_pod(app, shows) for shows in by_pod.values()))
    return {show_id: counts for some in found for show_id, counts in some.items()}


async def _load_counts_of_pod(app: "App", show_ids: list[int]) -> Mapping[int, Counts]:
    if not show_ids:
        return {}
    try:
        counts: Mapping[int, Counts] = await app.router.for_show(show_ids[0]).seatmap.counts_many(show_ids)
    except EngineDown:
        metrics.add("availability_unknown_total")
        return {}
    return counts


async def load_show_rows(app: "App", show_ids: Sequence[int]) -> list[Any]:
    """Rows for `load_event_cards`, the soonest show first."""
    rows: list[Any] = await app.postgres.fetch(Q.shows_by_id, list(show_ids))
    return rows
