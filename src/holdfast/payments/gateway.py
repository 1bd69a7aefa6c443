"""The protocol of a payment gateway. Adapters in gateways/: stripe, razorpay, sandbox, none. No I/O.

An adapter turns everything that can go wrong into one of four answers. It never raises for the network, and
it never guesses: a time-out, a 5xx, a dropped connection are UNKNOWN, because the money may have moved. A
payment that waits for its payer is UNKNOWN, too: it is not decided yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class GatewayAnswer(StrEnum):
    YES = "yes"  # it has happened
    NO = "no"  # it has not, and will not
    ABSENT = "absent"  # the gateway does not know this key
    UNKNOWN = "unknown"  # no answer, or not decided yet: look it up


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeOrder:
    """A charge to be made. The same key twice is the same charge, at every gateway."""

    key: str  # ours, one per attempt: the idempotency key, and our reference in the gateway's metadata
    amount_minor: int
    currency: str
    method: str  # a token of the gateway's for a card or an account; empty: the payer confirms on its page
    description: str  # for the payer's statement
    return_url: str = ""  # where the payer goes afterwards, if the gateway has to send them somewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The state of a charge at the gateway."""

    answer: GatewayAnswer
    reference: str | None = None  # the gateway's own id, once it has one
    reason: str | None = None  # of a NO, for the payer: one sentence
    code: str | None = None  # of a NO, stable: card_declined, insufficient_funds, expired_card …
    action_url: str | None = None  # UNKNOWN, and the payer has to go here: a payment page, 3-D Secure
    client_secret: str | None = None  # UNKNOWN, and the payer's browser needs this to confirm
    is_processing: bool = False  # UNKNOWN, and the payer has done their part: the bank has it
    amount_minor: int | None = None  # of a YES: the captured amount, always with its currency
    currency: str | None = None
    refunded_minor: int = 0  # of a YES: the amount refunded so far
    card: str | None = None  # fingerprint of the card or account, where the gateway provides it


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundResult:
    """YES: refunded. NO: refused, with a `reason`. There is no ABSENT: the charge is known."""

    answer: GatewayAnswer
    reference: str | None = None
    reason: str | None = None


class DisputeState(StrEnum):
    """A chargeback as the merchant sees it."""

    OPEN = "open"  # the gateway has taken the money back for now
    WON = "won"  # the money came back to us
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """The payer's bank took the money of a payment back."""

    reference: str  # the gateway's own id
    state: DisputeState
    amount_minor: int
    currency: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPayment:
    """A payment in the gateway's list, for reconciliation."""

    key: str | None  # our reference, from its metadata; None: not our payment
    reference: str
    charge: Charge
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook with a valid signature: which payment to look up. Its content is never trusted."""

    event_id: str  # the gateway's, the same for every copy
    kind: str  # the gateway's word
    key: str | None  # our reference, from the metadata; None: not about our payment
    reference: str | None
    amount_minor: int | None  # of the payment, if the webhook has it
    currency: str | None
    mode: str  # live or test


class BadWebhook(Exception):
    """A webhook that changes nothing: missing, bad, stale or future signature, wrong mode, not JSON."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = (
            why  # a few words, a label of the meter: signature, stale, future, mode, account, malformed
        )


class Gateway(Protocol):
    name: str
    mode: str  # live or test: a webhook of the other mode is rejected

    async def charge(self, order: ChargeOrder) -> Charge:
        """YES, NO or UNKNOWN. With the key of an earlier order: the state of that one."""
        ...

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        """Any of the four. By our key where there is no reference yet: the reply may have been lost."""
        ...

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        """YES: cancelled, no money will move. NO: too late, it was captured. ABSENT: nothing to cancel."""
        ...

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> RefundResult:
        """The same key twice is the same refund."""
        ...

    async def look_up_refund(self, *, reference: str) -> RefundResult:
        """A refund by the gateway's id, now: NO if it failed after it was made. UNKNOWN: no answer."""
        ...

    async def find_dispute(self, *, reference: str) -> Dispute | None:
        """The dispute of a payment, if there is one that moves money; raises GatewayDown."""
        ...

    async def card_fingerprint(self, method: str) -> str | None:
        """Fingerprint of the card behind a token, before it is charged; None: it is unknown."""
        ...

    async def list_recent(
        self, *, since: datetime, after: str | None = None
    ) -> tuple[Sequence[ListedPayment], str | None]:
        """A page of payments made since then, and the cursor of the next page; raises GatewayDown."""
        ...

    def parse_webhook(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        """Verify and parse a webhook from its raw bytes; `headers` are lower case. Raises BadWebhook."""
        ...

    async def close(self) -> None: ...


class NoDecision(Exception):
    """An adapter's call got no answer that decides anything: it becomes UNKNOWN."""


class GatewayDown(Exception):
    """The gateway did not answer a query; nothing was changed."""
