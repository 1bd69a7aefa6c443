"""A buyer's bookings. Cancelling is in refunds: money may go back."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings.booking import Booking, from_public_id
from holdfast.bookings.errors import NoSuchBooking
from holdfast.bookings.view import BookingPage, RefundShown, booking_page
from holdfast.web.caller import Role
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app, get_caller

PAGE_MAX = 100
NUMBER_MAX = 2**62
routes = RouteTable(tag="sale", role=Role.FAN)


class BookingsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    before: Annotated[str, Meta(max_length=40)] = ""  # `next` of the previous page
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class BookingList(Struct, frozen=True):
    bookings: list[BookingPage]
    next: str | None  # the value of `before` for the next page; null: this is the last one


@routes.get("/bookings", query=BookingsQuery, answers={200: BookingList}, refusals=(NoSuchBooking,))
async def list_bookings(request: Request) -> Response:
    """My bookings, newest first."""
    app, caller = get_app(request), get_caller(request)
    page = query(BookingsQuery, request)
    before = from_public_id(page.before)[1] if page.before else NUMBER_MAX
    found = await app.bookings.bookings_of(caller.account_id, before=before, limit=page.size + 1)
    refunds = await app.refunds.shown_many(found[: page.size])
    pages = [
        await _load_page(request, booking, refunds_of_booking)
        for booking, refunds_of_booking in zip(found[: page.size], refunds, strict=True)
    ]
    more = len(found) > page.size
    return answer(
        200, BookingList(pages, pages[-1].booking_id if more else None), {"Cache-Control": "no-store"}
    )


@routes.get("/bookings/{booking}", answers={200: BookingPage}, refusals=(NoSuchBooking,))
async def get_booking(request: Request) -> Response:
    """One of my bookings."""
    show_id, number = from_public_id(request.path_params["booking"])
    booking = await get_app(request).bookings.load_owned(get_caller(request).account_id, show_id, number)
    (refunds,) = await get_app(request).refunds.shown_many([booking])
    return answer(200, await _load_page(request, booking, refunds), {"Cache-Control": "no-store"})


async def _load_page(request: Request, booking: Booking, refunds: Sequence[RefundShown] = ()) -> BookingPage:
    catalogue = get_app(request).catalogue
    show = await catalogue.show_on_sale(booking.show_id)
    return booking_page(booking, show, await catalogue.terms(show, booking.revision), refunds)


ROUTES = routes.all
