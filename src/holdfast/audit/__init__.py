"""Counts violations of the invariants in the ledger, the seat map and the money."""

from holdfast.audit.dead_letters import DeadLetters, count_dead_letters
from holdfast.audit.pods import AuditedDatabase, HouseReport, audit_house
from holdfast.audit.report import Report, Violation
from holdfast.audit.store import (
    ARCHIVED_CHECKS,
    AUDIT_WITHIN_S,
    audit,
    find_violations,
    shows_on_the_map,
)

__all__ = [
    "ARCHIVED_CHECKS",
    "AUDIT_WITHIN_S",
    "AuditedDatabase",
    "DeadLetters",
    "HouseReport",
    "Report",
    "Violation",
    "audit",
    "audit_house",
    "count_dead_letters",
    "find_violations",
    "shows_on_the_map",
]
