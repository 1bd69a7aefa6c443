"""Claim N of a pool for a time, then commit durably or let go. Knows nothing of seats (R41)."""

from holdfast.claim.claim import (
    Blueprint,
    Claim,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    LimitReached,
    MapMissing,
    NotEnoughUnits,
    PoolClosed,
    PoolMap,
    Settlement,
    UnitsTaken,
)
from holdfast.claim.store import Claims, pool_keys

__all__ = [
    "Blueprint",
    "Claim",
    "ClaimOutcome",
    "ClaimRequest",
    "Claimed",
    "Claims",
    "LimitReached",
    "MapMissing",
    "NotEnoughUnits",
    "PoolClosed",
    "PoolMap",
    "Settlement",
    "UnitsTaken",
    "pool_keys",
]
