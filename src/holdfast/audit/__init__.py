"""Counts violations of the invariants in the ledger, the seat map and the money."""

from holdfast.audit.report import Report, Violation
from holdfast.audit.store import AUDIT_WITHIN_S, audit, shows_on_the_map

__all__ = ["AUDIT_WITHIN_S", "Report", "Violation", "audit", "shows_on_the_map"]
