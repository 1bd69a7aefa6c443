"""Bookings: PostgreSQL decides for good which seats are sold (R15–R19, R25)."""

from holdfast.bookings.booking import (
    SEAT_STATE_CODES,
    TAKES_SEATS,
    VERSIONS_PER_EPOCH,
    Booking,
    BookingMove,
    BookingState,
    LiveBooking,
    LockedSale,
    build_seat_states,
    from_public_id,
    from_reference,
    public_id,
    reference,
)
from holdfast.bookings.errors import HoldGone, NoSuchBooking, WrongMove
from holdfast.bookings.map_rebuild import bookings_on_map, lock_sale_for_rebuild, raise_epoch
from holdfast.bookings.opening import (
    AlreadyOpened,
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
from holdfast.bookings.store import Bookings, live_booking, set_sale
from holdfast.bookings.view import BookingPage, RefundShown, better_note, booking_page

__all__ = [
    "SEAT_STATE_CODES",
    "TAKES_SEATS",
    "VERSIONS_PER_EPOCH",
    "AlreadyOpened",
    "Booking",
    "BookingMove",
    "BookingPage",
    "BookingState",
    "Bookings",
    "HoldGone",
    "LiveBooking",
    "LockedSale",
    "NoSuchBooking",
    "Opening",
    "OpeningOutcome",
    "OpeningRefused",
    "RefundShown",
    "Rival",
    "SeatsLost",
    "WrongMove",
    "better_note",
    "block_in",
    "booking_page",
    "bookings_on_map",
    "build_seat_states",
    "from_public_id",
    "from_reference",
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
