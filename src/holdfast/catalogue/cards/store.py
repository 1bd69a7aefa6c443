"""Rows of show_card as cards with their availability: all of a page is one question to the seat map."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.catalogue.pages import Counts, EventCard, ShowCard, event_card, show_card
from holdfast.catalogue.store import terms_of
from holdfast.engines.down import EngineDown
from holdfast.engines.meter import meter
from holdfast.engines.sql import Queries

Q = Queries("holdfast.catalogue.cards")
Box = Any  # holdfast.app.Box, which imports us


async def event_cards(
    box: Box, event_ids: Iterable[int], rows: list[Any], totals: dict[int, int] | None = None
) -> list[EventCard]:
    """The events in this order, each with its shows among `rows`."""
    event_ids = list(event_ids)
    events = await box.catalogue.events(event_ids)
    cards: dict[int, list[ShowCard]] = {event_id: [] for event_id in event_ids}
    for card in await show_cards(box, rows):
        cards[card.event_id].append(card)
    if totals is None:
        totals = {row["event_id"]: row["shows_total"] for row in rows}
    return [
        event_card(events[event_id], cards[event_id], totals.get(event_id, 0))
        for event_id in event_ids
        if event_id in events
    ]


async def show_cards(box: Box, rows: list[Any]) -> list[ShowCard]:
    counts = await counts_of(box, [row["show_id"] for row in rows])
    now = datetime.now(UTC)
    return [show_card(row, terms_of(row), counts.get(row["show_id"]), now) for row in rows]


async def counts_of(box: Box, show_ids: list[int]) -> dict[int, Counts]:
    """Seats by state for many shows in one call. Without the seat map a page is told without availability."""
    if not show_ids:
        return {}
    try:
        counts: dict[int, Counts] = await box.seatmap.counts_many(show_ids)
    except EngineDown:
        meter.add("availability_unknown_total")
        return {}
    return counts


async def shows_by_id(box: Box, show_ids: Sequence[int]) -> list[Any]:
    """Rows for `event_cards`, the soonest first."""
    rows: list[Any] = await box.postgres.fetch(Q.shows_by_id, list(show_ids))
    return rows
