"""Two holds of one buyer in one show become one: one page, one clock, one payment.

hold A (first) ─┐
                ├─► A has all seats; B is cancelled, and its seats are never free in between
hold B (added) ─┘
"""

from holdfast.bookings import Booking, BookingState, HoldGone, WrongMove
from holdfast.catalogue import ShowOnSale
from holdfast.claim import Settlement
from holdfast.config import Config
from holdfast.holds.errors import OverLimit
from holdfast.holds.request import SEATS_MAX
from holdfast.holds.service import HoldService


def can_merge(first: Booking, added: Booking, show: ShowOnSale) -> bool:
    """Same buyer, same terms, and no more seats than one order may have."""
    is_held = first.state is added.state is BookingState.HELD and not (first.is_offer or added.is_offer)
    is_alike = (first.owner_id, first.revision) == (added.owner_id, added.revision)
    count = len(first.seats) + len(added.seats)
    return is_held and is_alike and count <= min(SEATS_MAX, show.order_seats_max)


async def merge_holds(holds: HoldService, config: Config, show: ShowOnSale, *two: Booking) -> Booking:
    """The older one with all seats. Sent twice, the second time finds the work done."""
    first, added = sorted(two, key=lambda booking: booking.number)
    if added.state is BookingState.CANCELLED and set(added.seats) <= set(first.seats):
        return first
    if not can_merge(first, added, show):
        if first.is_offer or added.is_offer:
            raise WrongMove(state=first.state, move="merge")
        if first.state is added.state is BookingState.HELD:
            raise OverLimit(limit=min(SEATS_MAX, show.order_seats_max))
        gone = first if first.state is not BookingState.HELD else added
        raise WrongMove(state=gone.state, move="merge")
    merged = await holds.bookings.merge(first, added, life_max_s=config.hold_life_max_s)
    if merged is None:  # expired, released or being paid for since it was read
        raise HoldGone(state=BookingState.EXPIRED)
    booking, left_ms = merged
    # One script on one thread: no other buyer sees these seats free. If it is lost, the two claims stay until
    # they end, and the comparison of map and bookings writes the merged one.
    await holds.update_map(
        show.show_id,
        Settlement("release", added.claim),
        Settlement("release", first.claim),
        Settlement("adopt", booking.claim, left_ms + config.claim_grace_ms),
    )
    return booking
