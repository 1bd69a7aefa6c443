"""Forms of a buyer with two holds of one show: pay for both together, or keep one of them."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import Booking, NoSuchBooking
from holdfast.holds import merge_holds
from holdfast.site.booking_page import booking_path, handle_form
from holdfast.site.load_booking import load_own_booking
from holdfast.site.pages import read_form
from holdfast.web.routing import RouteTable, get_app

routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


class OtherForm(Struct):
    other: Annotated[str, Meta(max_length=40)]


@routes.post("/merge")
async def post_merge(request: Request) -> Response:
    """Adds the seats of two holds of one show together: one payment."""
    data = await read_form(request, OtherForm)

    async def act(session: Session, booking: Booking) -> str:
        app, other = get_app(request), await _load_other(request, session, booking, data.other)
        show = await app.catalogue.show_on_sale(booking.show_id)
        return booking_path(await merge_holds(app.holds, app.config, show, booking, other), "merged")

    return await handle_form(request, act)


@routes.post("/swap")
async def post_swap(request: Request) -> Response:
    """Keeps this hold and releases the other."""
    data = await read_form(request, OtherForm)

    async def act(session: Session, booking: Booking) -> str:
        other = await _load_other(request, session, booking, data.other)
        await get_app(request).holds.cancel(other)
        return booking_path(booking, "swapped")

    return await handle_form(request, act)


async def _load_other(request: Request, session: Session, booking: Booking, public_id: str) -> Booking:
    other = await load_own_booking(get_app(request), session, public_id)
    if other.show_id != booking.show_id or other.number == booking.number:
        raise NoSuchBooking
    return other


ROUTES = routes.all
