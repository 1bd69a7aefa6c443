"""A party on the waitlist, and how its wait ends. No I/O.

    WAITING ──► OFFERED ──► TAKEN      the offer was paid for
       │           ├──────► DECLINED   by the party; the seats go to the next one
       │           └──────► LAPSED     its window passed; so do the seats
       ├─► LEFT        the party left
       ├─► TIMED_OUT   its own time was over
       └─► CLOSED      the sale is over, or the show was cancelled

One offer per entry: a party that declines or misses it may join again, as the last.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.catalogue import ShowOnSale
from holdfast.errors import Invalid
from holdfast.layouts import Layout, UnknownSeat
from holdfast.waitlist.matching import Wish

SEATS_MAX = 6
CATEGORIES_MAX = 20
PRICE_MINOR_MAX = 1_000_000_000
DAYS_COUNTED = 7


class EntryState(StrEnum):
    WAITING = "waiting"
    OFFERED = "offered"
    TAKEN = "taken"
    DECLINED = "declined"
    LAPSED = "lapsed"
    LEFT = "left"
    TIMED_OUT = "timed_out"
    CLOSED = "closed"


LIVE = frozenset({EntryState.WAITING, EntryState.OFFERED})


class JoinBody(Struct, forbid_unknown_fields=True, frozen=True):
    """A party of 1 to 6. Without categories any will do; without `until` it waits until the sale closes."""

    seats: Annotated[int, Meta(ge=1, le=SEATS_MAX)]
    categories: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=100)]], Meta(max_length=CATEGORIES_MAX)
    ] = []
    price_minor_max: Annotated[int, Meta(ge=0, le=PRICE_MINOR_MAX)] | None = None  # per seat, all-in
    together: bool = True  # false: seats in several groups will do
    until: datetime | None = None  # no offers after this


class WaitlistEntry(Struct, frozen=True, kw_only=True):
    """A row of waitlist_entry."""

    show_id: int
    number: int
    owner_id: int
    seats: int
    categories: tuple[str, ...]
    price_minor_max: int | None
    together: bool
    queue_position: int | None
    until: datetime
    joined_at: datetime
    state: EntryState
    ended_at: datetime | None

    def to_wish(self, layout: Layout) -> Wish:
        """Names of categories that the layout does not have any more match nothing."""
        names = {category.name: index for index, category in enumerate(layout.categories)}
        wanted = frozenset(names[name] for name in self.categories if name in names)
        return Wish(self.seats, wanted if self.categories else None, self.price_minor_max, self.together)


class NewEntry(Struct, frozen=True, kw_only=True):
    """An entry to be added, checked."""

    show_id: int
    owner_id: int
    seats: int
    categories: tuple[str, ...]
    price_minor_max: int | None
    together: bool
    until: datetime
    queue_position: int | None = None

    def is_wish_of(self, entry: WaitlistEntry) -> bool:
        """The end of the wait may differ: without one it is the end of the sale, which may have moved."""
        return all(
            getattr(self, name) == getattr(entry, name)
            for name in ("seats", "categories", "price_minor_max", "together")
        )


class JoinOutcome(Struct, frozen=True):
    entry: WaitlistEntry
    is_new: bool = False  # false: the same wish again
    is_first: bool = False  # the show had no waitlist before


class Ahead(Struct, frozen=True):
    parties: int
    seats: int  # that they want, together


class WaitlistFigures(Struct, frozen=True):
    parties: int  # that wait now
    seats: int  # that they want
    offered_seats: int  # in the last days
    capacity: int
    days: int = DAYS_COUNTED


class OfferPage(Struct, frozen=True, kw_only=True):
    """Seats for you: pay for the booking until it ends, or decline it."""

    booking_id: str
    seats: list[str]
    amount: int
    currency: str
    expires_at: datetime


class EntryPage(Struct, frozen=True, kw_only=True):
    state: EntryState
    seats: int
    categories: list[str]
    price_minor_max: int | None
    together: bool
    until: datetime
    joined_at: datetime
    ended_at: datetime | None
    place: int | None  # 1: the next; null: not waiting any more
    seats_ahead: int | None  # that the parties before you want
    chance_percent: int | None  # if seats go on coming free as in the last days; an estimate
    wait_days: float | None  # the same, as the time until it is your turn; null: none came free lately
    offer: OfferPage | None


class WaitlistPage(Struct, frozen=True, kw_only=True):
    """The list of a show, and my entry: the live one, or the last."""

    show_id: int
    can_join: bool
    parties: int
    offered_seats: int  # in the last `days` days
    freed_percent: float  # the share of the hall that this is
    days: int
    offer_window_s: int
    entry: EntryPage | None


class PartyPage(Struct, frozen=True, kw_only=True):
    """A party, for the organiser."""

    number: int
    name: str
    email: str
    state: EntryState
    seats: int
    categories: list[str]
    price_minor_max: int | None
    together: bool
    queue_position: int | None
    until: datetime
    joined_at: datetime
    ended_at: datetime | None
    offer_booking_id: str | None
    offer_seats: list[str]
    offer_outcome: str | None


class PartiesQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: EntryState | None = None
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0  # number of the last party of the previous page
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class PartyList(Struct, frozen=True, kw_only=True):
    parties: list[PartyPage]
    counts: dict[str, int]  # by state
    reserved_seats: list[str]  # freed, and neither offered nor public yet
    next: int | None


def parse_join(
    body: JoinBody, show: ShowOnSale, owner_id: int, now: datetime, queue_position: int | None = None
) -> NewEntry:
    """Raises UnknownSeat for a category that the hall does not have, and Invalid."""
    most = min(SEATS_MAX, show.order_seats_max, show.owner_seats_max)
    if body.seats > most:
        raise Invalid(field="seats", detail=f"Expected at most {most} seats.", limit=most)
    known = [category.name for category in show.layout.categories]
    for name in body.categories:
        if name not in known:
            raise UnknownSeat(category=name, known=known)
    until = body.until or show.closes_at
    if until.tzinfo is None or until <= now:
        raise Invalid(field="until", detail="Expected a time in the future, with its offset.")
    return NewEntry(
        show_id=show.show_id,
        owner_id=owner_id,
        seats=body.seats,
        categories=tuple(sorted(set(body.categories))),
        price_minor_max=body.price_minor_max,
        together=body.together,
        until=min(until, show.closes_at),
        queue_position=queue_position,
    )


def build_entry_page(
    entry: WaitlistEntry,
    ahead: Ahead | None,
    figures: WaitlistFigures,
    offer: OfferPage | None,
    now: datetime,
) -> EntryPage:
    chance, days = estimate(entry, ahead, figures, now) if ahead else (None, None)
    return EntryPage(
        state=entry.state,
        seats=entry.seats,
        categories=list(entry.categories),
        price_minor_max=entry.price_minor_max,
        together=entry.together,
        until=entry.until,
        joined_at=entry.joined_at,
        ended_at=entry.ended_at,
        place=ahead.parties + 1 if ahead else None,
        seats_ahead=ahead.seats if ahead else None,
        chance_percent=chance,
        wait_days=days,
        offer=offer,
    )


def estimate(
    entry: WaitlistEntry, ahead: Ahead, figures: WaitlistFigures, now: datetime
) -> tuple[int, float | None]:
    """(chance in percent, days until my turn) if seats go on coming free as in the last days.

    It knows nothing of categories and of seats side by side: a party that wants little has better chances.
    """
    per_day = figures.offered_seats / figures.days
    if per_day == 0:
        return 0, None
    wanted = ahead.seats + entry.seats
    days_left = max(0.0, (entry.until - now).total_seconds() / 86_400)
    return round(100 * min(1.0, per_day * days_left / wanted)), round(wanted / per_day, 1)


def seat_labels(layout: Layout, seats: Sequence[int]) -> list[str]:
    return [layout.labels[seat] for seat in seats]
