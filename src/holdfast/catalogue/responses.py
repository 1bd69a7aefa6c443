"""Response types of the public catalogue, and how rows become them. No I/O."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.catalogue.event import (
    City,
    Event,
    Hall,
    Kind,
    OrphanRule,
    SaleState,
    ShowOnSale,
    poster_url,
    sale_state,
)
from holdfast.fields import Slug
from holdfast.pricing import PriceLines, RefundTerms, Terms, build_refund_terms

Day = date  # `EventsQuery.date` hides the name of its own type
Counts = Mapping[str, int] | None  # state letter of the seat map → seats; None: the seat map is unavailable


class EventsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Query parameters of GET /events: a city, a date in that city, a kind."""

    city: Slug | None = None
    date: Day | None = None
    kind: Kind | None = None
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=100)] = 20


class Availability(Struct, frozen=True, kw_only=True):
    """Seats by state; a few seconds old."""

    seats: int
    available: int
    held: int
    booked: int
    blocked: int


class ShowCard(Struct, frozen=True, kw_only=True):
    show_id: int
    event_id: int
    title: str
    starts_at: datetime
    ends_at: datetime
    opens_at: datetime
    closes_at: datetime
    local_date: date
    timezone: str
    city: str
    venue_id: int
    venue: str
    hall: str
    sale_state: SaleState
    currency: str
    # Of the cheapest free seat, including fee and tax as every price; null: sold out, over or cancelled.
    from_price_minor: int | None
    from_lines: PriceLines | None  # how that price is composed
    refund: RefundTerms
    availability: Availability | None


class EventCard(Struct, frozen=True, kw_only=True):
    id: int
    kind: Kind
    title: str
    language: str
    genre: str
    rating: float | None
    duration_min: int
    poster: str
    poster_alt: str  # what the poster shows; empty: only the title is known
    shows_total: int
    shows: list[ShowCard]


class CitiesPage(Struct, frozen=True, kw_only=True):
    cities: list[City]


class EventsPage(Struct, frozen=True, kw_only=True):
    total: int
    page: int
    size: int
    events: list[EventCard]


class EventCardList(Struct, frozen=True, kw_only=True):
    events: list[EventCard]


class EventPage(Struct, frozen=True, kw_only=True):
    id: int
    kind: Kind
    title: str
    description: str
    language: str
    genre: str
    rating: float | None
    duration_min: int
    poster: str
    poster_alt: str  # what the poster shows; empty: only the title is known
    people: list[str]
    shows_total: int
    shows: list[ShowCard]


class VenuePage(Struct, frozen=True, kw_only=True):
    id: int
    city: str
    timezone: str
    name: str
    address: str
    postal_code: str
    lat: float
    lon: float
    halls: list[Hall]
    shows_total: int
    shows: list[ShowCard]


class VenueBrief(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    city: str
    timezone: str
    address: str
    postal_code: str
    lat: float
    lon: float


class EventBrief(Struct, frozen=True, kw_only=True):
    id: int
    kind: Kind
    title: str
    language: str
    genre: str
    rating: float | None
    duration_min: int
    poster: str
    poster_alt: str  # what the poster shows; empty: only the title is known


class CategoryPrice(Struct, frozen=True, kw_only=True):
    """Price of one seat of a category. Base, fee and tax add up to it.

    `moves`: the price follows rules, by time or by seats sold. Then `until` is when time changes it next, and
    `then_minor` the price after that if nothing more is sold.
    """

    category: str
    colour: str
    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int
    moves: bool = False
    until: datetime | None = None
    then_minor: int | None = None


class ShowPage(Struct, frozen=True, kw_only=True):
    show_id: int
    title: str
    event: EventBrief
    venue: VenueBrief
    hall: str
    starts_at: datetime
    ends_at: datetime
    opens_at: datetime
    closes_at: datetime
    local_date: date
    sale_state: SaleState
    currency: str
    prices: list[CategoryPrice]
    tax_bp: int  # tax rate within the prices, in basis points
    refund: RefundTerms
    layout_hash: str
    layout_url: str
    hold_ttl_s: int
    order_seats_max: int
    owner_seats_max: int
    card_seats_max: int | None  # seats that one payment card may buy; null: no limit
    orphan_rule: OrphanRule
    availability: Availability | None
    revision: int


def availability(seats: int, counts: Counts) -> Availability | None:
    if counts is None:
        return None
    held, booked, blocked = counts.get("H", 0), counts.get("B", 0), counts.get("X", 0)
    return Availability(
        seats=seats, available=seats - held - booked - blocked, held=held, booked=booked, blocked=blocked
    )


def show_detail(
    row: Mapping[str, Any], terms: Terms, *, counts: Counts, offered: int | None, now: datetime
) -> ShowCard:
    """`offered`: the price of the cheapest free seat; None if it is unknown."""
    free = availability(row["seats"], counts)
    state = _state(row, free, now)
    price: int | None = None
    if state in (SaleState.ON_SALE, SaleState.UPCOMING):
        price = row["from_price_minor"] if offered is None else offered
    known = dict(row) | {
        "availability": free,
        "sale_state": state,
        "from_price_minor": price,
        "from_lines": None if price is None else terms.lines(price),
        "refund": build_refund_terms(terms.refund_policy, row["starts_at"]),
    }
    return ShowCard(**{name: known[name] for name in ShowCard.__struct_fields__})


def build_event_card(event: Event, shows: list[ShowCard], shows_total: int) -> EventCard:
    return EventCard(shows=shows, shows_total=shows_total, **_brief(event))


def build_event_page(event: Event, shows: list[ShowCard], shows_total: int) -> EventPage:
    return EventPage(
        description=event.description,
        people=event.people,
        shows=shows,
        shows_total=shows_total,
        **_brief(event),
    )


def build_show_page(
    row: Mapping[str, Any],
    show: ShowOnSale,
    *,
    event: Event,
    venue: VenueBrief,
    counts: Counts,
    now: datetime,
) -> ShowPage:
    free = availability(row["seats"], counts)
    known = dict(row) | {
        "event": EventBrief(**_brief(event)),
        "venue": venue,
        "sale_state": _state(row, free, now),
        "prices": build_price_list(show),
        "refund": build_refund_terms(show.terms.refund_policy, row["starts_at"]),
        "layout_url": f"/api/v1/shows/{row['show_id']}/layout?v={row['layout_hash']}",
        "orphan_rule": OrphanRule(row["orphan_rule"]),
        "availability": free,
    }
    return ShowPage(**{name: known[name] for name in ShowPage.__struct_fields__})


def build_venue_brief(row: Mapping[str, Any]) -> VenueBrief:
    return VenueBrief(**{name: row[name] for name in VenueBrief.__struct_fields__})


def build_price_list(show: ShowOnSale) -> list[CategoryPrice]:
    return [
        CategoryPrice(
            category=category.name,
            colour=category.colour,
            moves=category.name in show.moving,
            until=soon.until if (soon := show.moving.get(category.name)) else None,
            then_minor=soon.then_minor if soon else None,
            **msgspec.structs.asdict(each),
        )
        for category, each in zip(show.layout.categories, show.lines, strict=True)
    ]


def _brief(event: Event) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in EventBrief.__struct_fields__}
    return fields | {"poster": poster_url(event.id, event.poster)}


def _state(row: Mapping[str, Any], free: Availability | None, now: datetime) -> SaleState:
    # While availability is unknown, a show inside its sale window counts as on sale: the hold path decides.
    available = 1 if free is None else free.available
    return sale_state(now, row["opens_at"], row["closes_at"], cancelled=row["cancelled"], free=available)
