"""A refund by staff that waits for a second person. No I/O.

    proposed ─► pending ─┬─ another person approves ─► approved: the refund is decided in the same transaction
                         ├─ another person rejects ──► rejected
                         ├─ the proposer ────────────► withdrawn
                         └─ its time passes ─────────► expired

What is approved is the amount that was proposed: if the booking has changed since, nothing happens.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from holdfast.bookings import public_id, reference
from holdfast.fields import Currency
from holdfast.refunds.refund import AMOUNT_MINOR_MAX, PAGE_MAX, RefundRequest, RefundScope

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

BIGINT_MAX = 2**63 - 1
CURRENCIES_MAX = 20


class ProposalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


class RefundProposal(Struct, frozen=True, kw_only=True):
    """A row of refund_proposal."""

    id: int
    show_id: int
    number: int
    organiser_id: int
    why: str
    what: str
    seats: tuple[int, ...]
    amount_minor: int
    currency: str
    note: str
    proposed_by: int
    proposed_at: datetime
    expires_at: datetime
    state: ProposalState
    decided_by: int | None
    decided_at: datetime | None
    decided_note: str
    proposer_name: str | None
    decider_name: str | None


class ProposalPage(Struct, frozen=True, kw_only=True):
    proposal_id: int
    booking_id: str
    reference: str  # of the booking
    show_id: int
    what: str  # whole, seats or money
    seats: list[str]
    amount: int  # minor units of the currency
    currency: str
    reason: str
    state: ProposalState
    proposed_by: int  # account
    proposer_name: str | None
    proposed_at: datetime
    expires_at: datetime  # then it can no longer be approved
    decided_by: int | None
    decider_name: str | None
    decided_at: datetime | None
    decided_note: str


class ProposalList(Struct, frozen=True):
    proposals: list[ProposalPage]
    next: int | None  # ask for `before` this to go on; null: that was all
    complete: bool = True  # false: some databases cannot be reached, their refunds are missing here
    missing_pods: list[str] = field(default_factory=list)


class ProposalQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: ProposalState | None = None
    before: Annotated[int, Meta(ge=1, le=BIGINT_MAX)] = BIGINT_MAX  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class RejectBody(Struct, forbid_unknown_fields=True, frozen=True):
    note: Annotated[str, Meta(max_length=500)] = ""


class RefundLimit(Struct, forbid_unknown_fields=True, frozen=True):
    currency: Currency
    amount: Annotated[int, Meta(ge=0, le=AMOUNT_MINOR_MAX)]  # minor units; 0: every refund needs two people


class RefundLimits(Struct, forbid_unknown_fields=True, frozen=True):
    """Above which amount a refund by staff needs a second person. A currency that is missing has no limit."""

    limits: Annotated[list[RefundLimit], Meta(max_length=CURRENCIES_MAX)]


def build_proposal(row: "Row") -> RefundProposal:
    names = [name for name in RefundProposal.__struct_fields__ if name not in ("seats", "state")]
    return RefundProposal(
        seats=tuple(row["seats"]),
        state=ProposalState(row["shown_state"]),
        **{name: row[name] for name in names},
    )


def build_proposal_page(proposal: RefundProposal, labels: Sequence[str]) -> ProposalPage:
    return ProposalPage(
        proposal_id=proposal.id,
        booking_id=public_id(proposal.show_id, proposal.number),
        reference=reference(proposal.show_id, proposal.number),
        show_id=proposal.show_id,
        what=proposal.what,
        seats=[labels[seat] for seat in proposal.seats],
        amount=proposal.amount_minor,
        currency=proposal.currency,
        reason=proposal.note,
        state=proposal.state,
        proposed_by=proposal.proposed_by,
        proposer_name=proposal.proposer_name,
        proposed_at=proposal.proposed_at,
        expires_at=proposal.expires_at,
        decided_by=proposal.decided_by,
        decider_name=proposal.decider_name,
        decided_at=proposal.decided_at,
        decided_note=proposal.decided_note,
    )


def is_same_proposal(proposal: RefundProposal, request: RefundRequest) -> bool:
    """The proposal of an earlier request with the same key: was it for the same?"""
    if proposal.what != request.what or proposal.seats != request.seats:
        return False
    return request.what is not RefundScope.MONEY or proposal.amount_minor == request.amount_minor
