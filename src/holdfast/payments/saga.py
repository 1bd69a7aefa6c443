"""Paying for a hold, one step at a time. No I/O.

    VERIFY ─► CHARGE ─┬─ yes ─────────────────────► CONFIRM ─┬─ yes ─► PAID
       │       ▲      ├─ no ──────► GIVE_BACK ─► DECLINED     └─ no ──► LATE ─┬─ yes ─► PAID
       no      │      └─ unknown ─► LOOK_UP ─ yes, no: as above               └─ no ──► REFUND ─┬─► RETURNED
       ▼       └─── absent ────────────┘ │                                                      └─► BY_HAND
    REFUSED                              └─ time is up ─► CALL_OFF ─ yes, absent ─► RELEASE ─► EXPIRED
                                                             │  no: it was taken ─► amount compared ─► CONFIRM
                                                             └─ silent for long ─► WATCH (seats released)

`next_step` decides, saga_runner.py executes the step and returns with the answer. CHARGE, LOOK_UP, CALL_OFF,
WATCH, LATE and every refund are stored before they are tried, so after a crash at any line a worker reads the
row and continues. CONFIRM, GIVE_BACK and RELEASE are one transaction each, in which the booking and the
payment change together: before it nothing has happened, after it everything has.
"""

from enum import StrEnum

from holdfast.payments.gateway import GatewayAnswer


class PaymentStep(StrEnum):
    VERIFY = "verify"  # is there a hold of this owner, with time left?
    CHARGE = "charge"  # request the money from the gateway
    LOOK_UP = "look_up"  # query the result of the charge
    CALL_OFF = "call_off"  # request that the gateway cancels the charge
    WATCH = "watch"  # the seats are released, and the gateway is still silent
    CONFIRM = "confirm"  # the money was captured: confirm the booking
    LATE = "late"  # the money was captured after the booking had stopped waiting for it
    GIVE_BACK = "give_back"  # no money: the hold continues
    RELEASE = "release"  # no money and no time left: release the seats
    REFUND = "refund"  # the full amount is refunded
    PAID = "paid"
    DECLINED = "declined"
    CALLED_OFF = "called_off"
    EXPIRED = "expired"
    RETURNED = "returned"
    REFUSED = "refused"
    BY_HAND = "by_hand"  # an operator must act: the gateway refuses the refund


class DeadlineStatus(StrEnum):
    """Where a payment is relative to its deadline."""

    LEFT = "left"
    UP = "up"
    LONG_UP = "long_up"  # and the gateway was silent meanwhile: the seats have waited long enough


NEXT: dict[tuple[PaymentStep, GatewayAnswer], PaymentStep] = {
    (PaymentStep.VERIFY, GatewayAnswer.YES): PaymentStep.CHARGE,
    (PaymentStep.VERIFY, GatewayAnswer.NO): PaymentStep.REFUSED,
    (PaymentStep.CHARGE, GatewayAnswer.YES): PaymentStep.CONFIRM,
    (PaymentStep.CHARGE, GatewayAnswer.NO): PaymentStep.GIVE_BACK,
    (PaymentStep.CHARGE, GatewayAnswer.UNKNOWN): PaymentStep.LOOK_UP,
    (PaymentStep.LOOK_UP, GatewayAnswer.YES): PaymentStep.CONFIRM,
    (PaymentStep.LOOK_UP, GatewayAnswer.NO): PaymentStep.GIVE_BACK,
    (PaymentStep.LOOK_UP, GatewayAnswer.ABSENT): PaymentStep.CHARGE,  # same key, so never a second charge
    (PaymentStep.CALL_OFF, GatewayAnswer.YES): PaymentStep.RELEASE,
    (PaymentStep.CALL_OFF, GatewayAnswer.ABSENT): PaymentStep.RELEASE,
    (
        PaymentStep.CALL_OFF,
        GatewayAnswer.NO,
    ): PaymentStep.CONFIRM,  # too late to cancel: the money was captured
    (PaymentStep.WATCH, GatewayAnswer.YES): PaymentStep.RELEASE,
    (PaymentStep.WATCH, GatewayAnswer.ABSENT): PaymentStep.RELEASE,
    (PaymentStep.WATCH, GatewayAnswer.NO): PaymentStep.CONFIRM,  # CONFIRM then finds out that it is late
    (PaymentStep.CONFIRM, GatewayAnswer.YES): PaymentStep.PAID,
    (PaymentStep.CONFIRM, GatewayAnswer.NO): PaymentStep.LATE,
    (PaymentStep.LATE, GatewayAnswer.YES): PaymentStep.PAID,
    (PaymentStep.LATE, GatewayAnswer.NO): PaymentStep.REFUND,
    (PaymentStep.GIVE_BACK, GatewayAnswer.YES): PaymentStep.DECLINED,
    (PaymentStep.RELEASE, GatewayAnswer.YES): PaymentStep.EXPIRED,
    (PaymentStep.REFUND, GatewayAnswer.YES): PaymentStep.RETURNED,
    (PaymentStep.REFUND, GatewayAnswer.NO): PaymentStep.BY_HAND,
}

# The step that replaces one whose deadline has passed before it was tried.
OVERTAKEN: dict[tuple[PaymentStep, DeadlineStatus], PaymentStep] = {
    (PaymentStep.CHARGE, DeadlineStatus.UP): PaymentStep.CALL_OFF,
    (PaymentStep.CHARGE, DeadlineStatus.LONG_UP): PaymentStep.CALL_OFF,
    (PaymentStep.LOOK_UP, DeadlineStatus.UP): PaymentStep.CALL_OFF,
    (PaymentStep.LOOK_UP, DeadlineStatus.LONG_UP): PaymentStep.CALL_OFF,
}

ENDS = {
    PaymentStep.PAID,
    PaymentStep.DECLINED,
    PaymentStep.CALLED_OFF,
    PaymentStep.EXPIRED,
    PaymentStep.RETURNED,
    PaymentStep.REFUSED,
    PaymentStep.BY_HAND,
}

# Steps in which it is unknown whether money moves; a second attempt has to wait for the first.
UNDER_WAY = {PaymentStep.CHARGE, PaymentStep.LOOK_UP, PaymentStep.CALL_OFF}


def due_step(step: PaymentStep, time: DeadlineStatus) -> PaymentStep:
    return OVERTAKEN.get((step, time), step)


def next_step(step: PaymentStep, answer: GatewayAnswer, time: DeadlineStatus) -> PaymentStep:
    assert step not in ENDS
    if answer is GatewayAnswer.UNKNOWN and step is not PaymentStep.CHARGE:
        # Every step but a charge can simply be repeated. But a gateway that never answers must not block
        # the seats permanently: after LONG_UP they are released and the payment is only watched.
        return PaymentStep.WATCH if step is PaymentStep.CALL_OFF and time is DeadlineStatus.LONG_UP else step
    if step is PaymentStep.CALL_OFF and answer is not GatewayAnswer.NO and time is DeadlineStatus.LEFT:
        return PaymentStep.GIVE_BACK  # cancelled by the owner while the hold has time left
    return NEXT[step, answer]
