"""What a fan sends to hold seats, and the booking as it is shown. No I/O."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.bookings import Booking, BookingState, public_id, reference
from holdfast.catalogue import OrphanRule, ShowOnSale
from holdfast.errors import Invalid
from holdfast.holds.outcome import Best, Places, Seats, What, runs_of
from holdfast.layouts import Layout, Prefer, UnknownSeat
from holdfast.pricing import PriceLines, Terms

SEATS_MAX = 10
BETTER = "better: "  # begins the note of hand-picked seats that leave a single one; then seats that would not
ORPHAN_WARNING = "This choice leaves a single seat that is hard to sell; the seats in `better` would not."
Count = Annotated[int, Meta(ge=1, le=SEATS_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]


class BestBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Best available: so many seats, chosen and held in one step."""

    count: Count
    category: Name | None = None
    prefer: Prefer = Prefer.BEST
    accessible: bool = False  # one wheelchair space, the others beside it
    together: bool = True  # false: a group may be split when no seats stand together


class PlacesBody(Struct, forbid_unknown_fields=True, frozen=True):
    """So many places in a standing area."""

    area: Name
    count: Count


class HoldBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of seats, best and places.

    With `expected_total_minor` seats that cost another amount by now are not held: `price_changed`.
    """

    seats: Annotated[list[Name], Meta(min_length=1, max_length=SEATS_MAX)] | None = None
    best: BestBody | None = None
    places: PlacesBody | None = None
    expected_total_minor: Annotated[int, Meta(ge=0, le=SEATS_MAX * 1_000_000_000)] | None = None


class SeatPage(Struct, frozen=True):
    """What the seat costs, and what that is made of: base, fee and tax sum to the price."""

    label: str
    category: str
    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int


class RefundShown(Struct, frozen=True):
    """Money of this booking that goes back."""

    amount: int  # minor units of the booking's currency
    state: str  # asked: on its way; done; by_hand: a person sees to it
    asked_at: datetime


class BookingPage(Struct, frozen=True, kw_only=True):
    booking_id: str
    reference: str
    show_id: int
    state: BookingState
    seats: list[SeatPage]
    amount: int  # minor units of the currency, all-in; it is base, fee and tax together
    base_minor: int
    fee_minor: int
    tax_minor: int
    currency: str
    together: bool  # side by side, or in the same standing area
    why: str | None = None
    warning: str | None = None
    better: list[str] | None = None  # with a warning: seats that would not leave a single one
    opened_at: datetime
    expires_at: datetime | None = None  # only while it is held
    confirmed_at: datetime | None = None
    refunds: Sequence[RefundShown] = ()


class HoldRequest(Struct, frozen=True, gc=False):
    """One request to hold, understood."""

    show: ShowOnSale
    owner_id: int
    request_id: str
    claim_id: str
    body_hash: int
    what: What
    expected_minor: int | None = None  # the amount that the caller was shown, if they say so

    @property
    def count(self) -> int:
        return len(self.what.seats) if isinstance(self.what, Seats) else self.what.count


def parse_selection(body: HoldBody, show: ShowOnSale) -> What:
    """Names into numbers. Raises UnknownSeat or Invalid; nothing has been asked of an engine yet."""
    if (body.seats is None) + (body.best is None) + (body.places is None) != 2:
        raise Invalid(field="", detail="Expected exactly one of seats, best and places.")
    layout, most = show.layout, min(SEATS_MAX, show.order_seats_max)
    if body.seats is not None:
        _refuse_many(len(body.seats), most, "seats")
        return _named(body.seats, layout, show.orphan_rule)
    if body.places is not None:
        _refuse_many(body.places.count, most, "places.count")
        area = next((a for a in layout.areas if a.name == body.places.area), None)
        if area is None:
            raise UnknownSeat(area=body.places.area, known=[a.name for a in layout.areas])
        return Places(area.start, area.start + area.capacity, body.places.count)
    assert body.best is not None
    _refuse_many(body.best.count, most, "best.count")
    best = body.best
    return Best(best.count, _category(best.category, layout), best.prefer, best.accessible, best.together)


def _refuse_many(count: int, most: int, field: str) -> None:
    if count > most:
        raise Invalid(field=field, detail=f"Expected at most {most} seats in one order.", limit=most)


def _named(labels: list[str], layout: Layout, rule: OrphanRule) -> Seats:
    index_of = layout.index_of
    try:
        seats = tuple(sorted([index_of[label] for label in labels]))
    except KeyError:
        unknown = [label for label in labels if label not in index_of]
        raise UnknownSeat(seats=unknown) from None
    if len(set(seats)) != len(seats):
        raise Invalid(field="seats", detail="Expected each seat once.")
    return Seats(seats, rule, runs_of(layout, seats) if rule != OrphanRule.OFF else ())


def _category(name: str | None, layout: Layout) -> int | None:
    if name is None:
        return None
    for index, category in enumerate(layout.categories):
        if category.name == name:
            return index
    raise UnknownSeat(category=name, known=[category.name for category in layout.categories])


def body_hash(raw: bytes) -> int:
    """63 bits of what was sent: the same key with another body is refused."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big") >> 1


def booking_page(
    booking: Booking, show: ShowOnSale, terms: Terms, refunds: Sequence[RefundShown] = ()
) -> BookingPage:
    """A booking as it is shown: all of it from the ledger, so that a retry is told what the first try was.

    `terms` are those of the booking's revision, whatever the show is sold on today.
    """
    better, layout, lines = better_of(booking.note), show.layout, seat_lines(booking, show, terms)
    labels, categories, of = layout.labels, layout.categories, layout.category_of
    return BookingPage(
        booking_id=public_id(booking.show_id, booking.number),
        reference=reference(booking.show_id, booking.number),
        show_id=booking.show_id,
        state=booking.state,
        seats=[
            SeatPage(
                labels[seat],
                categories[of[seat]].name,
                line.price_minor,
                line.base_minor,
                line.fee_minor,
                line.tax_minor,
            )
            for seat, line in zip(booking.seats, lines, strict=True)
        ],
        amount=booking.amount_minor,
        base_minor=sum([line.base_minor for line in lines]),
        fee_minor=sum([line.fee_minor for line in lines]),
        tax_minor=sum([line.tax_minor for line in lines]),
        currency=booking.currency,
        together=are_together(layout, booking.seats),
        why=booking.note or None if better is None else None,
        warning=ORPHAN_WARNING if better else None,
        better=[labels[seat] for seat in better] if better else None,
        opened_at=booking.opened_at,
        expires_at=booking.expires_at if booking.state in (BookingState.HELD, BookingState.PAYING) else None,
        confirmed_at=booking.confirmed_at,
        refunds=refunds,
    )


def seat_lines(booking: Booking, show: ShowOnSale, terms: Terms) -> list[PriceLines]:
    """Of each seat, as of its hold. Every hold comes by here: looked up, unless terms or price are others."""
    if terms is not show.terms:
        return [terms.lines(price) for price in booking.prices_minor]
    of, lines = show.layout.category_of, show.lines
    return [
        line if (line := lines[of[seat]]).price_minor == price else terms.lines(price)
        for seat, price in zip(booking.seats, booking.prices_minor, strict=True)
    ]


def are_together(layout: Layout, seats: tuple[int, ...]) -> bool:
    """Side by side, or in the same standing area."""
    first, last = seats[0], seats[-1]
    if (run := layout.run_at(first)) is not None:
        return last - first == len(seats) - 1 and last < run.start + run.length
    return layout.area_at(last) == layout.area_at(first)


def better_note(better: tuple[int, ...]) -> str:
    return BETTER + ",".join(map(str, better))


def better_of(note: str) -> list[int] | None:
    return [int(seat) for seat in note.removeprefix(BETTER).split(",")] if note.startswith(BETTER) else None
