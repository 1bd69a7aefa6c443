"""Requests and responses of organisers and admins. Unknown fields are refused. No I/O.

A `New…` creates something. A `…Change` changes the fields that are sent; the others are UNSET. Buyers see
that a seat is blocked, but not the block itself.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.catalogue import City, Event, Hall, Kind, Venue
from holdfast.errors import Invalid
from holdfast.fields import (
    ONE_LINE,
    Address,
    AwareDatetime,
    Country,
    Description,
    Id,
    Latitude,
    Longitude,
    Minutes,
    Name,
    People,
    PostalCode,
    PosterAlt,
    PosterUrl,
    Rating,
    ShortText,
    Slug,
    Timezone,
    Title,
)
from holdfast.pricing import DEFAULT_REFUND_POLICY, RefundPolicy

LayoutHash = Annotated[str, Meta(pattern=r"^[0-9a-f]{8,128}$(?!\n)")]


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    def given(self) -> dict[str, Any]:
        """The fields that were sent."""
        sent = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in sent.items() if value is not UNSET}


class Paging(Form, frozen=True, kw_only=True):
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class HallsQuery(Paging, frozen=True, kw_only=True):
    venue: Id | None = None


class NewLayoutQuery(Form, frozen=True, kw_only=True):
    grows_from: LayoutHash | None = None
    name: Annotated[str, Meta(min_length=1, max_length=60, pattern=ONE_LINE)] = "Hall"


class NewCity(Form, frozen=True, kw_only=True):
    slug: Slug
    name: Name
    country: Country
    timezone: Timezone
    lat: Latitude
    lon: Longitude


class CityChange(Form, frozen=True, kw_only=True):
    slug: Slug | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    country: Country | UnsetType = UNSET
    timezone: Timezone | UnsetType = UNSET
    lat: Latitude | UnsetType = UNSET
    lon: Longitude | UnsetType = UNSET


class NewVenue(Form, frozen=True, kw_only=True):
    city_id: Id
    name: Name
    address: Address = ""
    postal_code: PostalCode
    lat: Latitude
    lon: Longitude
    published: bool = True  # false: a draft, which only you see


class VenueChange(Form, frozen=True, kw_only=True):
    city_id: Id | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    address: Address | UnsetType = UNSET
    postal_code: PostalCode | UnsetType = UNSET
    lat: Latitude | UnsetType = UNSET
    lon: Longitude | UnsetType = UNSET
    published: bool | UnsetType = UNSET  # false: hidden, with its shows


class NewHall(Form, frozen=True, kw_only=True):
    venue_id: Id
    name: Name
    layout_hash: LayoutHash


class HallChange(Form, frozen=True, kw_only=True):
    """A new layout applies to new shows; existing ones keep theirs."""

    name: Name | UnsetType = UNSET
    layout_hash: LayoutHash | UnsetType = UNSET


class NewEvent(Form, frozen=True, kw_only=True):
    kind: Kind
    title: Title
    description: Description = ""
    language: ShortText = ""
    genre: ShortText = ""
    rating: Rating | None = None
    duration_min: Minutes
    poster: PosterUrl = ""  # PUT /admin/events/{event}/poster uploads one
    poster_alt: PosterAlt = ""  # what it shows, for people who do not see it
    people: People = []
    featured: bool = False
    published: bool = True  # false: a draft, which only you see
    refund_policy: RefundPolicy = DEFAULT_REFUND_POLICY


class EventChange(Form, frozen=True, kw_only=True):
    """A new `refund_policy` applies to new shows; existing ones keep theirs."""

    kind: Kind | UnsetType = UNSET
    title: Title | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    language: ShortText | UnsetType = UNSET
    genre: ShortText | UnsetType = UNSET
    rating: Rating | UnsetType | None = UNSET
    duration_min: Minutes | UnsetType = UNSET
    poster: PosterUrl | UnsetType = UNSET  # empty: the generated one
    poster_alt: PosterAlt | UnsetType = UNSET
    people: People | UnsetType = UNSET
    featured: bool | UnsetType = UNSET
    published: bool | UnsetType = UNSET  # false: hidden, with its shows
    refund_policy: RefundPolicy | UnsetType = UNSET


class ManagedVenue(Venue, frozen=True, kw_only=True):
    organiser_id: int | None
    published: bool = True


class ManagedEvent(Event, frozen=True, kw_only=True):
    organiser_id: int
    published: bool = True


class StoredLayout(Struct, frozen=True, kw_only=True):
    hash: str
    name: str
    seats: int


class CityList(Struct, frozen=True, kw_only=True):
    total: int
    cities: list[City]


class VenueList(Struct, frozen=True, kw_only=True):
    total: int
    venues: list[ManagedVenue]


class HallList(Struct, frozen=True, kw_only=True):
    total: int
    halls: list[Hall]


class LayoutList(Struct, frozen=True, kw_only=True):
    total: int
    layouts: list[StoredLayout]


class EventList(Struct, frozen=True, kw_only=True):
    total: int
    events: list[ManagedEvent]


BLOCK_SEATS_MAX = 1000  # per block; a whole stand needs several
BLOCKS_MAX = 500  # in one show

Label = Annotated[str, Meta(min_length=1, max_length=200)]
Labels = Annotated[list[Label], Meta(min_length=1, max_length=BLOCK_SEATS_MAX)]
BlockName = Annotated[str, Meta(min_length=1, max_length=100, examples=["sponsor"])]
Hours = Annotated[int, Meta(ge=1, le=24 * 366)]


class NewBlock(Struct, forbid_unknown_fields=True, frozen=True):
    """At `release_at`, or `release_hours_before` the start, the seats go on sale automatically."""

    seats: Labels
    name: BlockName  # for whom, or why
    release_at: AwareDatetime | None = None
    release_hours_before: Hours | None = None


class BlockChange(Struct, forbid_unknown_fields=True, frozen=True):
    """Omitted fields stay unchanged; a release of null removes it. Send one of the release fields."""

    name: BlockName | UnsetType = UNSET
    release_at: AwareDatetime | UnsetType | None = UNSET
    release_hours_before: Hours | UnsetType | None = UNSET


class ReleaseRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Seats of the block to put on sale; all of them if omitted."""

    seats: Labels | None = None


class Block(Struct, frozen=True):
    block_id: str
    name: str
    seats: list[str]
    made_at: datetime | None = None
    release_at: datetime | None = None  # then they go on sale
    release_hours_before: int | None = None  # set by the organiser: the release moves with the show
    withdrawn: bool = False  # permanently: no longer part of the hall


class BlockList(Struct, frozen=True):
    blocks: list[Block]


class BlockRelease(Struct, frozen=True):
    """When blocked seats go on sale; both None: only by hand."""

    at: datetime | None = None
    hours_before: int | None = None


def parse_release(
    at: datetime | UnsetType | None, hours: int | UnsetType | None, *, starts_at: datetime, now: datetime
) -> BlockRelease:
    """The requested release as an instant. Refuses contradictory and past values."""
    at = None if isinstance(at, UnsetType) else at
    hours = None if isinstance(hours, UnsetType) else hours
    if at is not None and hours is not None:
        raise Invalid(field="release_at", detail="Expected release_at or release_hours_before, not both.")
    instant = at if hours is None else starts_at - timedelta(hours=hours)
    if instant is not None and instant <= now:
        field = "release_at" if hours is None else "release_hours_before"
        raise Invalid(field=field, detail=f"That is {instant.isoformat()}, which has passed.")
    return BlockRelease(instant, hours)
