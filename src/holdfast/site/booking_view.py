"""A booking as its page shows it: its display state, and what that means for the buyer's money. No I/O.

    held ──► paying ──► confirmed ──► refunded
      │        └──► held again: payment declined or cancelled
      └──► lapsed ──► confirmed (paid late, seats free) or failed (paid late, seats gone)

The display states are those of the ledger, with one exception: a hold past its end has lapsed, even before
the expiry job has marked it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.bookings import BookingPage, BookingState
from holdfast.legal import NO_TERMS, TermsInForce
from holdfast.payments import Payment, PaymentStep
from holdfast.tickets import PrintedTicket, TicketShow

SUSPENDED = "suspended"  # a ticket whose payment is disputed: it is void, and not given back


class DisplayState(StrEnum):
    HELD = "held"
    PAYING = "paying"
    CONFIRMED = "confirmed"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUNDED = "refunded"


DISPLAY_STATES = {
    BookingState.HELD: DisplayState.HELD,
    BookingState.PAYING: DisplayState.PAYING,
    BookingState.CONFIRMED: DisplayState.CONFIRMED,
    BookingState.EXPIRED: DisplayState.LAPSED,
    BookingState.CANCELLED: DisplayState.CANCELLED,
    BookingState.FAILED: DisplayState.FAILED,
    BookingState.REFUNDED: DisplayState.REFUNDED,
}

# Why a hold has its time again, by the step in which its latest payment ended.
NOT_PAID = {
    PaymentStep.DECLINED: "declined",
    PaymentStep.CALLED_OFF: "called_off",
    PaymentStep.RETURNED: "declined",  # its card had reached the show's limit
}

# Declines that we have words for; of another one the gateway's own sentence is shown.
TRANSLATED_DECLINES = frozenset(
    {
        "card_declined",
        "insufficient_funds",
        "expired_card",
        "authentication_failed",
        "incorrect_cvc",
        "card_limit",
    }
)


def display_state_of(state: BookingState, left_ms: int) -> DisplayState:
    """`left_ms`: of the hold, by the ledger's clock."""
    display_state = DISPLAY_STATES[state]
    return DisplayState.LAPSED if display_state is DisplayState.HELD and left_ms <= 0 else display_state


def waits_for(payment: Payment | None) -> str:
    """What a payment in progress is waiting for: payer, browser, gateway or settling."""
    if payment is None or payment.step in (PaymentStep.LATE, PaymentStep.CONFIRM):
        return "settling"
    if payment.step is PaymentStep.CALL_OFF:
        return "calling_off"
    if payment.client_secret is not None and payment.action_url is None:
        return "browser"
    return "payer" if payment.action_url is not None else "gateway"


def late_money_state(payment: Payment | None) -> str:
    """What became of the money of a booking that has lapsed: none, watched or settling."""
    if payment is None or payment.has_ended:
        return "none"
    return "watched" if payment.step is PaymentStep.WATCH else "settling"


def is_late(payment: Payment | None) -> bool:
    """Whether it was paid after its time, and there were seats all the same."""
    return (
        payment is not None
        and payment.step is PaymentStep.PAID
        and payment.ended_at is not None
        and payment.ended_at > payment.deadline_at
    )


def view_version_of(display_state: DisplayState, payment: Payment | None, ends_at_ms: int) -> str:
    """Changes whenever the page would look different: a script that sees another one loads it again."""
    attempt = payment.attempt if payment else 0
    waiting = waits_for(payment) if display_state is DisplayState.PAYING else late_money_state(payment)
    return f"{display_state}.{attempt}.{waiting}.{ends_at_ms // 1000}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedSeat:
    """A seat, in words."""

    label: str
    section: str
    row: str
    number: str
    category: str
    trait: str  # n plain, w wheelchair space, c companion, r restricted view
    price_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTicket:
    """A ticket on the page. Without `qr`: given away, given back, suspended, or its code is on one phone."""

    printed: PrintedTicket
    link: str | None  # of its own page
    qr: str | None  # a picture, as a data URL
    standing: str  # of tickets.Standing, or SUSPENDED
    is_live: bool
    waits_for: str | None  # the recipient's address until the transfer is accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentEvent:
    """A line in the history of the money."""

    at: datetime
    what: str  # paid, declined, called_off, expired, returned, under_way; refund_requested, refund_done …
    amount_minor: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHold:
    """Another hold of the same buyer in the same show."""

    booking_id: str
    seats: list[str]
    expires_at: datetime
    can_merge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingView:
    page: BookingPage
    occasion: TicketShow
    places: tuple[BookedSeat, ...]
    payment: Payment | None  # the latest
    expires_at: datetime
    life_max_s: int  # of a hold
    now: datetime  # the ledger's
    payment_history: Sequence[PaymentEvent] = ()
    tickets: Sequence[ShownTicket] = ()
    other_holds: Sequence[OtherHold] = ()
    sell_back: str = ""  # open, sold, withdrawn, closed: of the last time
    agreement: TermsInForce = NO_TERMS  # what the buyer of a hold agrees to
    is_offer: bool = False  # of the waitlist: declined instead of released, and not extended

    @property
    def path(self) -> str:
        return f"/bookings/{self.page.booking_id}"

    @property
    def left_ms(self) -> int:
        """Of the hold; while it is paid for, of the payment."""
        return int((self.ends_at - self.now) / timedelta(milliseconds=1))

    @property
    def ends_at(self) -> datetime:
        if self.payment is not None and self.page.state == "paying":
            return self.payment.deadline_at
        return self.expires_at

    @property
    def ends_at_ms(self) -> int:
        return int(self.ends_at.timestamp() * 1000)

    @property
    def now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)

    @property
    def whole_ms(self) -> int:
        """From the hold's beginning to its end."""
        return max(1, self.ends_at_ms - int(self.page.opened_at.timestamp() * 1000))

    @property
    def longest_at(self) -> datetime:
        """Until when a hold may be extended."""
        return self.page.opened_at + timedelta(seconds=self.life_max_s)

    @property
    def can_extend(self) -> bool:
        return not self.is_offer and self.longest_at - self.expires_at > timedelta(seconds=1)

    @property
    def display_state(self) -> DisplayState:
        return display_state_of(self.page.state, self.left_ms)

    @property
    def view_version(self) -> str:
        return view_version_of(self.display_state, self.payment, self.ends_at_ms)

    @property
    def attempt(self) -> int:
        """The number of the next attempt to pay: two tabs that see the same make the same one."""
        return self.payment.attempt + 1 if self.payment else 1

    @property
    def waits_for(self) -> str:
        return waits_for(self.payment)

    @property
    def money(self) -> str:
        return late_money_state(self.payment)

    @property
    def is_late(self) -> bool:
        return is_late(self.payment)

    @property
    def not_paid(self) -> str | None:
        """declined or called_off: what became of the latest attempt."""
        return NOT_PAID.get(self.payment.step) if self.payment else None

    @property
    def decline_code(self) -> str | None:
        code = self.payment.code if self.payment else None
        return code if code in TRANSLATED_DECLINES else None

    @property
    def is_selling_back(self) -> bool:
        """Whether its tickets are offered to the waitlist; until one is sold they are valid."""
        return self.sell_back == "open"

    @property
    def is_over(self) -> bool:
        return self.now >= self.occasion.ends_at

    @property
    def refundable_labels(self) -> list[str]:
        """Seats whose tickets are the buyer's and unused."""
        good = {one.printed.seat for one in self.tickets if one.standing == "good"}
        return [place.label for place in self.places if place.label in good]

    def ticket_for(self, label: str) -> ShownTicket | None:
        """The ticket of a seat; the newest, if the seat was refunded and bought again."""
        return next((one for one in self.tickets if one.printed.seat == label), None)

    @property
    def has_suspended(self) -> bool:
        return any(one.standing == SUSPENDED for one in self.tickets)

    @property
    def good_tickets(self) -> list[ShownTicket]:
        return [one for one in self.tickets if one.standing in ("good", "inside")]
