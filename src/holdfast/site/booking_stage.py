"""Where a booking is, as its owner sees it, and what that means for their money. No I/O.

    held ──► paying ──► confirmed ──► refunded        given back
      │        └──► held again: declined or called off
      └──► lapsed ──► confirmed (paid late, seats free) or failed (paid late, seats gone)

The ledger's states, but for one: a hold whose time is over has lapsed, whether or not it was swept.
"""

from enum import StrEnum

from holdfast.bookings import BookingState
from holdfast.payments import Payment, PaymentStep


class Stage(StrEnum):
    HELD = "held"
    PAYING = "paying"
    CONFIRMED = "confirmed"
    LAPSED = "lapsed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    REFUNDED = "refunded"


STAGES = {
    BookingState.HELD: Stage.HELD,
    BookingState.PAYING: Stage.PAYING,
    BookingState.CONFIRMED: Stage.CONFIRMED,
    BookingState.EXPIRED: Stage.LAPSED,
    BookingState.CANCELLED: Stage.CANCELLED,
    BookingState.FAILED: Stage.FAILED,
    BookingState.REFUNDED: Stage.REFUNDED,
}

# Why a hold has its time again, by the step in which its latest payment ended.
NOT_PAID = {PaymentStep.DECLINED: "declined", PaymentStep.CALLED_OFF: "called_off"}

# Declines that we have words for; of another one the gateway's own sentence is shown.
KNOWN_CODES = frozenset(
    {"card_declined", "insufficient_funds", "expired_card", "authentication_failed", "incorrect_cvc"}
)


def stage_of(state: BookingState, left_ms: int) -> Stage:
    """`left_ms`: of the hold, by the ledger's clock."""
    stage = STAGES[state]
    return Stage.LAPSED if stage is Stage.HELD and left_ms <= 0 else stage


def waits_for(payment: Payment | None) -> str:
    """Who has to do something about a payment under way: payer, browser, gateway or settling."""
    if payment is None or payment.step in (PaymentStep.LATE, PaymentStep.CONFIRM):
        return "settling"
    if payment.step is PaymentStep.CALL_OFF:
        return "calling_off"
    if payment.client_secret is not None and payment.action_url is None:
        return "browser"
    return "payer" if payment.action_url is not None else "gateway"


def money_of(payment: Payment | None) -> str:
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


def face_of(stage: Stage, payment: Payment | None, ends_at_ms: int) -> str:
    """Changes whenever the page would look different: a script that sees another one loads it again."""
    attempt = payment.attempt if payment else 0
    waiting = waits_for(payment) if stage is Stage.PAYING else money_of(payment)
    return f"{stage}.{attempt}.{waiting}.{ends_at_ms // 1000}"
