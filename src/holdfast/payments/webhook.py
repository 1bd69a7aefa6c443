"""A webhook: what a gateway told us, and what is to be done about it. No I/O."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.bookings import public_id
from holdfast.payments.gateway import Notice
from holdfast.payments.payment import booking_of_key

# How long after a failed try the next one is; after the last, it is dead.
PAUSES_S = (60, 300, 1800)
NAME_MAX = 255
BIGINT_MAX = 2**63 - 1
NOWHERE = (0, 0, 0)


class Verdict(StrEnum):
    """What the ledger makes of a webhook when it is stored: queries.sql."""

    DONE = "done"  # nothing to do: the payment is where it says, or beyond
    LOOK = "look"  # somebody must look at the gateway
    WAIT = "wait"  # whoever is charging at this moment will hear of it first
    FOREIGN = "foreign"  # about no payment of ours: the gateway's account may be shared
    AMOUNT = "amount"  # another sum than we asked for: refused
    CURRENCY = "currency"


REFUSED = {Verdict.AMOUNT, Verdict.CURRENCY}


class Told(Struct, frozen=True, gc=False):
    """A webhook whose signature is good, and its bytes."""

    notice: Notice
    body: bytes

    @property
    def place(self) -> tuple[int, int, int]:
        """(show, number, attempt) of the payment, as its key says; nowhere, if it has none of ours."""
        return (booking_of_key(self.notice.key) if self.notice.key else None) or NOWHERE


class Stored(Struct, frozen=True, gc=False):
    verdict: Verdict
    is_first: bool  # not a copy
    place: tuple[int, int, int] | None


class Due(Struct, frozen=True):
    """One to be looked into."""

    gateway: str
    event_id: str
    kind: str
    place: tuple[int, int, int]
    reference: str | None


def is_about_refund(kind: str) -> bool:
    return "refund" in kind


def is_storable(notice: Notice) -> bool:
    """One that the ledger could not take would keep everybody who travels with it from being stored."""
    texts = [notice.event_id, notice.kind, notice.key or "", notice.reference or "", notice.currency or ""]
    fits = all(len(text) <= NAME_MAX and "\0" not in text for text in texts)
    return fits and bool(notice.event_id) and abs(notice.amount_minor or 0) <= BIGINT_MAX


class WebhooksAsked(Struct, forbid_unknown_fields=True, frozen=True):
    state: Literal["dead", "due", "all"] = "dead"
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class WebhookPage(Struct, frozen=True, kw_only=True):
    gateway: str
    event_id: str  # the gateway's
    kind: str  # the gateway's word
    booking_id: str
    attempt: int
    state: Literal["dead", "due", "done"]
    copies: int  # how often it came
    tries: int
    reason: str | None  # why it could not be settled
    received_at: datetime
    due_at: datetime | None  # when it is tried again
    done_at: datetime | None


class WebhookList(Struct, frozen=True):
    webhooks: list[WebhookPage]
    more: bool


class Heard(Struct, frozen=True):
    """What a gateway is answered: it is stored, and need not come again."""

    stored: bool


def booking_id(place: tuple[int, int, int]) -> str:
    return public_id(place[0], place[1])
