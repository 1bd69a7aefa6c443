"""Cancel a booking, see what would come back, see what was paid and what has come back."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, field
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import (
    Booking,
    BookingPage,
    BookingState,
    HoldGone,
    NoSuchBooking,
    WrongMove,
    booking_page,
    from_public_id,
    public_id,
)
from holdfast.catalogue import ShowOnSale
from holdfast.errors import Busy, Invalid
from holdfast.layouts import UnknownSeat
from holdfast.refunds.errors import NotRefundable, SeatsNotYours, SeatsUsed, TicketGiven
from holdfast.refunds.refund import AttemptLine, RefundQuote, Timeline, refund_line
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable

SEATS_MAX = 10
LOOK_AGAIN = {"Retry-After": "1", "Cache-Control": "no-store"}
NOT_KEPT = {"Cache-Control": "no-store"}
routes = RouteTable(tag="payments", role=Role.FAN)


class SeatsAsked(Struct, forbid_unknown_fields=True, frozen=True):
    """Names of seats, comma-separated or repeated; none: all of them."""

    seats: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=SEATS_MAX)] = field(
        default_factory=list
    )


@routes.get(
    "/bookings/{booking}/refund",
    query=SeatsAsked,
    answers={200: RefundQuote},
    refusals=(NoSuchBooking, WrongMove, SeatsNotYours, UnknownSeat),
)
async def get_refund_quote(request: Request) -> Response:
    """What would come back if these seats were given back now, and until when."""
    booking = await _own(request)
    if booking.state is not BookingState.CONFIRMED:
        raise WrongMove(state=booking.state, move="refund")
    seats = await _seats(request, booking)
    if seats is not None and not set(seats) <= set(booking.seats):
        raise SeatsNotYours()
    return answer(200, await get_app(request).refunds.quote(booking, seats), NOT_KEPT)


@routes.delete(
    "/bookings/{booking}",
    tag="sale",
    query=SeatsAsked,
    answers={200: BookingPage, 202: BookingPage},
    refusals=(
        NoSuchBooking,
        HoldGone,
        WrongMove,
        NotRefundable,
        SeatsUsed,
        TicketGiven,
        SeatsNotYours,
        UnknownSeat,
        Busy,
    ),
)
async def cancel_booking(request: Request) -> Response:
    """Let a booking go.

    A hold is free at once. A payment under way is called off first: 202 while the gateway has not said, 409
    when the money had been taken. Of a confirmed booking so much comes back as its terms promise
    (GET /bookings/{booking}/refund); with `seats` only those are given back. Asked twice, the same answer.
    """
    booking = await _own(request)
    after, is_under_way = await get_app(request).refunds.cancel(booking, await _seats(request, booking))
    page = await _page(request, after)
    return answer(202, page, LOOK_AGAIN) if is_under_way else answer(200, page, NOT_KEPT)


@routes.get("/bookings/{booking}/payments", answers={200: Timeline}, refusals=(NoSuchBooking,))
async def list_payments(request: Request) -> Response:
    """Every attempt to pay for a booking, and every refund."""
    app, booking = get_app(request), await _own(request)
    key = (booking.show_id, booking.number)
    refunds = (await app.refund_store.refunds_of([key]))[key]
    labels = (await app.catalogue.show_on_sale(booking.show_id)).layout.labels
    attempts = [
        AttemptLine(
            attempt=row["attempt"],
            step=row["step"],
            amount=row["amount_minor"],
            currency=row["currency"],
            gateway=row["gateway"],
            reason=row["reason"],
            asked_at=row["asked_at"],
            ended_at=row["ended_at"],
            refunds=[refund_line(one, labels) for one in refunds if one.attempt == row["attempt"]],
        )
        for row in await app.refund_store.attempts_of(booking)
    ]
    return answer(200, Timeline(public_id(*key), attempts), NOT_KEPT)


async def _own(request: Request) -> Booking:
    show_id, number = from_public_id(request.path_params["booking"])
    booking: Booking = await get_app(request).bookings.load_owned(
        get_caller(request).account_id, show_id, number
    )
    return booking


async def _seats(request: Request, booking: Booking) -> tuple[int, ...] | None:
    """Of the query, by number; None: none are named."""
    asked = query(SeatsAsked, request).seats
    if not asked:
        return None
    show: ShowOnSale = await get_app(request).catalogue.show_on_sale(booking.show_id)
    return seats_named([name for text in asked for name in text.split(",")], show)


def seats_named(names: Sequence[str], show: ShowOnSale) -> tuple[int, ...]:
    if unknown := [name for name in names if name not in show.layout.index_of]:
        raise UnknownSeat(seats=unknown)
    seats = tuple(sorted({show.layout.index_of[name] for name in names}))
    if len(seats) != len(names):
        raise Invalid(field="seats", detail="Expected each seat once.")
    return seats


async def _page(request: Request, booking: Booking) -> BookingPage:
    app = get_app(request)
    show = await app.catalogue.show_on_sale(booking.show_id)
    (refunds,) = await app.refunds.shown_many([booking])
    return booking_page(booking, show, await app.catalogue.terms(show, booking.revision), refunds)


ROUTES = routes.all
