"""Holding seats: Redis decides fast which buyer gets which seats, and for how long (R9–R14)."""

from holdfast.holds.choice import BestAvailable, SeatChoice, find_best
from holdfast.holds.comparison import MapDifference, differences
from holdfast.holds.errors import (
    CoolDown,
    ExtensionCap,
    HoldOpen,
    LeavesOrphan,
    NotOnSale,
    OverLimit,
    PriceChanged,
    RangeLimit,
    SeatsTaken,
    SeatsWithdrawn,
    SoldOut,
    TooManyBlocks,
)
from holdfast.holds.free_tickets import confirm_free
from holdfast.holds.merging import can_merge, merge_holds
from holdfast.holds.orphans import check_orphans
from holdfast.holds.parties import get_party
from holdfast.holds.redis import HoldScripts
from holdfast.holds.request import (
    AlreadyHeld,
    BestBody,
    Held,
    HoldBody,
    HoldOutcome,
    HoldRequest,
    NamedSeats,
    Orphan,
    PlacesBody,
    Selection,
    StandingPlaces,
    compute_body_hash,
    compute_claim_id,
    find_runs,
    parse_selection,
)
from holdfast.holds.service import HoldService
from holdfast.holds.wanted import WantedSeats

__all__ = [
    "AlreadyHeld",
    "BestAvailable",
    "BestBody",
    "CoolDown",
    "ExtensionCap",
    "Held",
    "HoldBody",
    "HoldOpen",
    "HoldOutcome",
    "HoldRequest",
    "HoldScripts",
    "HoldService",
    "LeavesOrphan",
    "MapDifference",
    "NamedSeats",
    "NotOnSale",
    "Orphan",
    "OverLimit",
    "PlacesBody",
    "PriceChanged",
    "RangeLimit",
    "SeatChoice",
    "SeatsTaken",
    "SeatsWithdrawn",
    "Selection",
    "SoldOut",
    "StandingPlaces",
    "TooManyBlocks",
    "WantedSeats",
    "can_merge",
    "check_orphans",
    "compute_body_hash",
    "compute_claim_id",
    "confirm_free",
    "differences",
    "find_best",
    "find_runs",
    "get_party",
    "merge_holds",
    "parse_selection",
]
