"""/bookings/{booking}/return: sell tickets back at face value."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, NoSuchBooking, WrongMove, from_public_id
from holdfast.layouts import UnknownSeat
from holdfast.refunds import SeatsNotYours
from holdfast.waitlist.errors import NoSuchReturn, ReturnSold
from holdfast.waitlist.returns import ReturnPage
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

PATH = "/bookings/{booking}/return"
SEATS_MAX = 10
NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="sale", role=Role.FAN)


class ReturnBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Without seats: all seats of the booking."""

    seats: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=100)]], Meta(min_length=1, max_length=SEATS_MAX)
        ]
        | None
    ) = None


@routes.post(
    PATH,
    body=ReturnBody,
    answers={200: ReturnPage},
    refusals=(NoSuchBooking, WrongMove, SeatsNotYours, UnknownSeat, ReturnSold),
)
async def return_tickets(request: Request) -> Response:
    """Offer tickets to the waitlist at the price that was paid.

    They stay valid until a waiting party fits the seats; then the price goes back in full, and the party is
    offered the seats. Until then the return can be withdrawn. Sent again, it is for the seats named now.
    """
    app, booking = get_app(request), await _own(request)
    body = read(ReturnBody, await request.body() or b"{}")
    show = await app.catalogue.show_on_sale(booking.show_id)
    index_of = show.layout.index_of
    if unknown := [name for name in body.seats or () if name not in index_of]:
        raise UnknownSeat(seats=unknown)
    seats = None if body.seats is None else tuple(sorted({index_of[name] for name in body.seats}))
    page = await app.waitlists.returns.put(booking, seats, show)
    return answer(200, page, NO_STORE)


@routes.get(PATH, answers={200: ReturnPage}, refusals=(NoSuchBooking, NoSuchReturn))
async def get_return(request: Request) -> Response:
    """The last return of a booking, and how it went."""
    app, booking = get_app(request), await _own(request)
    show = await app.catalogue.show_on_sale(booking.show_id)
    return answer(200, await app.waitlists.returns.page(booking, show), NO_STORE)


@routes.delete(PATH, answers={204: None}, refusals=(NoSuchBooking, NoSuchReturn, ReturnSold))
async def withdraw_return(request: Request) -> Response:
    """Keep the tickets. Refused once a party was found for them."""
    await get_app(request).waitlists.returns.withdraw(await _own(request))
    return answer(204)


async def _own(request: Request) -> Booking:
    show_id, number = from_public_id(request.path_params["booking"])
    return await get_app(request).bookings.load_owned(get_caller(request).account_id, show_id, number)


ROUTES = routes.all
