"""Bookings and attendees as organisers see them. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from holdfast.bookings import BookingState, from_public_id, public_id, reference
from holdfast.catalogue import ShowOnSale
from holdfast.errors import Invalid
from holdfast.fields import ONE_LINE, Id

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

PAGE_MAX = 200
BIGINT_MAX = 2**63 - 1
BOOKING_COLUMNS = (
    *("reference", "booking_id", "show_id", "title", "starts_at", "state", "seats", "amount_minor"),
    *("refunded_minor", "currency", "buyer_name", "buyer_email", "opened_at", "confirmed_at"),
)
ATTENDEE_COLUMNS = (
    *("seat", "category", "reference", "booking_id", "state", "name", "email", "buyer_name", "buyer_email"),
    *("issued_at", "checked_in_at", "given_back_at"),
)


class SoldState(StrEnum):
    SOLD = "sold"  # confirmed or refunded
    CONFIRMED = "confirmed"
    REFUNDED = "refunded"
    ALL = "all"  # holds, lapsed and cancelled ones, too


class BookingFilter(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A search term, a show, an event, or some of them."""

    q: Annotated[str, Meta(max_length=254, pattern=ONE_LINE)] = (
        ""  # reference, id, mail, name; with a show: seat
    )
    show: Id | None = None
    event: Id | None = None
    state: SoldState = SoldState.SOLD  # without a search term


class BookingQuery(BookingFilter, frozen=True, kw_only=True):
    before: Annotated[str, Meta(max_length=20)] = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 50


class AttendeeFilter(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    given_back: bool = False  # tickets that were given back or suspended, too


class AttendeeQuery(AttendeeFilter, frozen=True, kw_only=True):
    after: Annotated[str, Meta(max_length=30)] = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 50


class Person(Struct, frozen=True):
    account_id: int
    name: str | None
    email: str | None


class FoundBooking(Struct, frozen=True, kw_only=True):
    booking_id: str
    reference: str
    show_id: int
    title: str
    starts_at: datetime
    state: BookingState
    seats: list[str]
    amount_minor: int
    refunded_minor: int  # decided or done
    currency: str
    buyer: Person
    opened_at: datetime
    confirmed_at: datetime | None


class FoundBookings(Struct, frozen=True):
    bookings: list[FoundBooking]
    next: str | None  # ask for `before` this to go on; null: that was all
    complete: bool = True  # false: some databases cannot be reached, their bookings are missing here
    missing_pods: list[str] = field(default_factory=list)


class Attendee(Struct, frozen=True, kw_only=True):
    seat: str
    category: str
    booking_id: str
    reference: str
    state: str  # valid, used, void
    name: str | None  # of the ticket's holder; null: given to an address without an account
    email: str | None
    buyer_name: str | None
    buyer_email: str | None
    issued_at: datetime
    checked_in_at: datetime | None
    given_back_at: datetime | None


class AttendeeList(Struct, frozen=True):
    attendees: list[Attendee]
    next: str | None  # ask for those `after` this to go on; null: that was all


class BookingStep(Struct, frozen=True, kw_only=True):
    at: datetime
    move: str  # hold, pay, confirm, refund, …
    state: BookingState  # after it
    actor: Person | None  # null: a timer or a rule


class BookingDossier(Struct, frozen=True, kw_only=True):
    """Everything about one booking that its organiser may know."""

    booking: FoundBooking
    tickets: list[Attendee]
    steps: list[BookingStep]


def parse_ticket_place(text: str) -> tuple[int, int]:
    """(number, seat) from `next` of a list of attendees. Not plain numbers: they could be a card's."""
    booking, _, seat = text.partition("-")
    if not (seat.isascii() and seat.isdigit() and len(seat) < 10):
        raise Invalid(field="after", detail="Expected `next` of the page before.")
    return from_public_id(booking)[1], int(seat)


def build_booking(row: "Row", show: ShowOnSale) -> FoundBooking:
    labels = show.layout.labels
    return FoundBooking(
        booking_id=public_id(row["show_id"], row["number"]),
        reference=reference(row["show_id"], row["number"]),
        show_id=row["show_id"],
        title=show.title,
        starts_at=show.starts_at,
        state=BookingState(row["state"]),
        seats=[labels[seat] for seat in row["seats"]],
        amount_minor=row["amount_minor"],
        refunded_minor=row["refunded_minor"],
        currency=row["currency"],
        buyer=Person(row["owner_id"], row["name"], row["email"]),
        opened_at=row["opened_at"],
        confirmed_at=row["confirmed_at"],
    )


def build_attendee(row: "Row", show: ShowOnSale) -> Attendee:
    layout, seat = show.layout, row["seat"]
    state = "void" if row["voided_at"] is not None else "used" if row["used_at"] is not None else "valid"
    return Attendee(
        seat=layout.labels[seat],
        category=layout.categories[layout.category_of[seat]].name,
        booking_id=public_id(show.show_id, row["number"]),
        reference=reference(show.show_id, row["number"]),
        state=state,
        name=row["name"],
        email=row["email"],
        buyer_name=row["buyer_name"],
        buyer_email=row["buyer_email"],
        issued_at=row["issued_at"],
        checked_in_at=row["used_at"],
        given_back_at=row["voided_at"],
    )


def build_step(row: "Row") -> BookingStep:
    actor = None if row["actor_id"] is None else Person(row["actor_id"], row["actor_name"], None)
    return BookingStep(at=row["at"], move=row["move"], state=BookingState(row["state"]), actor=actor)


def booking_row(found: FoundBooking) -> Sequence[object]:
    known: Mapping[str, object] = {
        "seats": " ".join(found.seats),
        "buyer_name": found.buyer.name,
        "buyer_email": found.buyer.email,
    }
    return [known[name] if name in known else getattr(found, name) for name in BOOKING_COLUMNS]


def attendee_row(found: Attendee) -> Sequence[object]:
    return [getattr(found, name) for name in ATTENDEE_COLUMNS]
