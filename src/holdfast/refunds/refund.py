"""A refund: money on its way back, with or without seats. No I/O.

    decided ─► requested ─┬─ yes ─────► done ─ failed later: by_hand
                 │  ▲     ├─ unknown ─► requested again later, under the same key
                 │  │     └─ no ──────► by_hand ─┬─ a person paid it another way ─► done
                 │  └─────────────────────────── └─ retried, under another key

A decision is final: the seats are free and the money is owed from that moment on.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from holdfast.bookings import Booking, BookingState, NoSuchBooking, from_public_id, public_id, reference
from holdfast.errors import Invalid
from holdfast.pricing import PolicyQuote
from holdfast.refunds.errors import NoSuchRefund
from holdfast.web.caller import Origin

# Pauses between two requests to the gateway, by the number of tries.
PAUSES_MS = (1_000, 2_000, 5_000, 15_000, 60_000, 300_000)
RETURNED = ("late", "card")  # refunds of money that was never booked: no part of the price of its seats
NUMBER_DIGITS_MAX = 9  # of an attempt, and of a refund


class RefundState(StrEnum):
    REQUESTED = "requested"
    DONE = "done"
    BY_HAND = "by_hand"


class RefundScope(StrEnum):
    WHOLE = "whole"  # the booking, and all that is left of its price
    SEATS = "seats"  # some of its seats
    MONEY = "money"  # no seats


class RefundRequest(Struct, frozen=True, gc=False, kw_only=True):
    """A refund requested by a person or by a rule."""

    booking: Booking  # as it was when the amount was worked out
    why: str  # owner, show, admin:…: each has one refund
    what: RefundScope = RefundScope.WHOLE
    seats: tuple[int, ...] = ()
    amount_minor: int | None = None  # None: what the seats had cost
    is_exact: bool = False  # decided for this amount or not at all
    keep_fee: bool = False
    note: str = ""
    actor_id: int | None = None  # None: a rule
    origin: Origin | None = None  # of a member of staff: the refund is in the audit log
    proposal_id: int | None = None  # that this request approves
    approver_id: int | None = None

    @property
    def show_id(self) -> int:
        return self.booking.show_id


class Refund(Struct, frozen=True, gc=False, kw_only=True):
    """A row of the ledger, with the fields of its payment that carrying it out needs (refund_detail)."""

    show_id: int
    number: int
    attempt: int
    id: int
    why: str
    seats: tuple[int, ...]
    amount_minor: int
    state: RefundState
    note: str
    reference: str | None
    reason: str | None
    settled_note: str | None
    actor_id: int | None
    round: int
    tries: int
    requested_at: datetime
    done_at: datetime | None
    owner_id: int
    key: str  # of the payment
    gateway: str
    currency: str
    payment_reference: str | None

    @property
    def gateway_key(self) -> str:
        """The same for every try of a round: the gateway makes one refund however often it is requested."""
        again = f"_{self.round}" if self.round > 1 else ""
        return f"{self.key}_r{self.id}{again}"

    @property
    def is_done_by_gateway(self) -> bool:
        return self.state is RefundState.DONE and self.settled_note is None and self.amount_minor > 0

    @property
    def refund_id(self) -> str:
        return f"{public_id(self.show_id, self.number)}-{self.attempt}-{self.id}"

    @property
    def rule(self) -> str:
        """By which rule: late, card, owner, show, admin."""
        return self.why.partition(":")[0]


class RefundDecision(Struct, frozen=True, gc=False):
    """`outcome`: see decision.py; the booking as it is after it."""

    outcome: str
    refund: Refund | None
    seats: tuple[int, ...]  # in the way
    left_minor: int | None  # of the payment, that could still go back
    booking: Booking | None
    proposal_id: int | None = None  # of the outcome `approval`: what waits for a second person


class Cancellation(Struct, frozen=True, kw_only=True):
    """How far the refunds of a cancelled show are."""

    bookings: int  # that were confirmed when it was cancelled, or are still to be released
    refunded: int  # the money has gone back, or there was none
    requested: int  # decided, and on its way
    by_hand: int  # the gateway would not
    left: int  # bookings that still have their seats

    @property
    def is_over(self) -> bool:
        return not self.left and not self.requested


class RefundQuote(Struct, frozen=True, kw_only=True):
    """What would come back, and until when; `percent` of what the seats cost, less the fee if that stays."""

    booking_id: str
    seats: list[str]
    amount: int  # minor units of the currency
    currency: str
    percent: int
    until: datetime | None  # null: it stays so
    next_percent: int | None  # from `until` on
    next_amount: int | None
    paid: int  # what these seats cost
    keeps_fee: bool


class RefundLine(Struct, frozen=True, kw_only=True):
    refund_id: str
    why: str  # late, card (beyond the limit of its card), owner, show or admin
    amount: int
    currency: str
    state: RefundState
    seats: list[str]
    requested_at: datetime
    done_at: datetime | None


class AttemptLine(Struct, frozen=True, kw_only=True):
    """One attempt to pay, and what has come back of it."""

    attempt: int
    step: str  # where it is: paid, declined, called_off, expired, returned, or still under way
    amount: int
    currency: str
    gateway: str
    reason: str | None
    requested_at: datetime
    ended_at: datetime | None
    refunds: list[RefundLine]


class Timeline(Struct, frozen=True):
    booking_id: str
    attempts: list[AttemptLine]


def parse_refund_id(text: str) -> tuple[int, int, int, int]:
    """(show, number, attempt, id) from a refund's public id; raises NoSuchRefund for anything else."""
    booking, _, rest = text.partition("-")
    parts = rest.split("-")
    if len(parts) != 2 or not all(_is_number(part) for part in parts):
        raise NoSuchRefund()
    try:
        return (*from_public_id(booking), int(parts[0]), int(parts[1]))
    except NoSuchBooking:
        raise NoSuchRefund() from None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX


def owner_reason(booking: Booking, seats: Sequence[int] | None) -> str:
    """A seat leaves a booking once, so its number makes the reason unique."""
    if seats is None or set(seats) == set(booking.seats):
        return "owner"
    return "owner:" + ",".join(map(str, sorted(seats)))


def pause_ms(refund: Refund) -> int:
    return PAUSES_MS[min(refund.tries, len(PAUSES_MS) - 1)]


def build_refund_line(refund: Refund, labels: Sequence[str]) -> RefundLine:
    return RefundLine(
        refund_id=refund.refund_id,
        why=refund.rule,
        amount=refund.amount_minor,
        currency=refund.currency,
        state=refund.state,
        seats=[labels[seat] for seat in refund.seats],
        requested_at=refund.requested_at,
        done_at=refund.done_at,
    )


def build_quote(
    booking: Booking, labels: list[str], paid: int, policy_quote: PolicyQuote, keep_fee: bool
) -> RefundQuote:
    return RefundQuote(
        booking_id=public_id(booking.show_id, booking.number),
        seats=labels,
        amount=policy_quote.amount_minor,
        currency=booking.currency,
        percent=policy_quote.percent,
        until=policy_quote.until,
        next_percent=policy_quote.next_percent,
        next_amount=policy_quote.next_amount_minor,
        paid=paid,
        keeps_fee=keep_fee,
    )


AMOUNT_MINOR_MAX = 10_000_000_000_000
PAGE_MAX = 100
NoteText = Annotated[str, Meta(min_length=1, max_length=500)]
SeatLabel = Annotated[str, Meta(min_length=1, max_length=200)]


class RefundBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of `amount`, `seats` and `full`; and the reason, which stays with the refund."""

    reason: NoteText
    amount: Annotated[int, Meta(ge=1, le=AMOUNT_MINOR_MAX)] | None = None  # money alone, in minor units
    seats: Annotated[list[SeatLabel], Meta(min_length=1, max_length=10)] | None = None  # at their full price
    full: bool = False  # the whole booking, and all that is left of its price

    @property
    def what(self) -> RefundScope:
        if (self.amount is None) + (self.seats is None) + (not self.full) != 2:
            raise Invalid(field="", detail="Expected exactly one of amount, seats and full.")
        if self.full:
            return RefundScope.WHOLE
        return RefundScope.MONEY if self.amount is not None else RefundScope.SEATS


class NoteBody(Struct, forbid_unknown_fields=True, frozen=True):
    note: NoteText  # how it was paid: a transfer, cash at the desk, and its number


class RefundQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: RefundState | None = None
    show: int | None = None
    before: Annotated[str, Meta(max_length=60)] = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class RefundPage(Struct, frozen=True, kw_only=True):
    refund_id: str
    booking_id: str
    reference: str  # of the booking
    show_id: int
    why: str  # late, card (beyond the limit of its card), owner, show or admin
    amount: int
    currency: str
    state: RefundState
    seats: list[str]
    note: str  # of the person who decided it
    reason: str | None  # why the gateway would not
    settled_note: str | None  # how a person paid it
    gateway: str
    gateway_payment: str | None  # the gateway's id of the payment
    gateway_refund: str | None
    tries: int
    requested_at: datetime
    done_at: datetime | None


class RefundGiven(Struct, frozen=True, kw_only=True):
    """What was decided."""

    booking_id: str
    state: BookingState
    seats: list[str]  # of the booking, as they are now
    left: int  # of what was paid, that could still go back
    refund: RefundPage | None  # null: nothing had been paid


class RefundList(Struct, frozen=True):
    refunds: list[RefundPage]
    next: str | None  # ask for `before` this to go on; null: that was all
    complete: bool = True  # false: some databases cannot be reached, their refunds are missing here
    missing_pods: list[str] = field(default_factory=list)


def build_refund_page(refund: Refund, labels: Sequence[str]) -> RefundPage:
    return RefundPage(
        refund_id=refund.refund_id,
        booking_id=public_id(refund.show_id, refund.number),
        reference=reference(refund.show_id, refund.number),
        show_id=refund.show_id,
        why=refund.rule,
        amount=refund.amount_minor,
        currency=refund.currency,
        state=refund.state,
        seats=[labels[seat] for seat in refund.seats],
        note=refund.note,
        reason=refund.reason,
        settled_note=refund.settled_note,
        gateway=refund.gateway,
        gateway_payment=refund.payment_reference,
        gateway_refund=refund.reference,
        tries=refund.tries,
        requested_at=refund.requested_at,
        done_at=refund.done_at,
    )


def build_refund_given(decision: RefundDecision, labels: Sequence[str]) -> RefundGiven:
    booking = decision.booking
    assert booking is not None
    is_confirmed = booking.state is BookingState.CONFIRMED
    return RefundGiven(
        booking_id=public_id(booking.show_id, booking.number),
        state=booking.state,
        seats=[labels[seat] for seat in booking.seats] if is_confirmed else [],
        left=decision.left_minor or 0,
        refund=build_refund_page(decision.refund, labels) if decision.refund else None,
    )


def is_same_request(refund: Refund, request: RefundRequest) -> bool:
    """The refund of an earlier request with the same key: was it for the same?"""
    match request.what:
        case RefundScope.MONEY:
            return not refund.seats and refund.amount_minor == request.amount_minor
        case RefundScope.SEATS:
            return refund.seats == request.seats
    return bool(refund.seats)
