"""What is sold: PostgreSQL has the last word (R15–R19, R25)."""

from holdfast.ledger.booking import (
    TAKES_SEATS,
    Booking,
    Move,
    State,
    from_public_id,
    from_reference,
    public_id,
    reference,
)
from holdfast.ledger.opening import Answer, Lost, Opened, Opening, Refused, Rival, Same
from holdfast.ledger.sale import LETTER, VERSIONS_AN_EPOCH, LiveBooking, Sale, letters
from holdfast.ledger.store import Ledger, live_booking, set_sale

__all__ = [
    "LETTER",
    "TAKES_SEATS",
    "VERSIONS_AN_EPOCH",
    "Answer",
    "Booking",
    "Ledger",
    "LiveBooking",
    "Lost",
    "Move",
    "Opened",
    "Opening",
    "Refused",
    "Rival",
    "Sale",
    "Same",
    "State",
    "from_public_id",
    "from_reference",
    "letters",
    "live_booking",
    "public_id",
    "reference",
    "set_sale",
]
