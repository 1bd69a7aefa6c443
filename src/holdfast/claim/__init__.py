"""Claim N of a pool for a time, then commit durably or let go. Knows nothing of seats (R41)."""

from holdfast.claim.claim import (
    Blueprint,
    Claim,
    Claimed,
    Few,
    Outcome,
    OverLimit,
    Part,
    PoolMap,
    Shut,
    Taken,
    Unbuilt,
    Wish,
)
from holdfast.claim.store import Claims, pool_keys

__all__ = [
    "Blueprint",
    "Claim",
    "Claimed",
    "Claims",
    "Few",
    "Outcome",
    "OverLimit",
    "Part",
    "PoolMap",
    "Shut",
    "Taken",
    "Unbuilt",
    "Wish",
    "pool_keys",
]
