"""Paying for a hold, one step at a time. No I/O.

    VERIFY ─► CHARGE ─┬─ yes ─────────────────────► CONFIRM ─┬─ yes ─► PAID
       │       ▲      ├─ no ──────► GIVE_BACK ─► DECLINED     └─ no ──► LATE ─┬─ yes ─► PAID
       no      │      └─ unknown ─► LOOK_UP ─ yes, no: as above               └─ no ──► REFUND ─┬─► RETURNED
       ▼       └─── absent ────────────┘ │                                                      └─► BY_HAND
    REFUSED                              └─ time is up ─► CALL_OFF ─ yes, absent ─► LET_GO ─► EXPIRED
                                                             │  no: it was taken ─► CONFIRM
                                                             └─ silent for long ─► WATCH (the seats go)

Pure: `next_step` says what to do, cashier/store.py does it and comes back with the answer. CHARGE, LOOK_UP,
CALL_OFF, WATCH, LATE and every refund are written down before they are tried, so after a crash at any line
somebody reads the row and carries on. CONFIRM, GIVE_BACK and LET_GO are one transaction each, in which the
booking and the payment move together: before it nothing has happened, after it everything has.
"""

from enum import StrEnum

from holdfast.payments.gateway import Answer


class Step(StrEnum):
    VERIFY = "verify"  # is there a hold of this owner, with time left?
    CHARGE = "charge"  # ask the gateway for the money
    LOOK_UP = "look_up"  # ask it what became of that
    CALL_OFF = "call_off"  # ask it to forget it
    WATCH = "watch"  # the seats are gone, and it is still silent
    CONFIRM = "confirm"  # the money is there: the booking is theirs
    LATE = "late"  # the money is there, and the booking was not waiting any more
    GIVE_BACK = "give_back"  # no money: the hold has its time again
    LET_GO = "let_go"  # no money and no time: the seats go
    REFUND = "refund"  # all of it goes back
    PAID = "paid"
    DECLINED = "declined"
    CALLED_OFF = "called_off"
    EXPIRED = "expired"
    RETURNED = "returned"
    REFUSED = "refused"
    BY_HAND = "by_hand"  # a person must look: the gateway will not give the money back


class Time(StrEnum):
    """How a payment stands to its deadline."""

    LEFT = "left"
    UP = "up"
    LONG_UP = "long_up"  # and the gateway has been silent: the seats have waited long enough


NEXT: dict[tuple[Step, Answer], Step] = {
    (Step.VERIFY, Answer.YES): Step.CHARGE,
    (Step.VERIFY, Answer.NO): Step.REFUSED,
    (Step.CHARGE, Answer.YES): Step.CONFIRM,
    (Step.CHARGE, Answer.NO): Step.GIVE_BACK,
    (Step.CHARGE, Answer.UNKNOWN): Step.LOOK_UP,
    (Step.LOOK_UP, Answer.YES): Step.CONFIRM,
    (Step.LOOK_UP, Answer.NO): Step.GIVE_BACK,
    (Step.LOOK_UP, Answer.ABSENT): Step.CHARGE,  # same key, so never a second charge
    (Step.CALL_OFF, Answer.YES): Step.LET_GO,
    (Step.CALL_OFF, Answer.ABSENT): Step.LET_GO,
    (Step.CALL_OFF, Answer.NO): Step.CONFIRM,  # too late to call off: it was taken
    (Step.WATCH, Answer.YES): Step.LET_GO,
    (Step.WATCH, Answer.ABSENT): Step.LET_GO,
    (Step.WATCH, Answer.NO): Step.CONFIRM,  # and there it will turn out to be late
    (Step.CONFIRM, Answer.YES): Step.PAID,
    (Step.CONFIRM, Answer.NO): Step.LATE,
    (Step.LATE, Answer.YES): Step.PAID,
    (Step.LATE, Answer.NO): Step.REFUND,
    (Step.GIVE_BACK, Answer.YES): Step.DECLINED,
    (Step.LET_GO, Answer.YES): Step.EXPIRED,
    (Step.REFUND, Answer.YES): Step.RETURNED,
    (Step.REFUND, Answer.NO): Step.BY_HAND,
}

# What time makes of a step that is about to be tried.
OVERTAKEN: dict[tuple[Step, Time], Step] = {
    (Step.CHARGE, Time.UP): Step.CALL_OFF,
    (Step.CHARGE, Time.LONG_UP): Step.CALL_OFF,
    (Step.LOOK_UP, Time.UP): Step.CALL_OFF,
    (Step.LOOK_UP, Time.LONG_UP): Step.CALL_OFF,
}

ENDS = {Step.PAID, Step.DECLINED, Step.CALLED_OFF, Step.EXPIRED, Step.RETURNED, Step.REFUSED, Step.BY_HAND}

# Steps in which nobody can say yet whether money moves; a second attempt waits for the first.
UNDER_WAY = {Step.CHARGE, Step.LOOK_UP, Step.CALL_OFF}


def due_step(step: Step, time: Time) -> Step:
    return OVERTAKEN.get((step, time), step)


def next_step(step: Step, answer: Answer, time: Time) -> Step:
    assert step not in ENDS
    if answer is Answer.UNKNOWN and step is not Step.CHARGE:
        # Everything but a charge may simply be asked again; but not at the cost of the seats for ever.
        return Step.WATCH if step is Step.CALL_OFF and time is Time.LONG_UP else step
    if step is Step.CALL_OFF and answer is not Answer.NO and time is Time.LEFT:
        return Step.GIVE_BACK  # the owner wanted it, and the hold has time left
    return NEXT[step, answer]
