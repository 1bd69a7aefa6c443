"""Claims on a pool of units, with a time to live (R41). A library: docs/claim.md. Names here stay stable.

A pool is a map with one byte per unit, stored in Redis. Any number of processes may claim from it at once:

    claim ─┬─► extend ─► … ─► commit     the durable store has written the row
           ├─► release                   the owner gave up, or the durable store refused
           └─► (time to live over)       the units are free again, without a job that frees them

Redis decides fast and may lose its data; a durable store of the caller decides for good. `connect` and `Pool`
are the front: they batch calls and rebuild lost maps. `Claims` is what they are made of, for callers that
have batches and rebuilds of their own: `adopt`, `free`, `block` and `unblock` copy decisions of the durable
store into a map, and `Claims.build` writes a whole map from it. Nothing here knows about seats.
"""

from holdfast.claim.claim import (
    BLOCKED,
    CLAIMED,
    COMMITTED,
    FREE,
    Action,
    Blueprint,
    Change,
    Claim,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    Contents,
    LimitReached,
    MapMissing,
    NotEnoughUnits,
    PoolClosed,
    PoolMap,
    PoolOutcome,
    Settlement,
    UnitsTaken,
)
from holdfast.claim.pool import Pool
from holdfast.claim.pools import Pools, connect
from holdfast.claim.store import Claims, PoolId, pool_keys
from holdfast.engines.errors import EngineDown
from holdfast.errors import Busy

__version__ = "1.0.0"  # of the library: what a number promises is in docs/claim.md

__all__ = [
    "BLOCKED",
    "CLAIMED",
    "COMMITTED",
    "FREE",
    "Action",
    "Blueprint",
    "Busy",
    "Change",
    "Claim",
    "ClaimOutcome",
    "ClaimRequest",
    "Claimed",
    "Claims",
    "Contents",
    "EngineDown",
    "LimitReached",
    "MapMissing",
    "NotEnoughUnits",
    "Pool",
    "PoolClosed",
    "PoolId",
    "PoolMap",
    "PoolOutcome",
    "Pools",
    "Settlement",
    "UnitsTaken",
    "connect",
    "pool_keys",
]
