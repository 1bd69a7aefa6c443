"""The invariants of the sale, counted: what must never be true of the ledger, and of the map beside it."""

from holdfast.audit.report import Report
from holdfast.audit.store import audit, oversold, shows_on_the_map

__all__ = ["Report", "audit", "oversold", "shows_on_the_map"]
