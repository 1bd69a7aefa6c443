"""Refunds: quotes, decisions (decision.py), execution and cancelled shows (R18, R24)."""

from holdfast.refunds.errors import NoSuchRefund, RefundChanged, SeatsNotYours
from holdfast.refunds.every_pod import count_waiting, find_proposal, load_proposals, load_refunds
from holdfast.refunds.proposal import (
    ProposalPage,
    ProposalQuery,
    ProposalState,
    RefundLimit,
    RefundProposal,
    build_proposal_page,
)
from holdfast.refunds.refund import (
    Cancellation,
    Refund,
    RefundDecision,
    RefundPage,
    RefundQuery,
    RefundQuote,
    RefundRequest,
    RefundScope,
    RefundState,
    build_refund_page,
    owner_reason,
    parse_refund_id,
)
from holdfast.refunds.service import RefundService, build_refusal
from holdfast.refunds.store import LATEST as LATEST_REFUND

__all__ = [
    "LATEST_REFUND",
    "Cancellation",
    "NoSuchRefund",
    "ProposalPage",
    "ProposalQuery",
    "ProposalState",
    "Refund",
    "RefundChanged",
    "RefundDecision",
    "RefundLimit",
    "RefundPage",
    "RefundProposal",
    "RefundQuery",
    "RefundQuote",
    "RefundRequest",
    "RefundScope",
    "RefundService",
    "RefundState",
    "SeatsNotYours",
    "build_proposal_page",
    "build_refund_page",
    "build_refusal",
    "count_waiting",
    "find_proposal",
    "load_proposals",
    "load_refunds",
    "owner_reason",
    "parse_refund_id",
]
