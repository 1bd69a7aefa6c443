"""What we need from whoever moves the money. Three adapters in gateways/: sandbox, stripe, razorpay.
No I/O.

An adapter's job is to turn everything that can go wrong into one of four answers. It never raises for the
network, and it never guesses: a time-out, a 5xx, a dropped connection are UNKNOWN, because the money may have
moved. So is a payment that waits for its payer: nobody knows yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Answer(StrEnum):
    YES = "yes"  # it has happened
    NO = "no"  # it has not, and will not
    ABSENT = "absent"  # the gateway has never heard of this key
    UNKNOWN = "unknown"  # no answer, or not decided yet: look it up


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A charge to be made. The same key twice is the same charge, at every gateway."""

    key: str  # ours, one an attempt: the gateway's idempotency key, and our reference in its metadata
    amount_minor: int
    currency: str
    method: str  # a token of the gateway's for a card or an account; empty: the payer confirms on its page
    description: str  # for the payer's statement: what is bought
    return_url: str = ""  # where the payer goes afterwards, if the gateway has to send them somewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What became of a charge, as far as the gateway says."""

    answer: Answer
    reference: str | None = None  # the gateway's own id, once it has one
    reason: str | None = None  # of a NO, for the payer: one sentence
    code: str | None = None  # of a NO, stable: card_declined, insufficient_funds, expired_card …
    action_url: str | None = None  # UNKNOWN, and the payer has to go here: a payment page, 3-D Secure
    client_secret: str | None = None  # UNKNOWN, and the payer's browser needs this to confirm
    amount_minor: int | None = None  # of a YES: what was taken
    currency: str | None = None
    refunded_minor: int = 0  # of a YES: what has gone back already
    card: str | None = None  # fingerprint of the card or account, where the gateway tells it


@dataclass(frozen=True, slots=True, kw_only=True)
class Refunded:
    """YES: it goes back. NO: it will not, for `reason`. There is no ABSENT: the charge is known."""

    answer: Answer
    reference: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A payment as the gateway lists it, for who compares its books with ours."""

    key: str | None  # our reference, from its metadata; None: not one of ours
    reference: str
    charge: Charge
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A webhook whose signature is good: which payment to look at, and what the gateway said of it."""

    event_id: str  # the gateway's, the same for every copy
    kind: str  # the gateway's word
    key: str | None  # our reference, from the metadata; None: about nothing of ours
    reference: str | None
    amount_minor: int | None  # of the payment, where it says
    currency: str | None
    mode: str  # live or test


class BadNotice(Exception):
    """A webhook that changes nothing: no, bad, stale or future signature, another mode, not JSON."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = (
            why  # a few words, a label of the meter: signature, stale, future, mode, account, malformed
        )


class Gateway(Protocol):
    name: str
    mode: str  # live or test: a notice of the other mode is refused

    async def charge(self, order: Order) -> Charge:
        """YES, NO or UNKNOWN. With the key of an earlier order: what became of that one."""
        ...

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        """Any of the four. By our key where there is no reference yet: its reply may have been lost."""
        ...

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        """YES: cancelled, no money will move. NO: too late, it was taken. ABSENT: nothing to cancel."""
        ...

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> Refunded:
        """The same key twice is the same refund."""
        ...

    async def card_of(self, method: str) -> str | None:
        """Fingerprint of the card behind a token, before it is charged; None: it cannot be told."""
        ...

    async def recent(self, *, since: datetime, after: str | None = None) -> tuple[Sequence[Seen], str | None]:
        """A page of payments made since then, and what to ask for next; raises GatewayDown."""
        ...

    def notice(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Notice:
        """Check a webhook, byte for byte as it came; `headers` are lower case. Raises BadNotice."""
        ...

    async def close(self) -> None: ...


class GatewayDown(Exception):
    """It does not answer; nothing was changed by asking."""
