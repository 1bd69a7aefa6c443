"""Events, an event, a venue with what is on there; the API and the site tell the same."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from holdfast.catalogue.cards.store import event_cards, show_cards
from holdfast.catalogue.kept.store import Page
from holdfast.catalogue.pages import Asked, EventPage, EventsPage, VenuePage, event_page
from holdfast.catalogue.store import SHOWS_LISTED_MAX
from holdfast.engines.sql import Queries

Q = Queries("holdfast.catalogue.told")
Box = Any  # holdfast.app.Box, which imports us


async def events_page(box: Box, asked: Asked, each_max: int = SHOWS_LISTED_MAX) -> EventsPage:
    """Events playing in a city on a date, a page of them."""
    event_ids = await box.catalogue.events_playing(asked)
    chosen = event_ids[(asked.page - 1) * asked.size : asked.page * asked.size]
    rows = await box.catalogue.shows_playing(chosen, city=asked.city, day=asked.date, each_max=each_max)
    events = await event_cards(box, chosen, rows)
    return EventsPage(total=len(event_ids), page=asked.page, size=asked.size, events=events)


async def event_told(box: Box, event_id: int) -> EventPage:
    """One event, with all its shows to come."""
    event = await box.catalogue.event(event_id)
    rows = await box.catalogue.shows_of_event(event_id)
    return event_page(event, await show_cards(box, rows), _total(rows))


async def venue_told(box: Box, venue_id: int) -> VenuePage:
    """One venue: where it is, its halls, and the shows to come."""
    venue = await box.catalogue.venue(venue_id)
    rows = await box.catalogue.shows_of_venue(venue_id)
    told = ("id", "city", "timezone", "name", "address", "postal_code", "lat", "lon")
    return VenuePage(
        halls=await box.catalogue.halls_of_venue(venue_id),
        shows=await show_cards(box, rows),
        shows_total=_total(rows),
        **{name: venue[name] for name in told},
    )


async def events_opening(box: Box, city: str | None, limit: int) -> list[int]:
    """Events announced, and not on sale yet anywhere; the next sale first."""
    return [row["event_id"] for row in await box.postgres.fetch(Q.events_opening, city, limit)]


async def chosen_slowly(
    box: Box, key: tuple[Hashable, ...], choose: Callable[[], Awaitable[list[int]]]
) -> list[int]:
    """Numbers of events that are chosen again every half minute, however many ask."""
    kept = await box.catalogue.pages.get(Page(key, choose), is_slow=True)
    return msgspec.json.decode(kept.body, type=list[int])


def _total(rows: list[Any]) -> int:
    return rows[0]["shows_total"] if rows else 0
