"""Differences between a payment at the gateway and in the ledger. No I/O.

    theirs \\ ours   none     failed    under way   paid, returned
    taken           LOST     TAKEN     TAKEN       AMOUNT, TWICE or REFUNDED, unless all is equal
    not taken         –        –          –        MISSING
    no answer         –        –       WATCHED     SILENT

TAKEN is settled automatically: the payment continues as if its webhook had arrived. A payment in progress
counts once it is older than FRESH_S: until then its worker handles it. The other kinds are for operators.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field

from holdfast.money import format_plain
from holdfast.payments.gateway import Charge, GatewayAnswer
from holdfast.payments.saga import PaymentStep

FRESH_S = 30  # a younger payment in progress is still handled by its worker
WATCHED_LONG_S = 3600  # after this an operator should contact the gateway


class DifferenceKind(StrEnum):
    TAKEN = "taken"  # captured there, and not paid here
    LOST = "lost"  # captured there under our key, and the ledger has no such payment
    AMOUNT = "amount"  # another amount or currency was captured there
    TWICE = "twice"  # captured there a second time under the same key
    REFUNDED = "refunded"  # another amount was refunded there
    MISSING = "missing"  # paid here, and not captured there
    SILENT = "silent"  # paid here, and the gateway does not answer
    WATCHED = "watched"  # the seats were released, and the gateway has been silent for long


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPayment:
    """A payment in the ledger."""

    key: str
    payment_key: tuple[int, int, int]  # show, number, attempt
    step: PaymentStep
    amount_minor: int
    currency: str
    reference: str | None
    back_minor: int  # refunded through the gateway
    requested_minor: int  # refund requested, no answer yet
    age_s: float

    @property
    def is_settled(self) -> bool:
        return self.step in (PaymentStep.PAID, PaymentStep.RETURNED)

    @property
    def is_under_way(self) -> bool:
        return self.step in (PaymentStep.CHARGE, PaymentStep.LOOK_UP, PaymentStep.CALL_OFF, PaymentStep.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentDifference:
    kind: DifferenceKind
    key: str  # our reference at the gateway
    reference: str  # the gateway's own; empty: it has none
    ours: str
    theirs: str


def find_difference(key: str, ours: LedgerPayment | None, theirs: Charge) -> PaymentDifference | None:
    """None: both sides agree, or it is too early to decide."""
    kind = _kind(ours, theirs)
    if kind is None:
        return None
    reference = theirs.reference or (ours.reference if ours else None) or ""
    return PaymentDifference(
        kind=kind, key=key, reference=reference, ours=describe_ours(ours), theirs=describe_theirs(theirs)
    )


def _kind(ours: LedgerPayment | None, theirs: Charge) -> DifferenceKind | None:
    match theirs.answer:
        case GatewayAnswer.YES:
            return DifferenceKind.LOST if ours is None else _kind_of_taken(ours, theirs)
        case GatewayAnswer.NO | GatewayAnswer.ABSENT:
            return DifferenceKind.MISSING if ours is not None and ours.is_settled else None
        case GatewayAnswer.UNKNOWN if ours is not None and ours.is_settled:
            return DifferenceKind.SILENT
        case GatewayAnswer.UNKNOWN if (
            ours is not None and ours.step is PaymentStep.WATCH and ours.age_s > WATCHED_LONG_S
        ):
            return DifferenceKind.WATCHED
    return None


def _kind_of_taken(ours: LedgerPayment, theirs: Charge) -> DifferenceKind | None:
    if ours.is_under_way and ours.age_s < FRESH_S:
        return None
    is_same_sum = theirs.amount_minor in (None, ours.amount_minor)
    if not is_same_sum or theirs.currency not in (None, ours.currency):
        return DifferenceKind.AMOUNT
    if not ours.is_settled:
        return DifferenceKind.TAKEN
    if None not in (ours.reference, theirs.reference) and ours.reference != theirs.reference:
        return DifferenceKind.TWICE
    # A requested refund may have been made there already, with its answer lost.
    is_back = ours.back_minor <= theirs.refunded_minor <= ours.back_minor + ours.requested_minor
    return None if is_back else DifferenceKind.REFUNDED


def describe_ours(ours: LedgerPayment | None) -> str:
    if ours is None:
        return "no such payment"
    back = f", {format_plain(ours.back_minor, ours.currency)} back" if ours.back_minor else ""
    requested = (
        f", {format_plain(ours.requested_minor, ours.currency)} on its way back"
        if ours.requested_minor
        else ""
    )
    return f"{ours.step} {format_plain(ours.amount_minor, ours.currency)}{back}{requested}"


def describe_theirs(theirs: Charge) -> str:
    match theirs.answer:
        case GatewayAnswer.YES:
            currency = theirs.currency or "?"
            back = f", {format_plain(theirs.refunded_minor, currency)} back" if theirs.refunded_minor else ""
            return f"taken {format_plain(theirs.amount_minor or 0, currency)}{back}"
        case GatewayAnswer.NO:
            return "not taken"
        case GatewayAnswer.ABSENT:
            return "no such payment"
    return "no answer"


LENGTH = re.compile(r"([0-9]{1,6})([mhd])")
UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: str) -> timedelta | None:
    """90m, 24h or 7d; None: not a duration."""
    found = LENGTH.fullmatch(text.strip())
    return timedelta(**{UNITS[found[2]]: int(found[1])}) if found else None


class DifferencePage(Struct, frozen=True, kw_only=True):
    kind: DifferenceKind
    key: str
    booking_id: str | None
    reference: str
    ours: str
    theirs: str
    found_at: datetime


class Comparison(Struct, frozen=True, kw_only=True):
    """The latest comparison: its range, and the differences that it could not settle."""

    gateway: str
    since: datetime | None  # payments since then were compared; null: no comparison yet
    compared_at: datetime | None
    seen: int
    settled: int
    differences: list[DifferencePage]
    complete: bool = True  # false: some databases cannot be reached, their differences are missing here
    missing_pods: list[str] = field(default_factory=list)
