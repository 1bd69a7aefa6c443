"""Adds cities, venues, halls and events by the dozen. Rows that exist already stay as they are.

The forms of organisers add one at a time and check who may; this is for programmes that come as a whole.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.engines.postgres import Queryable, Transaction
from holdfast.engines.sql import Queries

Q = Queries("holdfast.organisers", "bulk")


async def add_cities(tx: Transaction, cities: Iterable[tuple[Any, ...]]) -> None:
    """(slug, name, country, timezone, lat, lon) each."""
    await tx.execute(Q.add_cities, *_columns(cities))


async def add_venues(tx: Transaction, venues: Iterable[tuple[Any, ...]]) -> None:
    """(slug of the city, name, address, postal code, lat, lon) each."""
    await tx.execute(Q.add_venues, *_columns(venues))


async def add_halls(tx: Transaction, halls: Iterable[tuple[str, str, str]]) -> None:
    """(venue, name, hash of the layout) each."""
    await tx.execute(Q.add_halls, *_columns(halls))


async def halls_of(tx: Queryable, venues: Sequence[str]) -> list[Any]:
    rows: list[Any] = await tx.fetch(Q.halls, list(venues))
    return rows


async def add_events(tx: Transaction, organiser_id: int, events: Iterable[tuple[Any, ...]]) -> None:
    """(kind, title, genre, language, minutes, rating, description, featured, people, refund policy) each."""
    await tx.execute(Q.add_events, organiser_id, *_columns(events))


async def events_of(tx: Queryable, organiser_id: int) -> list[Any]:
    rows: list[Any] = await tx.fetch(Q.events, organiser_id)
    return rows


async def price_plans(tx: Queryable, show_ids: Sequence[int]) -> list[Any]:
    rows: list[Any] = await tx.fetch(Q.price_plans, list(show_ids))
    return rows


def _columns(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Arrays for unnest()."""
    return [list(column) for column in zip(*rows, strict=True)]
