"""Cities, venues, halls, events and shows, and when a show is on sale. No I/O.

    city ─► venue ─► hall (with a layout) ─► show ◄─ event

    UPCOMING ──opens_at──► ON_SALE ◄──► SOLD_OUT
        └────────┬────────────┴─────────────┘
                 ├─ closes_at ─► PAST
                 └─ cancelled ─► CANCELLED

The sale state is not stored: it follows from the clock and the free seats, so a sale opens on time without a
job (R5). Here it is only displayed; the hold path and the ledger decide by their own clocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from holdfast.catalogue.errors import BadWindow
from holdfast.layouts import Layout
from holdfast.pricing import NextPrice, PriceLines, RefundPolicy, Terms, UnknownCategory, UnpricedCategory


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
    poster_alt: str
    people: list[str]
    featured: bool
    refund_policy: RefundPolicy  # of new shows


POSTER_WIDTHS = (240, 480, 960)  # pixels: for cards, for cards on sharp screens, for the event page


def poster_url(event_id: int, poster: str) -> str:
    """The largest width of the uploaded poster, or the one that poster.py generates."""
    return poster if poster.startswith("/posters/") else f"/posters/{event_id}.svg"


def uploaded_poster_url(event_id: int, content_hash: str, width: int = POSTER_WIDTHS[-1]) -> str:
    return f"/posters/{event_id}-{content_hash}-{width}.webp"


def poster_srcset(url: str) -> dict[int, str]:
    """Addresses by width; empty for a generated poster, which is a drawing that scales."""
    largest = f"-{POSTER_WIDTHS[-1]}.webp"
    if not url.endswith(largest):
        return {}
    return {width: f"{url.removesuffix(largest)}-{width}.webp" for width in POSTER_WIDTHS}


# A show outside these years is a typing error, and years at the limits of datetime overflow in UTC.
YEAR_MIN, YEAR_MAX = 2000, 2199
SHOW_LENGTH_MAX = timedelta(days=14)


class SaleState(StrEnum):
    UPCOMING = "UPCOMING"
    ON_SALE = "ON_SALE"
    SOLD_OUT = "SOLD_OUT"
    CANCELLED = "CANCELLED"
    PAST = "PAST"


class OrphanRule(StrEnum):
    OFF = "off"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class ShowOnSale:
    """The show as the hold path sees it. Shows with the same layout share one Layout object."""

    show_id: int
    revision: int
    layout: Layout
    currency: str
    prices: tuple[int, ...]  # by category index, minor units, all-in
    lines: tuple[PriceLines, ...]  # of those prices, by category index: computed once, read by every hold
    terms: Terms
    hold_ttl_s: int
    owner_seats_max: int
    order_seats_max: int
    orphan_rule: OrphanRule
    opens_at: datetime
    closes_at: datetime
    starts_at: datetime
    cancelled: bool
    title: str
    hidden: bool = False  # a draft, unpublished or deleted: for those who have tickets, and its organiser
    moving: Mapping[str, NextPrice | None] = field(
        default_factory=dict
    )  # categories whose price follows rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a show takes place, and when its tickets are sold."""

    starts_at: datetime
    ends_at: datetime
    opens_at: datetime
    closes_at: datetime

    def check(self) -> None:
        """Refuse times that contradict each other, naming the first such field."""
        for name in ("starts_at", "ends_at", "opens_at", "closes_at"):
            if not YEAR_MIN <= getattr(self, name).year <= YEAR_MAX:
                raise BadWindow(field=name, detail=f"Expected a year from {YEAR_MIN} to {YEAR_MAX}.")
        if not self.starts_at < self.ends_at:
            raise BadWindow(field="ends_at", detail="A show ends after it starts.")
        if self.ends_at - self.starts_at > SHOW_LENGTH_MAX:
            raise BadWindow(field="ends_at", detail=f"A show lasts at most {SHOW_LENGTH_MAX.days} days.")
        if not self.opens_at < self.closes_at:
            raise BadWindow(field="closes_at", detail="A sale closes after it opens.")
        if self.closes_at > self.ends_at:
            raise BadWindow(field="closes_at", detail="A sale closes before the show ends.")


def sale_state(
    now: datetime, opens_at: datetime, closes_at: datetime, *, cancelled: bool, free: int
) -> SaleState:
    if cancelled:
        return SaleState.CANCELLED
    if now >= closes_at:
        return SaleState.PAST
    if now < opens_at:
        return SaleState.UPCOMING
    return SaleState.ON_SALE if free > 0 else SaleState.SOLD_OUT


def prices_by_category(layout: Layout, prices: Mapping[str, int]) -> tuple[int, ...]:
    """Prices in the order of the layout's categories. Refuses missing prices and unknown categories."""
    names = [category.name for category in layout.categories]
    if unknown := sorted(prices.keys() - set(names)):
        raise UnknownCategory(categories=unknown, known=names)
    if unpriced := [name for name in names if name not in prices]:
        raise UnpricedCategory(categories=unpriced)
    return tuple(prices[name] for name in names)
