"""Claims on a pool of units, with a time to live (R41). Part of the public API: names here stay stable.

A pool is a map with one byte per unit, stored in Redis. Any number of processes may claim from it at once:

    claim ─┬─► extend ─► … ─► commit     the durable store has written the row
           ├─► release                   the owner gave up, or the durable store refused
           └─► (time to live over)       the units are free again, without a job that frees them

Redis decides fast and may lose its data; a durable store of the caller decides for good. `adopt`, `free`,
`block` and `unblock` copy its decisions into a map, and `Claims.build` writes a whole map from it.
Nothing here knows about seats.
"""

from holdfast.claim.claim import (
    Action,
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
    "Action",
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
