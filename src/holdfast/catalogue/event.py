"""What people go to, and where: cities, venues, halls, events. The limits of each field are here, once.

    city ─► venue ─► hall (with a layout) ─► show ◄─ event

The same limits stand in migrations/0002_catalogue.sql: a form refuses first, the table has the last word.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.catalogue.policy import RefundPolicy


class Kind(StrEnum):
    FILM = "film"
    CONCERT = "concert"
    MATCH = "match"


# A NUL cannot be stored in PostgreSQL, and a line break in a name breaks every page that shows it.
ONE_LINE = r"^[^\x00-\x1f\x7f]*$(?!\n)"
SOME_LINES = r"^[^\x00]*$"

Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Slug = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$(?!\n)", max_length=60)]
Name = Annotated[str, Meta(min_length=1, max_length=120, pattern=ONE_LINE)]
Title = Annotated[str, Meta(min_length=1, max_length=160, pattern=ONE_LINE)]
Word = Annotated[str, Meta(max_length=60, pattern=ONE_LINE)]
Address = Annotated[str, Meta(max_length=300, pattern=ONE_LINE)]
PostalCode = Annotated[str, Meta(max_length=16, pattern=ONE_LINE)]
Country = Annotated[str, Meta(pattern=r"^[A-Z]{2}$", max_length=2)]
Timezone = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+/-]{1,60}$(?!\n)")]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Description = Annotated[str, Meta(max_length=4000, pattern=SOME_LINES)]
Rating = Annotated[float, Meta(ge=0, le=10)]
Minutes = Annotated[int, Meta(ge=1, le=1440)]
People = Annotated[list[Name], Meta(max_length=20)]
# Only https or a path of ours: a poster is shown on every page, and a javascript: address must not be.
PosterUrl = Annotated[
    str, Meta(max_length=500, pattern=r"^$|^https://[^\x00-\x20\x7f]+$|^/posters/[0-9]+\.svg$")
]


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


def poster_of(event_id: int, poster: str) -> str:
    """An event without a poster of its own has the one we draw (poster.py)."""
    return poster or f"/posters/{event_id}.svg"
