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


class SandboxRefusal(Exception):
    """A refusal of the sandbox. Codes are stable; each API translates them into its own words."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.reason = reason


class SandboxState(StrEnum):
    REQUIRES_PAYER = "requires_payer"  # the payer has not paid yet
    REQUIRES_ACTION = "requires_action"  # the payer's bank asks the payer
    PROCESSING = "processing"  # the bank has it
    CAPTURED = "captured"  # the money moved
    DECLINED = "declined"  # it did not, and will not
    CANCELLED = "cancelled"  # cancelled by the merchant


class PaymentMove(StrEnum):
    ASK = "ask"
    SUBMIT = "submit"
    CAPTURE = "capture"
    DECLINE = "decline"
    CANCEL = "cancel"


MOVES: dict[tuple[SandboxState, PaymentMove], SandboxState] = {
    (SandboxState.REQUIRES_PAYER, PaymentMove.ASK): SandboxState.REQUIRES_ACTION,
    (SandboxState.REQUIRES_PAYER, PaymentMove.SUBMIT): SandboxState.PROCESSING,
    (SandboxState.REQUIRES_PAYER, PaymentMove.CAPTURE): SandboxState.CAPTURED,
    (SandboxState.REQUIRES_PAYER, PaymentMove.DECLINE): SandboxState.DECLINED,
    (SandboxState.REQUIRES_PAYER, PaymentMove.CANCEL): SandboxState.CANCELLED,
    (SandboxState.REQUIRES_ACTION, PaymentMove.CAPTURE): SandboxState.CAPTURED,
    (SandboxState.REQUIRES_ACTION, PaymentMove.DECLINE): SandboxState.DECLINED,
    (SandboxState.REQUIRES_ACTION, PaymentMove.CANCEL): SandboxState.CANCELLED,
    (SandboxState.PROCESSING, PaymentMove.CAPTURE): SandboxState.CAPTURED,
    (SandboxState.PROCESSING, PaymentMove.DECLINE): SandboxState.DECLINED,
    (SandboxState.PROCESSING, PaymentMove.CANCEL): SandboxState.CANCELLED,
}


class NewCharge(Struct, frozen=True, kw_only=True, gc=False):
    """A payment to be made, validated by the API that received it."""

    amount_minor: int
    currency: str
    reference: str  # the merchant's own key
    description: str
    method: str = ""  # a token; empty: the payer chooses on the page
    return_url: str = ""
    metadata: str = "{}"  # JSON, stored for the API that created it


class SandboxPayment(Struct, frozen=True, gc=False):
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
    page: str  # the unguessable part of its page's address
    refunded_minor: int
    is_firm: int  # 1: while it is processing, it cannot be cancelled
    webhooks: str  # how its webhooks are sent: behaviour.Webhooks
    due_at: float | None  # processing: when it will be captured
    created_at: float
    metadata: str


class SandboxRefund(Struct, frozen=True, gc=False):
    """In the order of the columns of its table."""

    seq: int
    id: str
    payment_id: str
    amount_minor: int
    state: str  # succeeded, refused, or failed: returned by the bank later
    reason: str | None
    created_at: float


DISPUTE_STATES = ("open", "won", "lost")


class SandboxDispute(Struct, frozen=True, gc=False):
    """In the order of the columns of its table; a payment has at most one."""

    seq: int
    id: str
    payment_id: str
    amount_minor: int
    state: str  # open, won or lost, as the merchant sees it
    reason: str
    created_at: float


class SandboxWebhook(Struct, frozen=True, gc=False):
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


def new_payment(order: NewCharge, payment_id: str, now: float, *, page: str) -> SandboxPayment:
    return SandboxPayment(
        seq=0,
        id=payment_id,
        reference=order.reference,
        amount_minor=order.amount_minor,
        currency=order.currency,
        state=SandboxState.REQUIRES_PAYER,
        method=order.method,
        card=None,
        code=None,
        reason=None,
        description=order.description,
        return_url=order.return_url,
        page=page,
        refunded_minor=0,
        is_firm=0,
        webhooks="once",
        due_at=None,
        created_at=now,
        metadata=order.metadata,
    )


def state_after(payment: SandboxPayment, move: PaymentMove) -> SandboxState:
    """The state after a move; SandboxRefusal where the move is not allowed."""
    if move is PaymentMove.CANCEL and payment.state == SandboxState.PROCESSING and payment.is_firm:
        raise SandboxRefusal(
            409, "payment_processing", "The bank has this payment; it cannot be cancelled now."
        )
    if (state := MOVES.get((SandboxState(payment.state), move))) is None:
        raise SandboxRefusal(
            400, f"payment_{payment.state}", f"This payment is {payment.state}; {move} is too late."
        )
    return state


def refundable_minor(payment: SandboxPayment) -> int:
    if payment.state != SandboxState.CAPTURED:
        raise SandboxRefusal(
            400, "payment_not_captured", f"This payment is {payment.state}; nothing to refund."
        )
    return payment.amount_minor - payment.refunded_minor


def payment_json(payment: SandboxPayment, url: str) -> dict[str, Any]:
    """A payment as the native api and the webhooks show it."""
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
    if url and payment.state in (SandboxState.REQUIRES_PAYER, SandboxState.REQUIRES_ACTION):
        page["action_url"] = f"{url}/pay/{payment.page}"
    return page


def refund_json(refund: SandboxRefund) -> dict[str, Any]:
    return {
        "id": refund.id,
        "payment_id": refund.payment_id,
        "amount_minor": refund.amount_minor,
        "state": refund.state,
        "reason": refund.reason,
        "created_at": refund.created_at,
    }


def dispute_json(dispute: SandboxDispute, currency: str) -> dict[str, Any]:
    return {
        "id": dispute.id,
        "payment_id": dispute.payment_id,
        "amount_minor": dispute.amount_minor,
        "currency": currency,
        "state": dispute.state,
        "reason": dispute.reason,
        "created_at": dispute.created_at,
    }
