"""Counts violations of the invariants in the ledger, the seat map and the money."""

from holdfast.audit.report import Report
from holdfast.audit.store import audit, shows_on_the_map

__all__ = ["Report", "audit", "shows_on_the_map"]
