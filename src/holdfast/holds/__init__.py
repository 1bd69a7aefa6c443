"""Who has which seats, for how long: decided in Redis (R9–R14)."""

from holdfast.holds.choice import Want, best
from holdfast.holds.comparison import Difference, differences
from holdfast.holds.errors import SeatsWithdrawn, TooManyBlocks
from holdfast.holds.orphans import orphan_verdict
from holdfast.holds.outcome import (
    Again,
    Ask,
    Best,
    Few,
    Held,
    Limit,
    Orphan,
    Outcome,
    Places,
    Seats,
    Shut,
    Taken,
    Unbuilt,
    What,
    claim_id,
    runs_of,
)
from holdfast.holds.redis import HoldScripts
from holdfast.holds.request import (
    BestBody,
    BookingPage,
    HoldBody,
    HoldRequest,
    PlacesBody,
    RefundShown,
    body_hash,
    booking_page,
    parse_selection,
)
from holdfast.holds.service import HoldService

__all__ = [
    "Again",
    "Ask",
    "Best",
    "BestBody",
    "BookingPage",
    "Difference",
    "Few",
    "Held",
    "HoldBody",
    "HoldRequest",
    "HoldScripts",
    "HoldService",
    "Limit",
    "Orphan",
    "Outcome",
    "Places",
    "PlacesBody",
    "RefundShown",
    "Seats",
    "SeatsWithdrawn",
    "Shut",
    "Taken",
    "TooManyBlocks",
    "Unbuilt",
    "Want",
    "What",
    "best",
    "body_hash",
    "booking_page",
    "claim_id",
    "differences",
    "orphan_verdict",
    "parse_selection",
    "runs_of",
]
