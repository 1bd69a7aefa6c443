"""Holds again what somebody had: the same seats, or those offered instead."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.accounts import Session
from holdfast.bookings import Booking, HoldGone
from holdfast.holds import (
    HoldBody,
    HoldRequest,
    PlacesBody,
    compute_body_hash,
    compute_claim_id,
    parse_selection,
)

if TYPE_CHECKING:
    from holdfast.app import App


async def hold_again(app: "App", visit: Session, booking: Booking, labels: Sequence[str] = ()) -> Booking:
    """A new booking. Asked twice for the same seats, or from two tabs, it is the same one."""
    show = await app.catalogue.show_on_sale(booking.show_id)
    body = _wish(show.layout, booking, labels)
    named = ",".join(sorted(labels)).encode()
    request_id = (
        f"again-{booking.number}-{compute_body_hash(named):x}" if labels else f"again-{booking.number}"
    )
    order = HoldRequest(
        show,
        visit.account_id,
        request_id,
        compute_claim_id(visit.account_id, request_id),
        compute_body_hash(named),
        parse_selection(body, show),
    )
    try:
        held: Booking = await app.holds.hold(order)
        return held
    except HoldGone:
        # It was held again before, and that one has lapsed too: from its page one can go on.
        found = await app.bookings.booking_of_request(visit.account_id, show.show_id, request_id)
        if found is None or found.number == booking.number:
            raise
        return await hold_again(app, visit, found, labels)


def _wish(layout: Any, booking: Booking, labels: Sequence[str]) -> HoldBody:
    """Places of a standing area are interchangeable: any of them will do."""
    area = layout.area_at(booking.seats[0])
    if labels or area is None or any(layout.area_at(seat) is not area for seat in booking.seats):
        return HoldBody(seats=list(labels) or [layout.labels[seat] for seat in booking.seats])
    return HoldBody(places=PlacesBody(area=area.name, count=len(booking.seats)))
