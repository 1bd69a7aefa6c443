"""A payment: one attempt to pay for a booking. No I/O."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.bookings import BookingState, NoSuchBooking, from_public_id, public_id, reference
from holdfast.claim import Claim
from holdfast.legal import Agreed
from holdfast.payments.gateway import Charge
from holdfast.payments.saga import ENDS, DeadlineStatus, PaymentStep

KEY_FORM = "{booking}_{salt}"  # and _{attempt}, which the ledger adds

Token = Annotated[str, Meta(max_length=255)]
# A path on our own site: an open redirect would help phishing.
ReturnPath = Annotated[str, Meta(max_length=500, pattern=r"^/([^/\\].*)?$(?!\n)")]


class PayBody(Struct, forbid_unknown_fields=True, frozen=True):
    """With a `method` it is charged at once; without one, the payer confirms with the gateway."""

    method: Token = ""  # the gateway's token for a card or an account; never a card number
    return_path: ReturnPath = "/"  # where the gateway sends the payer back to, if it needs to see them
    agreed: Agreed | None = None  # the terms of house and organisation that the buyer agrees to


class PayPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a payment. Every field is the payment's own: the same key gives the same answer later."""

    booking_id: str
    reference: str
    show_id: int
    state: BookingState
    amount: int  # minor units of the currency
    currency: str
    attempt: int
    gateway: str
    paid_at: datetime | None = None
    expires_at: datetime | None = None  # only while it is in progress
    action_url: str | None = None  # the payer has to go here
    client_secret: str | None = None  # or their browser confirms with this


class PaymentRequest(Struct, frozen=True, gc=False, kw_only=True):
    """A buyer's request to pay for a booking."""

    show_id: int
    number: int
    owner_id: int
    request_id: str
    body_hash: int
    method: str
    return_url: str
    salt: str  # keeps keys apart where another installation used the same gateway account
    card: str | None = None  # fingerprint; None: not looked up, empty: the gateway does not know it

    @property
    def key(self) -> str:
        return KEY_FORM.format(booking=public_id(self.show_id, self.number), salt=self.salt)


class Payment(Struct, frozen=True, gc=False, kw_only=True):
    """A row of the ledger, with the fields of its booking that the saga needs (payment_detail)."""

    show_id: int
    number: int
    attempt: int
    owner_id: int
    fence: int
    key: str
    gateway: str
    method: str
    return_url: str
    step: PaymentStep
    amount_minor: int
    currency: str
    refunds_minor: int
    reference: str | None
    action_url: str | None
    client_secret: str | None
    reason: str | None
    code: str | None
    deadline_at: datetime
    ended_at: datetime | None
    turn: int
    tries: int
    booking_state: BookingState
    claim_id: str
    seats: tuple[int, ...]
    prices_minor: tuple[int, ...]
    revision: int
    left_ms: int  # to the deadline, when it was read
    hold_left_ms: int  # of the hold, when it was read
    read_at_s: float  # monotonic

    @property
    def claim(self) -> Claim:
        return Claim(self.claim_id, self.owner_id, self.seats)

    @property
    def has_ended(self) -> bool:
        return self.step in ENDS

    def is_for(self, charge: Charge) -> bool:
        """Whether captured money is exactly what was requested. A capture without an amount is not."""
        return (charge.amount_minor, charge.currency) == (self.amount_minor, self.currency)

    def time(self, now_s: float, grace_s: int) -> DeadlineStatus:
        left_s = self.left_ms / 1000 - (now_s - self.read_at_s)
        if left_s > 0:
            return DeadlineStatus.LEFT
        return DeadlineStatus.UP if left_s > -grace_s else DeadlineStatus.LONG_UP


def parse_payment_key(key: str) -> tuple[int, int, int] | None:
    """(show, number, attempt) from a key at the gateway; None: not our key."""
    booking, _, rest = key.partition("_")
    _, _, attempt = rest.partition("_")
    if not (attempt.isascii() and attempt.isdigit() and len(attempt) < 10):
        return None
    try:
        return (*from_public_id(booking), int(attempt))
    except NoSuchBooking:
        return None


def build_pay_page(payment: Payment) -> PayPage:
    is_paid = payment.step is PaymentStep.PAID
    return PayPage(
        booking_id=public_id(payment.show_id, payment.number),
        reference=reference(payment.show_id, payment.number),
        show_id=payment.show_id,
        state=BookingState.CONFIRMED if is_paid else payment.booking_state,
        amount=payment.amount_minor,
        currency=payment.currency,
        attempt=payment.attempt,
        gateway=payment.gateway,
        paid_at=payment.ended_at if is_paid else None,
        expires_at=None if payment.has_ended else payment.deadline_at,
        action_url=None if payment.has_ended else payment.action_url,
        client_secret=None if payment.has_ended else payment.client_secret,
    )
