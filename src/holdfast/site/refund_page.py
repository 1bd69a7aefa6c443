"""The refund page: which tickets, how much comes back, and the form that requests it.

    /cancel                      ticks and a quote; a script quotes again at every change
    /cancel?seats=…&step=review  without scripts: the chosen tickets, their quote and the button
    POST /cancel                 refunds, if the form's quote is still that of the ticked tickets; else review

The button carries the quote it was labelled with. After a changed tick or another refund in between, the
form refunds nothing: the buyer has not read the new amount.
"""

from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import Booking, BookingState
from holdfast.errors import Invalid
from holdfast.layouts import UnknownSeat
from holdfast.refunds import RefundChanged, RefundQuote, SeatsNotYours
from holdfast.site.booking_page import (
    booking_path,
    gateway_sources,
    handle_form,
    load_requested_booking,
    notice_for_refusal,
    render_booking,
)
from holdfast.site.load_booking import load_booking_view
from holdfast.site.pages import content_security_policy, read_form, render_page
from holdfast.web.responses import query
from holdfast.web.routing import RouteTable, get_app

Label = Annotated[str, Meta(max_length=100)]
SEATS_MAX = 10
QUOTE_BYTES_MAX = 2000
routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


class RefundPageQuery(Struct):
    """Without a step: all tickets that can be refunded. With one: those named, even if none are."""

    seats: Annotated[list[Label], Meta(max_length=SEATS_MAX)] = msgspec.field(default_factory=list)
    step: Literal["", "choose", "review"] = ""
    changed: bool = False


class RefundForm(Struct):
    seats: Annotated[list[Label], Meta(max_length=SEATS_MAX)] = msgspec.field(default_factory=list)
    quote: Annotated[str, Meta(max_length=QUOTE_BYTES_MAX)] = ""  # quote_id() of the button


@routes.get("/cancel")
async def get_refund_page(request: Request) -> Response:
    """What would come back, and until when, before anything is refunded."""
    session, booking = await load_requested_booking(request)
    if booking.state is not BookingState.CONFIRMED:
        return await render_booking(request, session, booking)
    app, view = get_app(request), await load_booking_view(get_app(request), session, booking)
    try:
        wanted = query(RefundPageQuery, request)
        chosen = wanted.seats if wanted.seats or wanted.step else view.refundable_labels
        seats = await _parse_seats(request, booking, chosen)
        if not set(seats) <= set(booking.seats):
            raise SeatsNotYours()
        quote = await app.refunds.quote(booking, seats)
    except (UnknownSeat, SeatsNotYours, Invalid) as refusal:
        return await render_booking(request, session, booking, notice_for_refusal(request, refusal, {}))
    return render_page(
        request,
        "checkout/cancel.html",
        headers={"Content-Security-Policy": content_security_policy(gateway_sources(app, view))},
        view=view,
        quote=quote,
        quote_id=quote_id(quote),
        is_review=bool(chosen) and (wanted.step == "review" or len(view.places) == 1),
        is_changed=wanted.changed,
        session=session,
    )


@routes.post("/cancel")
async def post_refund(request: Request) -> Response:
    """Refunds the ticked tickets for the amount on the button."""
    data = await read_form(request, RefundForm)

    async def act(session: Session, booking: Booking) -> str:
        seats = await _parse_seats(request, booking, data.seats)
        if not seats:
            return f"{booking_path(booking)}/cancel?step=review"
        try:
            after = await _refund(request, booking, seats, data.quote)
        except RefundChanged:
            again = urlencode([("seats", label) for label in data.seats])
            return f"{booking_path(booking)}/cancel?{again}&step=review&changed=1"
        notice = "reduced" if booking.amount_minor else "returned"
        return booking_path(after, notice if after.state is BookingState.CONFIRMED else "")

    return await handle_form(request, act)


async def _refund(request: Request, booking: Booking, seats: tuple[int, ...], agreed: str) -> Booking:
    refunds, expected = get_app(request).refunds, None
    if booking.state is BookingState.CONFIRMED and set(seats) <= set(booking.seats):
        quote = await refunds.quote(booking, seats)
        if (quote.amount or not quote.paid) and agreed != quote_id(quote):
            raise RefundChanged()
        expected = quote.amount
    # Seats that have left the booking: the form was sent twice, and the ledger knows what became of them.
    after: Booking = (await refunds.cancel(booking, seats, expected))[0]
    return after


def quote_id(quote: RefundQuote) -> str:
    """Tickets and amount: what the buyer agrees to by pressing the button."""
    return f"{quote.amount}:{','.join(sorted(quote.seats))}"


async def _parse_seats(request: Request, booking: Booking, labels: list[str]) -> tuple[int, ...]:
    layout = (await get_app(request).catalogue.show_on_sale(booking.show_id)).layout
    if unknown := [label for label in labels if label not in layout.index_of]:
        raise UnknownSeat(seats=unknown)
    return tuple(sorted({layout.index_of[label] for label in labels}))


ROUTES = routes.all
