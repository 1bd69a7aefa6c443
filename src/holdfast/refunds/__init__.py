"""Refunds: quotes, decisions (decision.py), execution and cancelled shows (R18, R24)."""

from holdfast.refunds.errors import RefundChanged, SeatsNotYours
from holdfast.refunds.refund import RefundQuote

__all__ = ["RefundChanged", "RefundQuote", "SeatsNotYours"]
