"""Refusals about bookings. No I/O."""

from holdfast.errors import Refusal


class HoldGone(Refusal):
    """The hold has ended: it expired or was cancelled. Another buyer may have the seats by now.

    Hold seats again, with a new Idempotency-Key.
    """

    code, status, title = "hold_gone", 410, "Hold has ended"


class WrongMove(Refusal):
    """The booking is in a state that does not allow this. `state` is its current state.

    Read the booking again and decide from there.
    """

    code, status, title = "wrong_move", 409, "Not possible in this state"


class SaleArchived(Refusal):
    """The show is long past, and its bookings are in the archive: its sale cannot be opened again.

    Create a new show.
    """

    code, status, title = "sale_archived", 409, "Sale is in the archive"


class NoSuchBooking(Refusal):
    """There is no booking with this id that belongs to you."""

    code, status, title = "no_such_booking", 404, "Booking not found"
