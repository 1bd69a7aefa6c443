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
from holdfast.holds.redis import Holds
from holdfast.holds.request import (
    BestBody,
    BookingPage,
    HoldBody,
    Order,
    PlacesBody,
    RefundShown,
    body_hash,
    booking_page,
    understood,
)
from holdfast.holds.service import Sales

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
    "Holds",
    "Limit",
    "Order",
    "Orphan",
    "Outcome",
    "Places",
    "PlacesBody",
    "RefundShown",
    "Sales",
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
    "runs_of",
    "understood",
]
