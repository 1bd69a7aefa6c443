"""What people go to, and where: cities, venues, halls, events. The limits of each field are here, once.
No I/O.

    city ─► venue ─► hall (with a layout) ─► show ◄─ event

The same limits stand in migrations/0002_catalogue.sql: a form refuses first, the table has the last word.
"""

from enum import StrEnum

from msgspec import Struct

from holdfast.pricing import RefundPolicy


class Kind(StrEnum):
    FILM = "film"
    CONCERT = "concert"
    MATCH = "match"


class City(Struct, frozen=True, kw_only=True):
    id: int
    slug: str
    name: str
    country: str
    timezone: str
    lat: float
    lon: float


class Venue(Struct, frozen=True, kw_only=True):
    id: int
    city_id: int
    city: str
    name: str
    address: str
    postal_code: str
    lat: float
    lon: float


class Hall(Struct, frozen=True, kw_only=True):
    id: int
    venue_id: int
    name: str
    layout_hash: str
    seats: int


class Event(Struct, frozen=True, kw_only=True):
    id: int
    kind: Kind
    title: str
    description: str
    language: str
    genre: str
    rating: float | None
    duration_min: int
    poster: str
    people: list[str]
    featured: bool
    refund_policy: RefundPolicy  # of shows made from now on


def poster_url(event_id: int, poster: str) -> str:
    """An event without a poster of its own has the one we draw (poster.py)."""
    return poster or f"/posters/{event_id}.svg"
