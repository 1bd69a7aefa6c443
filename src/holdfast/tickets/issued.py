"""A ticket as the ledger has it, what it is worth now, and the page of it. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from holdfast.bookings import Booking, public_id, reference
from holdfast.layouts import Layout
from holdfast.money import format_money
from holdfast.tickets.ticket import Ticket


class Codes(StrEnum):
    """How a show's tickets are checked."""

    FIXED = "fixed"  # one code, good until it is used
    LIVE = "live"  # a code that changes every half minute, on one phone
    LIVE_OR_PAPER = "live_or_paper"  # the same, and a fixed one for who prints it


class Standing(StrEnum):
    """What a ticket is worth."""

    GOOD = "good"
    INSIDE = "inside"  # a visitor is inside with it
    USED = "used"  # a visitor was inside with it
    GIVEN_AWAY = "given_away"  # to its present owner or, until they accept it, to an address
    OFFERED = "offered"  # to you: accept it to see its code
    VOID = "void"  # given back, or suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedTicket:
    show_id: int
    number: int  # of the booking
    seat: int
    serial: int
    edition: int
    binding: int
    codes: Codes
    booked_by: int
    owner_id: int | None  # who it was given to
    owner_email: str | None  # or to which address, until the transfer is accepted
    issued_at: datetime
    voided_at: datetime | None
    used_at: datetime | None
    is_inside: bool
    oldest_key: int = 1  # codes and links of older keys are revoked at this show
    is_suspended: bool = False  # void, and not given back: its payment is disputed

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.show_id, self.serial, self.edition)

    @property
    def ticket_id(self) -> str:
        return public_id(self.show_id, self.serial)

    @property
    def has_paper_code(self) -> bool:
        """Whether there is a code that can be printed."""
        return self.voided_at is None and self.codes is not Codes.LIVE

    @property
    def is_given_away(self) -> bool:
        return self.owner_id not in (None, self.booked_by) or self.owner_email is not None

    def is_of(self, account_id: int) -> bool:
        """Whether it is theirs now. Until a transfer is accepted, the ticket is of no account."""
        if self.owner_email is not None:
            return False
        return account_id == (self.booked_by if self.owner_id is None else self.owner_id)

    def is_offered_to(self, email: str | None) -> bool:
        """`email`: an address that a mailed link has proved; None: none."""
        return email is not None and self.owner_email == email and self.voided_at is None

    @property
    def worth(self) -> Standing:
        """What the ticket is worth to its holder now."""
        if self.voided_at is not None:
            return Standing.VOID
        if self.used_at is None:
            return Standing.GOOD
        return Standing.INSIDE if self.is_inside else Standing.USED


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketShow:
    """The show a ticket is for, as it is printed."""

    show_id: int
    title: str
    hall: str
    venue: str
    address: str
    city: str
    starts_at: datetime
    ends_at: datetime
    starts_local: datetime  # in the venue's zone
    timezone: str
    cancelled: bool
    revision: int

    @property
    def when(self) -> str:
        """Fri 20 November 2026, 19:30"""
        local = self.starts_local
        return f"{local:%a} {local.day} {local:%B %Y, %H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTicket:
    """One ticket with everything that is on it. `code` is None where a fixed one would open no door."""

    ticket_id: str
    reference: str
    seat: str
    section: str
    row: str
    seat_number: str
    category: str
    trait: str
    price: str
    worth: Standing
    code: str | None
    is_suspended: bool = False

    @property
    def notice(self) -> str:
        """The name of the text that says what it is worth."""
        return "suspended" if self.is_suspended else self.worth


def build_printed_ticket(
    ticket: IssuedTicket, layout: Layout, booking: Booking | None, code: str | None
) -> PrintedTicket:
    seat = layout.seat(ticket.seat)
    price = ""
    if booking is not None and ticket.seat in booking.seats:  # one that was given back has no price any more
        price = format_money(booking.prices_minor[booking.seats.index(ticket.seat)], booking.currency)
    return PrintedTicket(
        ticket_id=ticket.ticket_id,
        reference=reference(ticket.show_id, ticket.number),
        seat=seat.label,
        section=seat.section,
        row=seat.row,
        seat_number=seat.number,
        category=layout.categories[seat.category].name,
        trait=seat.trait,
        price=price,
        worth=ticket.worth,
        code=code,
        is_suspended=ticket.is_suspended,
    )


@dataclass(frozen=True, slots=True)
class Typeface:
    """Paths of font files, and spellings of letters that none of them has."""

    regular: str
    bold: str
    fallbacks: tuple[str, ...] = ()
    spelling: Mapping[int, str] = field(default_factory=dict)
    joins: bool = True  # whether there may be letters that change beside each other


class TicketPage(Struct, frozen=True, omit_defaults=True):
    ticket_id: str
    show_id: int
    reference: str
    seat: str
    section: str
    category: str
    standing: Standing
    codes: Codes
    issued_at: datetime
    used_at: datetime | None = None
    code: str | None = (
        None  # what the QR says; absent: bind a phone, or the ticket is not yours to use any more
    )
    qr_svg: str | None = None  # the QR as a picture: a data URL
    page_url: str | None = None  # the ticket as a page that works offline once opened
    is_suspended: bool = False  # of standing void: not given back, its payment is disputed


class TicketList(Struct, frozen=True):
    tickets: list[TicketPage]
    complete: bool = True  # false: a part of the box office cannot be reached, its tickets are missing here


class LiveTicket(Struct, frozen=True):
    ticket_id: str
    code: str
    qr_svg: str
    secret: str  # base 32: with it a wallet makes the next codes by itself


class LiveTicketList(Struct, frozen=True):
    step_s: int  # a code is good for its step, and for the one beside it
    changes_at: datetime  # when the next one begins
    tickets: list[LiveTicket]
