"""What an organiser sends to give money back, and a refund as they see it. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.bookings import BookingState, public_id, reference
from holdfast.errors import Invalid
from holdfast.refunds.refund import Refund, RefundAsk, RefundState, What

AMOUNT_MINOR_MAX = 10_000_000_000_000
PAGE_MAX = 100
Words = Annotated[str, Meta(min_length=1, max_length=500)]
Label = Annotated[str, Meta(min_length=1, max_length=200)]


class RefundBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of `amount`, `seats` and `full`; and the reason, which stays with the refund."""

    reason: Words
    amount: Annotated[int, Meta(ge=1, le=AMOUNT_MINOR_MAX)] | None = None  # money alone, in minor units
    seats: Annotated[list[Label], Meta(min_length=1, max_length=10)] | None = None  # at their full price
    full: bool = False  # the whole booking, and all that is left of its price

    @property
    def what(self) -> What:
        if (self.amount is None) + (self.seats is None) + (not self.full) != 2:
            raise Invalid(field="", detail="Expected exactly one of amount, seats and full.")
        if self.full:
            return What.WHOLE
        return What.MONEY if self.amount is not None else What.SEATS


class NoteBody(Struct, forbid_unknown_fields=True, frozen=True):
    note: Words  # how it was paid: a transfer, cash at the desk, and its number


class RefundsAsked(Struct, forbid_unknown_fields=True, frozen=True):
    state: RefundState | None = None
    show: int | None = None
    before: Annotated[str, Meta(max_length=60)] = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class RefundPage(Struct, frozen=True, kw_only=True):
    refund_id: str
    booking_id: str
    reference: str  # of the booking
    show_id: int
    why: str  # late, owner, show or admin
    amount: int
    currency: str
    state: RefundState
    seats: list[str]
    note: str  # what whoever decided it said
    reason: str | None  # why the gateway would not
    settled_note: str | None  # how a person paid it
    gateway: str
    gateway_payment: str | None  # the gateway's id of the payment
    gateway_refund: str | None
    tries: int
    asked_at: datetime
    done_at: datetime | None


class Given(Struct, frozen=True, kw_only=True):
    """What was decided."""

    booking_id: str
    state: BookingState
    seats: list[str]  # of the booking, as they are now
    left: int  # of what was paid, that could still go back
    refund: RefundPage | None  # null: nothing had been paid


class RefundList(Struct, frozen=True):
    refunds: list[RefundPage]
    next: str | None  # ask for `before` this to go on; null: that was all


def refund_page(refund: Refund, labels: Sequence[str]) -> RefundPage:
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
        asked_at=refund.asked_at,
        done_at=refund.done_at,
    )


def is_as_asked(refund: Refund, ask: RefundAsk) -> bool:
    """The refund of an earlier request with the same key: was it for the same?"""
    match ask.what:
        case What.MONEY:
            return not refund.seats and refund.amount_minor == ask.amount_minor
        case What.SEATS:
            return refund.seats == ask.seats
    return bool(refund.seats)
