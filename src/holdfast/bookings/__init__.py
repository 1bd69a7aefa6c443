"""What is sold: PostgreSQL has the last word (R15–R19, R25)."""

from holdfast.bookings.booking import (
    TAKES_SEATS,
    Booking,
    BookingMove,
    BookingState,
    from_public_id,
    from_reference,
    public_id,
    reference,
)
from holdfast.bookings.errors import HoldGone, NoSuchBooking, WrongMove
from holdfast.bookings.map_rebuild import bookings_on_map, lock_sale_for_rebuild, raise_epoch
from holdfast.bookings.opening import (
    AlreadyOpened,
    Opened,
    Opening,
    OpeningOutcome,
    OpeningRefused,
    Rival,
    SeatsLost,
)
from holdfast.bookings.organiser import (
    block_in,
    lock_sale,
    move_releases,
    reprice_sale,
    seats_by_category,
    taken_seats,
)
from holdfast.bookings.sale import LETTER, VERSIONS_AN_EPOCH, LiveBooking, LockedSale, letters
from holdfast.bookings.store import Bookings, live_booking, set_sale

__all__ = [
    "LETTER",
    "TAKES_SEATS",
    "VERSIONS_AN_EPOCH",
    "AlreadyOpened",
    "Booking",
    "BookingMove",
    "BookingState",
    "Bookings",
    "HoldGone",
    "LiveBooking",
    "LockedSale",
    "NoSuchBooking",
    "Opened",
    "Opening",
    "OpeningOutcome",
    "OpeningRefused",
    "Rival",
    "SeatsLost",
    "WrongMove",
    "block_in",
    "bookings_on_map",
    "from_public_id",
    "from_reference",
    "letters",
    "live_booking",
    "lock_sale",
    "lock_sale_for_rebuild",
    "move_releases",
    "public_id",
    "raise_epoch",
    "reference",
    "reprice_sale",
    "seats_by_category",
    "set_sale",
    "taken_seats",
]
