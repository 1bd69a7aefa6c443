"""What the gateway's books say of a payment, held against ours. Compares, and nothing else. No I/O.

    theirs \\ ours   none     failed    under way   paid, returned
    taken           LOST     TAKEN     TAKEN       AMOUNT, TWICE or REFUNDED, unless all is equal
    not taken         –        –          –        MISSING
    no answer         –        –       WATCHED     SILENT

TAKEN is settled: the payment is looked at, and goes on as if the gateway had told us. A payment under way
counts once it is older than FRESH_S: until then whoever carries it on will see to it. The rest is for people.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from holdfast.money import format_plain
from holdfast.payments.gateway import Answer, Charge
from holdfast.payments.saga import Step

FRESH_S = 30  # a payment under way this long is seen to by whoever carries it on
WATCHED_LONG_S = 3600  # after this a person should ask the gateway


class Kind(StrEnum):
    TAKEN = "taken"  # money was taken there, and is not paid here
    LOST = "lost"  # money was taken there under a key of ours, and the ledger has no such payment
    AMOUNT = "amount"  # another amount or currency was taken there
    TWICE = "twice"  # money was taken there a second time under the same key
    REFUNDED = "refunded"  # another sum has gone back there
    MISSING = "missing"  # paid here, and the gateway has no money of it
    SILENT = "silent"  # paid here, and the gateway does not say
    WATCHED = "watched"  # the seats are gone, and the gateway has been silent for long


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A payment as the ledger has it."""

    key: str
    place: tuple[int, int, int]  # show, number, attempt
    step: Step
    amount_minor: int
    currency: str
    reference: str | None
    back_minor: int  # gone back through the gateway
    asked_minor: int  # on its way back
    age_s: float

    @property
    def is_settled(self) -> bool:
        return self.step in (Step.PAID, Step.RETURNED)

    @property
    def is_under_way(self) -> bool:
        return self.step in (Step.CHARGE, Step.LOOK_UP, Step.CALL_OFF, Step.LATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    kind: Kind
    key: str  # our reference at the gateway
    reference: str  # the gateway's own; empty: it has none
    ours: str
    theirs: str


def difference(key: str, ours: Ours | None, theirs: Charge) -> Difference | None:
    """None: the books agree, or it is too early to say."""
    kind = _kind(ours, theirs)
    if kind is None:
        return None
    reference = theirs.reference or (ours.reference if ours else None) or ""
    return Difference(
        kind=kind, key=key, reference=reference, ours=words_of_ours(ours), theirs=words_of_theirs(theirs)
    )


def _kind(ours: Ours | None, theirs: Charge) -> Kind | None:
    match theirs.answer:
        case Answer.YES:
            return Kind.LOST if ours is None else _kind_of_taken(ours, theirs)
        case Answer.NO | Answer.ABSENT:
            return Kind.MISSING if ours is not None and ours.is_settled else None
        case Answer.UNKNOWN if ours is not None and ours.is_settled:
            return Kind.SILENT
        case Answer.UNKNOWN if ours is not None and ours.step is Step.WATCH and ours.age_s > WATCHED_LONG_S:
            return Kind.WATCHED
    return None


def _kind_of_taken(ours: Ours, theirs: Charge) -> Kind | None:
    if ours.is_under_way and ours.age_s < FRESH_S:
        return None
    is_same_sum = theirs.amount_minor in (None, ours.amount_minor)
    if not is_same_sum or theirs.currency not in (None, ours.currency):
        return Kind.AMOUNT
    if not ours.is_settled:
        return Kind.TAKEN
    if None not in (ours.reference, theirs.reference) and ours.reference != theirs.reference:
        return Kind.TWICE
    # What is asked for may have arrived there already, and its answer been lost.
    is_back = ours.back_minor <= theirs.refunded_minor <= ours.back_minor + ours.asked_minor
    return None if is_back else Kind.REFUNDED


def words_of_ours(ours: Ours | None) -> str:
    if ours is None:
        return "no such payment"
    back = f", {format_plain(ours.back_minor, ours.currency)} back" if ours.back_minor else ""
    asked = f", {format_plain(ours.asked_minor, ours.currency)} on its way back" if ours.asked_minor else ""
    return f"{ours.step} {format_plain(ours.amount_minor, ours.currency)}{back}{asked}"


def words_of_theirs(theirs: Charge) -> str:
    match theirs.answer:
        case Answer.YES:
            currency = theirs.currency or "?"
            back = f", {format_plain(theirs.refunded_minor, currency)} back" if theirs.refunded_minor else ""
            return f"taken {format_plain(theirs.amount_minor or 0, currency)}{back}"
        case Answer.NO:
            return "not taken"
        case Answer.ABSENT:
            return "no such payment"
    return "no answer"


LENGTH = re.compile(r"([0-9]{1,6})([mhd])")
UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def length_of(text: str) -> timedelta | None:
    """90m, 24h, 7d; None: it is none."""
    found = LENGTH.fullmatch(text.strip())
    return timedelta(**{UNITS[found[2]]: int(found[1])}) if found else None


class DifferencePage(Struct, frozen=True, kw_only=True):
    kind: Kind
    key: str
    booking_id: str | None
    reference: str
    ours: str
    theirs: str
    found_at: datetime


class Comparison(Struct, frozen=True, kw_only=True):
    """The latest one: what it looked at, and what it could not settle."""

    gateway: str
    since: datetime | None  # payments since then were compared; null: nobody has compared yet
    compared_at: datetime | None
    seen: int
    settled: int
    differences: list[DifferencePage]
