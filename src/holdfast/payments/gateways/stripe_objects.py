"""Stripe's objects, converted to ours: intents, refunds, webhooks. No I/O.

An intent's status and what we make of it:

    succeeded                 YES      the amount received, less what has gone back
    canceled                  NO       it cannot be confirmed any more
    processing                UNKNOWN  a bank debit takes days
    requires_action           UNKNOWN  the payer is at 3-D Secure
    requires_confirmation     UNKNOWN  the payer's browser has not confirmed yet
    requires_capture          UNKNOWN  we never request this
    requires_payment_method   UNKNOWN  the payer's browser may try another card, until it is cancelled
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from holdfast.payments.gateway import (
    Charge,
    Dispute,
    DisputeState,
    GatewayAnswer,
    ListedPayment,
    RefundResult,
)

KEY = "holdfast_key"  # in an intent's metadata; Stripe copies it to the charge
REFUND_KEY = "holdfast_refund"  # in a refund's metadata
FLOW = (
    "holdfast_flow"  # "token": we confirmed it; "page": the payer's browser does, and may try several cards
)


class StripeFailure(msgspec.Struct):
    code: str | None = None
    decline_code: str | None = None
    message: str | None = None


class Redirect(msgspec.Struct):
    url: str | None = None


class NextAction(msgspec.Struct):
    redirect_to_url: Redirect | None = None


class Instrument(msgspec.Struct):
    fingerprint: str | None = None


class Instruments(msgspec.Struct):
    """A payment method, or the details of one: the fingerprint is within the part named after its type."""

    card: Instrument | None = None
    sepa_debit: Instrument | None = None
    us_bank_account: Instrument | None = None

    @property
    def fingerprint(self) -> str | None:
        known = (self.card, self.sepa_debit, self.us_bank_account)
        return next((one.fingerprint for one in known if one is not None and one.fingerprint), None)


class StripeCharge(msgspec.Struct):
    """Stripe's word is charge, which is another thing here: one try to take an intent's money."""

    amount_refunded: int = 0
    payment_method_details: Instruments | None = None


class StripeIntent(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    created: int
    amount_received: int | None = None
    client_secret: str | None = None
    metadata: dict[str, str] = {}
    last_payment_error: StripeFailure | None = None
    next_action: NextAction | None = None
    latest_charge: StripeCharge | str | None = None

    @property
    def key(self) -> str | None:
        return self.metadata.get(KEY)

    @property
    def is_refused(self) -> bool:
        """Tried by us, and refused. One that the payer's browser tries may still succeed."""
        tried = self.status == "requires_payment_method" and self.last_payment_error is not None
        return tried and self.metadata.get(FLOW) == "token"


class StripeRefund(msgspec.Struct):
    id: str
    status: str
    metadata: dict[str, str] = {}


ANSWERS = {"succeeded": GatewayAnswer.YES, "canceled": GatewayAnswer.NO}

# Banks' codes that help the payer. The others ("stolen", "fraudulent") stay hidden from a thief.
SHOWN_CODES = {
    "insufficient_funds",
    "expired_card",
    "incorrect_cvc",
    "incorrect_number",
    "invalid_expiry_year",
}
SHOWN_CODES |= {
    "invalid_expiry_month",
    "card_velocity_exceeded",
    "currency_not_supported",
    "processing_error",
}
SHOWN_CODES |= {"authentication_required", "card_not_supported", "withdrawal_count_limit_exceeded"}
ABANDONED = "payment_intent_authentication_failure"


def build_charge(intent: StripeIntent) -> Charge:
    answer = ANSWERS.get(intent.status, GatewayAnswer.UNKNOWN)
    if answer is GatewayAnswer.NO:
        return Charge(
            answer=answer, reference=intent.id, code="cancelled", reason="The payment was cancelled."
        )
    if answer is GatewayAnswer.UNKNOWN:
        redirect = intent.next_action and intent.next_action.redirect_to_url
        return Charge(
            answer=answer,
            reference=intent.id,
            action_url=redirect.url if redirect else None,
            client_secret=intent.client_secret if intent.status.startswith("requires_") else None,
            is_processing=intent.status == "processing",
        )
    taken = intent.latest_charge if isinstance(intent.latest_charge, StripeCharge) else StripeCharge()
    details = taken.payment_method_details
    return Charge(
        answer=answer,
        reference=intent.id,
        amount_minor=intent.amount if intent.amount_received is None else intent.amount_received,
        currency=intent.currency.upper(),
        refunded_minor=taken.amount_refunded,
        card=details.fingerprint if details else None,
    )


def build_refusal(failure: StripeFailure, reference: str | None) -> Charge:
    """A NO of the bank, with a code that stays the same and Stripe's sentence, which is made for payers."""
    reported = failure.decline_code or failure.code or ""
    code = (
        "authentication_failed"
        if reported == ABANDONED
        else reported
        if reported in SHOWN_CODES
        else "card_declined"
    )
    reason = failure.message or "Your card was declined."
    return Charge(answer=GatewayAnswer.NO, reference=reference, code=code, reason=reason)


def build_listed_payment(intent: StripeIntent) -> ListedPayment:
    at = datetime.fromtimestamp(intent.created, UTC)
    return ListedPayment(key=intent.key, reference=intent.id, charge=build_charge(intent), at=at)


# pending is a yes: the money is on its way, and Stripe says refund.failed if it should come back.
REFUND_ANSWERS = {
    "succeeded": GatewayAnswer.YES,
    "pending": GatewayAnswer.YES,
    "failed": GatewayAnswer.NO,
    "canceled": GatewayAnswer.NO,
}


def build_refund_result(refund: StripeRefund) -> RefundResult:
    answer = REFUND_ANSWERS.get(refund.status, GatewayAnswer.UNKNOWN)
    reason = "The bank did not take the refund." if answer is GatewayAnswer.NO else None
    return RefundResult(answer=answer, reference=refund.id, reason=reason)


class StripeDispute(msgspec.Struct):
    id: str
    status: str
    amount: int
    currency: str
    reason: str = ""


# A warning (an inquiry) moves no money, nor does a dispute that was prevented: they are not listed here.
DISPUTES = {
    "needs_response": DisputeState.OPEN,
    "under_review": DisputeState.OPEN,
    "won": DisputeState.WON,
    "lost": DisputeState.LOST,
}


def build_dispute(disputes: Sequence[StripeDispute]) -> Dispute | None:
    """The newest one that moves money; Stripe lists the newest first."""
    for one in disputes:
        if (state := DISPUTES.get(one.status)) is not None:
            return Dispute(
                reference=one.id,
                state=state,
                amount_minor=one.amount,
                currency=one.currency.upper(),
                reason=one.reason,
            )
    return None
