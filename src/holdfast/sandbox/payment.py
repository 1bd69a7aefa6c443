"""The life of a payment at the sandbox. No I/O.

    REQUIRES_PAYER ──► PROCESSING ──► CAPTURED
       │    └─► REQUIRES_ACTION ──┴──► DECLINED
       └──────────────┴──────────────► CANCELLED

REQUIRES_PAYER is where a payment without a method begins: its payer is on the payment page. One with a method
goes on at once. PROCESSING is cancelled only where the payment is not firm.
"""

from enum import StrEnum
from typing import Any

from msgspec import Struct

from holdfast.sandbox.errors import Refused


class State(StrEnum):
    REQUIRES_PAYER = "requires_payer"  # nobody has paid yet
    REQUIRES_ACTION = "requires_action"  # the payer's bank asks the payer
    PROCESSING = "processing"  # the bank has it
    CAPTURED = "captured"  # the money moved
    DECLINED = "declined"  # it did not, and will not
    CANCELLED = "cancelled"  # the merchant called it off


class Move(StrEnum):
    ASK = "ask"
    SUBMIT = "submit"
    CAPTURE = "capture"
    DECLINE = "decline"
    CANCEL = "cancel"


MOVES: dict[tuple[State, Move], State] = {
    (State.REQUIRES_PAYER, Move.ASK): State.REQUIRES_ACTION,
    (State.REQUIRES_PAYER, Move.SUBMIT): State.PROCESSING,
    (State.REQUIRES_PAYER, Move.CAPTURE): State.CAPTURED,
    (State.REQUIRES_PAYER, Move.DECLINE): State.DECLINED,
    (State.REQUIRES_PAYER, Move.CANCEL): State.CANCELLED,
    (State.REQUIRES_ACTION, Move.CAPTURE): State.CAPTURED,
    (State.REQUIRES_ACTION, Move.DECLINE): State.DECLINED,
    (State.REQUIRES_ACTION, Move.CANCEL): State.CANCELLED,
    (State.PROCESSING, Move.CAPTURE): State.CAPTURED,
    (State.PROCESSING, Move.DECLINE): State.DECLINED,
    (State.PROCESSING, Move.CANCEL): State.CANCELLED,
}


class Order(Struct, frozen=True, kw_only=True, gc=False):
    """A payment to be made, checked by the wire it came over."""

    amount_minor: int
    currency: str
    reference: str  # the merchant's own key
    description: str
    method: str = ""  # a token; empty: the payer chooses on the page
    return_url: str = ""
    metadata: str = "{}"  # JSON, kept for the wire


class Payment(Struct, frozen=True, gc=False):
    """In the order of the columns of its table."""

    seq: int
    id: str
    reference: str
    amount_minor: int
    currency: str
    state: str
    method: str
    card: str | None  # fingerprint
    code: str | None  # of a decline
    reason: str | None
    description: str
    return_url: str
    page: str  # the part of its page's address that nobody can guess
    refunded_minor: int
    is_firm: int  # 1: while it is processing, it cannot be called off
    notices: str  # how its notices are sent: behaviour.Notices
    due_at: float | None  # processing: when it will be captured
    created_at: float
    metadata: str


class Refund(Struct, frozen=True, gc=False):
    """In the order of the columns of its table."""

    seq: int
    id: str
    payment_id: str
    amount_minor: int
    state: str  # succeeded or refused
    reason: str | None
    created_at: float


class Notice(Struct, frozen=True, gc=False):
    """A webhook. In the order of the columns of its table."""

    seq: int
    id: str
    kind: str
    payment_id: str
    body: bytes
    created_at: float
    due_at: float | None  # when it is to be sent; None: it was, or never will be
    copies: int  # still to be sent
    attempts: int  # that failed
    delivered_at: float | None


def after(payment: Payment, move: Move) -> State:
    """The state it goes to; Refused where there is no such move."""
    if move is Move.CANCEL and payment.state == State.PROCESSING and payment.is_firm:
        raise Refused(409, "payment_processing", "The bank has this payment; it cannot be cancelled now.")
    if (state := MOVES.get((State(payment.state), move))) is None:
        raise Refused(
            400, f"payment_{payment.state}", f"This payment is {payment.state}; {move} is too late."
        )
    return state


def refundable_minor(payment: Payment) -> int:
    if payment.state != State.CAPTURED:
        raise Refused(400, "payment_not_captured", f"This payment is {payment.state}; nothing to refund.")
    return payment.amount_minor - payment.refunded_minor


def payment_page(payment: Payment, url: str) -> dict[str, Any]:
    """A payment as the native wire and the notices show it."""
    page: dict[str, Any] = {
        "id": payment.id,
        "reference": payment.reference,
        "amount_minor": payment.amount_minor,
        "currency": payment.currency,
        "state": payment.state,
        "refunded_minor": payment.refunded_minor,
        "card": payment.card,
        "code": payment.code,
        "reason": payment.reason,
        "created_at": payment.created_at,
        "action_url": None,
    }
    if url and payment.state in (State.REQUIRES_PAYER, State.REQUIRES_ACTION):
        page["action_url"] = f"{url}/pay/{payment.page}"
    return page


def refund_page(refund: Refund) -> dict[str, Any]:
    return {
        "id": refund.id,
        "payment_id": refund.payment_id,
        "amount_minor": refund.amount_minor,
        "state": refund.state,
        "reason": refund.reason,
        "created_at": refund.created_at,
    }
