"""Confirming held seats that cost nothing: the buyer has given an address and wants the tickets."""

from holdfast.bookings import Booking, BookingState, HoldGone, WrongMove
from holdfast.claim import Settlement
from holdfast.holds.service import HoldService


async def confirm_free(holds: HoldService, booking: Booking) -> Booking:
    """Idempotent: a second tab gets the same booking.

    The ledger decides first. If the process dies before the map follows, the map shows the seats as held
    until the comparison job corrects it; they are not sold to others meanwhile.
    """
    if booking.state is BookingState.CONFIRMED:
        return booking
    if booking.amount_minor:
        raise WrongMove(state=booking.state, move="confirm")
    if booking.state is not BookingState.HELD:
        raise HoldGone(state=booking.state)
    confirmed = await holds.bookings.confirm_free(booking)
    if confirmed is None:
        current = await holds.bookings.load_owned(booking.owner_id, booking.show_id, booking.number)
        if current.state is BookingState.CONFIRMED:
            return current
        raise HoldGone(state=BookingState.EXPIRED if current.state is BookingState.HELD else current.state)
    await holds.update_map(booking.show_id, Settlement("commit", confirmed.claim))
    return confirmed
