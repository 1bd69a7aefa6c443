"""Every fact there is: the contract with consumers. No I/O. docs/facts.md is generated from this file.

A fact is something that happened, in the past tense, and never changes. Its envelope says which one it is,
its body what there is to know. Bodies only grow: a new field has a default and raises VERSION; none is taken
away, renamed or given another meaning. So a consumer of today reads facts of yesterday and of tomorrow:
fields it does not know are left aside, a kind it does not know is an `UnknownBody`.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.bookings import public_id
from holdfast.outbox.body import Body, UnknownBody
from holdfast.outbox.fact_queue import QueueCalled, QueueClosed, QueueDrained, QueueDrawn, QueueOpened
from holdfast.outbox.waitlist_facts import WaitlistEnded, WaitlistJoined, WaitlistOffered

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row


class BookingBody(Body, frozen=True, kw_only=True):
    owner_id: int
    seats: tuple[int, ...]  # numbers in the show's layout
    prices_minor: tuple[int, ...]  # of each seat, as of the hold
    amount_minor: int
    currency: str
    is_block: bool = False  # seats an organiser blocked: no buyer


class BookingHeld(BookingBody, frozen=True, kw_only=True):
    """Seats are held for a buyer; also after a payment was declined and the hold continues."""

    KIND = "booking.held"
    expires_at: datetime  # unless it is extended


class BookingPaying(BookingBody, frozen=True, kw_only=True):
    """A payment is under way; the seats stay until it is settled."""

    KIND = "booking.paying"


class BookingConfirmed(BookingBody, frozen=True, kw_only=True):
    """Paid for, or nothing to pay. Its tickets exist."""

    KIND = "booking.confirmed"


class BookingExpired(BookingBody, frozen=True, kw_only=True):
    """The hold ran out before it was paid; the seats are free."""

    KIND = "booking.expired"


class BookingCancelled(BookingBody, frozen=True, kw_only=True):
    """The owner released the hold before paying, or an organiser released a block; the seats are free."""

    KIND = "booking.cancelled"


class BookingFailed(BookingBody, frozen=True, kw_only=True):
    """Paid too late, and another buyer has the seats; the money is refunded."""

    KIND = "booking.failed"


class BookingRefunded(BookingBody, frozen=True, kw_only=True):
    """A confirmed booking was refunded; the seats are free."""

    KIND = "booking.refunded"


class BookingReduced(BookingBody, frozen=True, kw_only=True):
    """It has fewer seats than before: `given_back` are free, `seats` and the amount are what remains."""

    KIND = "booking.reduced"
    given_back: tuple[int, ...] = ()


class BookingMerged(BookingBody, frozen=True, kw_only=True):
    """It has the `added` seats of the buyer's other hold, too: `from_number`, which was cancelled before."""

    KIND = "booking.merged"
    added: tuple[int, ...] = ()
    from_number: int | None = None


class BookingBlocked(BookingBody, frozen=True, kw_only=True):
    """An organiser blocked these seats."""

    KIND = "booking.blocked"
    note: str = ""  # its name


class PaymentBody(Body, frozen=True, kw_only=True):
    attempt: int  # 1, 2, …: of this booking
    amount_minor: int
    currency: str
    owner_id: int | None = None


class PaymentDeclined(PaymentBody, frozen=True, kw_only=True):
    """The gateway declined it; the buyer may try another method while the hold lasts."""

    KIND = "payment.declined"
    reason: str | None = None  # for the payer
    code: str | None = None  # card_declined, insufficient_funds, …


class PaymentCalledOff(PaymentBody, frozen=True, kw_only=True):
    """We cancelled it at the gateway; no money moved."""

    KIND = "payment.called_off"
    reason: str | None = None
    code: str | None = None


class PaymentExpired(PaymentBody, frozen=True, kw_only=True):
    """It was not completed before its deadline."""

    KIND = "payment.expired"
    reason: str | None = None
    code: str | None = None


class PaymentLate(PaymentBody, frozen=True, kw_only=True):
    """Money arrived for a booking that had already ended."""

    KIND = "payment.late"
    booked: bool = False  # the seats were still free: it is confirmed. Otherwise the money goes back


class PaymentDisputed(PaymentBody, frozen=True, kw_only=True):
    """The payer's bank took the money back (a chargeback), or the dispute ended. `amount_minor`: disputed."""

    KIND = "payment.disputed"
    state: str  # open, won, lost
    reason: str = ""  # the gateway's word: fraudulent, duplicate, …
    tickets_suspended: bool = False


class RefundFactBody(Body, frozen=True, kw_only=True):
    attempt: int  # of the payment it is a refund of
    refund: int  # 1, 2, … of this payment
    amount_minor: int
    currency: str
    why: str = ""  # late, card (beyond the limit of its card), owner, show, admin
    seats: tuple[int, ...] = ()  # given back with it; none: money alone
    reason: str | None = None  # why the gateway refused
    owner_id: int | None = None


class RefundRequested(RefundFactBody, frozen=True, kw_only=True):
    """A refund was decided; we are requesting it from the gateway."""

    KIND = "refund.requested"


class RefundDone(RefundFactBody, frozen=True, kw_only=True):
    """The gateway has made the refund."""

    KIND = "refund.done"


class RefundByHand(RefundFactBody, frozen=True, kw_only=True):
    """The gateway refuses it: an operator must pay it another way."""

    KIND = "refund.by_hand"


class ShowOnSaleFact(Body, frozen=True, kw_only=True):
    """A show was added to the programme; it sells in this window."""

    KIND = "show.on_sale"
    opens_at: datetime
    closes_at: datetime
    revision: int


class ShowChanged(Body, frozen=True, kw_only=True):
    """Its times, prices, limits or layout are others now."""

    KIND = "show.changed"
    opens_at: datetime
    closes_at: datetime
    revision: int  # grows with every change


class CategoryPriceChange(Struct, frozen=True):
    category: str
    was_minor: int | None  # null: the category is new
    price_minor: int


class ShowPricesChanged(Body, frozen=True, kw_only=True):
    """Prices of some categories changed. Seats that are held or booked stay at their old price."""

    KIND = "show.prices_changed"
    revision: int
    why: str  # organiser: set by hand; rules: rules were added or removed; step: a rule changed it
    prices: tuple[CategoryPriceChange, ...]


class ShowCancelledFact(Body, frozen=True, kw_only=True):
    """It will not take place."""

    KIND = "show.cancelled"
    revision: int = 0


class EventChanged(Body, frozen=True, kw_only=True):
    """Its title, description, people or another of its own fields. It is about no show: `show_id` is 0."""

    KIND = "event.changed"
    event_id: int


class VenueChanged(Body, frozen=True, kw_only=True):
    """Its name, address or place. It is about no show: `show_id` is 0."""

    KIND = "venue.changed"
    venue_id: int


class CityChanged(Body, frozen=True, kw_only=True):
    """Its name, slug, time zone or place. It is about no show: `show_id` is 0."""

    KIND = "city.changed"
    city_id: int


class TicketBody(Body, frozen=True, kw_only=True):
    serial: int  # of the ticket
    owner_id: int | None = None  # of the booking; the ticket may be another's


class TicketCheckedIn(TicketBody, frozen=True, kw_only=True):
    """A visitor was admitted with it."""

    KIND = "ticket.checked_in"
    seat: int
    gate: str = ""
    scanned_at: datetime | None = None  # by the gate's clock, if it was offline


class TicketCheckedOut(TicketBody, frozen=True, kw_only=True):
    """A visitor left with it, and may come back."""

    KIND = "ticket.checked_out"
    seat: int
    gate: str = ""
    scanned_at: datetime | None = None


class TicketCheckInUndone(TicketBody, frozen=True, kw_only=True):
    """The gate undid the check-in: the ticket admits a visitor again."""

    KIND = "ticket.check_in_undone"
    gate: str = ""


class TicketTransferred(TicketBody, frozen=True, kw_only=True):
    """It belongs to another person now. Published twice, once per side."""

    KIND = "ticket.transferred"
    edition: int  # codes of older editions are refused
    side: str  # given, got: whom this fact is for
    from_id: int
    to_id: int | None = None  # None: the address has no account yet


class TicketTakenBack(TicketBody, frozen=True, kw_only=True):
    """The recipient had no account yet, and the giver took it back."""

    KIND = "ticket.taken_back"
    edition: int
    to_id: int


class DoorConflictRaised(TicketBody, frozen=True, kw_only=True):
    """An offline gate admitted a visitor whom it should have refused, as its upload showed."""

    KIND = "door.conflict_raised"
    why: str  # used, void, transferred, unknown


class TicketsSentAgain(Body, frozen=True, kw_only=True):
    """The tickets of a booking are sent again: the buyer requested it, or their key was revoked."""

    KIND = "tickets.sent_again"
    account_id: int
    owner_id: int | None = None


class EndpointSwitchedOff(Body, frozen=True, kw_only=True):
    """Webhooks to an organiser's server failed too long, or it answered 410 Gone. `show_id` is 0."""

    KIND = "endpoint.switched_off"
    endpoint_id: int
    organiser_id: int
    url: str
    reason: str = ""
    failing_since: datetime | None = None


BOOKING_KINDS = (
    BookingHeld,
    BookingPaying,
    BookingConfirmed,
    BookingExpired,
    BookingCancelled,
    BookingFailed,
    BookingRefunded,
    BookingReduced,
    BookingMerged,
    BookingBlocked,
)
KINDS: dict[str, type[Body]] = {
    body.KIND: body
    for body in (
        *BOOKING_KINDS,
        *(PaymentDeclined, PaymentCalledOff, PaymentExpired, PaymentLate, PaymentDisputed),
        *(RefundRequested, RefundDone, RefundByHand),
        *(ShowOnSaleFact, ShowChanged, ShowPricesChanged, ShowCancelledFact),
        *(EventChanged, VenueChanged, CityChanged),
        *(TicketCheckedIn, TicketCheckedOut, TicketCheckInUndone),
        *(TicketTransferred, TicketTakenBack, TicketsSentAgain, DoorConflictRaised),
        *(QueueOpened, QueueDrawn, QueueCalled, QueueDrained, QueueClosed),
        *(WaitlistJoined, WaitlistOffered, WaitlistEnded, EndpointSwitchedOff),
    )
}


class Fact(Struct, frozen=True, kw_only=True):
    """The envelope."""

    id: int  # grows; the same fact has the same id however often it is published
    kind: str  # booking.confirmed
    version: int  # of the body: it has at least the fields of that version
    at: datetime  # when it became true
    show_id: int
    number: int | None = None  # of the booking it is about
    booking_id: str | None = None  # the same, as the API calls it
    trace: str | UnsetType = UNSET  # traceparent of the request that wrote it, if that was sampled
    body: Body

    @property
    def key(self) -> str:
        """Facts with the same key are consumed in the order in which they happened."""
        return f"{self.show_id}:{self.number or ''}"


def build_fact(row: "Row") -> Fact:
    """From a row of the outbox with its booking's: what the outbox does not carry is read there."""
    kind, number = row["kind"], row["number"]
    values = msgspec.json.decode(row["body"]) if row["body"] else {}
    body = _body(kind, {**_of_booking(kind, row), **values})
    return Fact(
        id=row["id"],
        kind=kind,
        version=body.VERSION,
        at=row["at"],
        show_id=row["show_id"],
        number=number,
        booking_id=None if number is None else public_id(row["show_id"], number),
        trace=row["trace"] or UNSET,
        body=body,
    )


def _of_booking(kind: str, row: "Row") -> dict[str, Any]:
    if row["owner_id"] is None:
        return {}
    if not kind.startswith("booking."):
        return {"owner_id": row["owner_id"]}
    names = ("owner_id", "seats", "prices_minor", "amount_minor", "currency", "note", "is_block")
    return {name: row[name] for name in names} | {"expires_at": row["ends_at"]}


def _body(kind: str, values: dict[str, Any]) -> Body:
    """A body that does not fit is passed on as it is: one unexpected row must not block the others."""
    known = KINDS.get(kind)
    if known is None:
        return UnknownBody(values=values)
    try:
        return msgspec.convert(values, type=known)
    except msgspec.ValidationError:
        return UnknownBody(values=values)
