"""After a purchase: PDF, calendar entry, invoice, resending the e-mail, transfers and refunds."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, Session, normal_email
from holdfast.bookings import Booking, BookingState, NoSuchBooking, from_public_id
from holdfast.errors import Invalid
from holdfast.invoices import invoice_answer
from holdfast.layouts import UnknownSeat
from holdfast.site.booking_page import (
    booking_path,
    gateway_sources,
    handle_form,
    notice_for_refusal,
    render_booking,
)
from holdfast.site.load_booking import load_booking_view, load_own_booking, load_tickets, transfer_sender
from holdfast.site.pages import EmptyForm, content_security_policy, read_form, render_page, require_session
from holdfast.tickets import NoSuchTicket, NoTickets
from holdfast.web.responses import invalid, query
from holdfast.web.routing import RouteTable, get_app

NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Label = Annotated[str, Meta(max_length=100)]
Typed = Annotated[str, Meta(max_length=300)]
routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


class SeatsForm(Struct):
    """No seats: all of them."""

    seats: Annotated[list[Label], Meta(max_length=10)] = msgspec.field(default_factory=list)


class TransferForm(Struct):
    ticket: Annotated[str, Meta(max_length=40)]
    email: Typed = ""


class TakeBackForm(Struct):
    ticket: Annotated[str, Meta(max_length=40)]


class Address(Struct):
    email: Email


@routes.get("/tickets.pdf")
async def get_tickets_pdf(request: Request) -> Response:
    """My tickets of a booking, to print."""
    session, booking = await _load_own(request)
    app, me = get_app(request), transfer_sender(session, booking)
    own = [one for one in await load_tickets(app, booking) if one.is_of(me.account_id, me.email)]
    good = [one for one in own if one.voided_at is None]
    if not good:
        raise NoTickets(state=booking.state)
    file = await app.tickets.paper(await app.tickets.occasion(booking.show_id), good, booking)
    return Response(file, 200, {**NO_STORE, **_filename_header("tickets.pdf")}, "application/pdf")


@routes.get("/calendar.ics")
async def get_calendar(request: Request) -> Response:
    """The show as an entry of a calendar."""
    _, booking = await _load_own(request)
    app, found = get_app(request), await load_tickets(get_app(request), booking)
    if not found:
        raise NoTickets(state=booking.state)
    file = await app.tickets.calendar(booking, found)
    return Response(file, 200, {**NO_STORE, **_filename_header("tickets.ics")}, "text/calendar")


@routes.get("/invoice.pdf")
async def get_invoice(request: Request) -> Response:
    """The invoice, and credit notes for what came back."""
    _, booking = await _load_own(request)
    return await invoice_answer(request, booking)


@routes.post("/resend")
async def post_resend(request: Request) -> Response:
    """Sends the tickets by mail once more."""
    await read_form(request, EmptyForm)

    async def act(session: Session, booking: Booking) -> str:
        app = get_app(request)
        if not await load_tickets(app, booking):
            raise NoTickets(state=booking.state)
        await app.tickets.resend(booking.show_id, booking.number, booking.owner_id)
        return booking_path(booking, "resent")

    return await handle_form(request, act)


@routes.post("/transfer")
async def post_transfer(request: Request) -> Response:
    """Transfers a ticket; the sender's code stops working at once."""
    data = await read_form(request, TransferForm)

    async def act(session: Session, booking: Booking) -> str:
        place = _parse_ticket(booking, data.ticket)
        try:
            email = normal_email(msgspec.convert({"email": data.email}, Address).email)
        except msgspec.ValidationError as error:
            raise invalid(error) from None
        await get_app(request).transfers.give(*place, transfer_sender(session, booking), email)
        return booking_path(booking, "given")

    return await handle_form(request, act, {"email": data.email, "ticket": data.ticket})


@routes.post("/take-back")
async def post_take_back(request: Request) -> Response:
    """Cancels a transfer that the recipient has not accepted yet."""
    data = await read_form(request, TakeBackForm)

    async def act(session: Session, booking: Booking) -> str:
        place = _parse_ticket(booking, data.ticket)
        await get_app(request).transfers.take_back(*place, transfer_sender(session, booking))
        return booking_path(booking, "taken_back")

    return await handle_form(request, act)


@routes.get("/cancel")
async def get_cancel(request: Request) -> Response:
    """What would come back, and until when, before anything is given back."""
    session, booking = await _load_own(request)
    if booking.state is not BookingState.CONFIRMED:
        return await render_booking(request, session, booking)
    data = query(SeatsForm, request).seats
    app, view = get_app(request), await load_booking_view(get_app(request), session, booking)
    try:
        seats = await _parse_seats(request, booking, data)
        quote = await app.refunds.quote(booking, seats)
    except (UnknownSeat, Invalid) as refusal:
        return await render_booking(request, session, booking, notice_for_refusal(request, refusal, {}))
    return render_page(
        request,
        "checkout/cancel.html",
        headers={"Content-Security-Policy": content_security_policy(gateway_sources(app, view))},
        view=view,
        quote=quote,
        chosen=data or [place.label for place in view.places],
        session=session,
    )


@routes.post("/cancel")
async def post_cancel(request: Request) -> Response:
    """Gives a booking back, or some of its seats: so much returns as its terms promise."""
    data = await read_form(request, SeatsForm)

    async def act(session: Session, booking: Booking) -> str:
        seats = await _parse_seats(request, booking, data.seats)
        after, _ = await get_app(request).refunds.cancel(booking, seats)
        return booking_path(after, "reduced" if after.state is BookingState.CONFIRMED else "")

    return await handle_form(request, act)


async def _load_own(request: Request) -> tuple[Session, Booking]:
    session = await require_session(request)
    return session, await load_own_booking(get_app(request), session, str(request.path_params["booking"]))


async def _parse_seats(request: Request, booking: Booking, labels: list[str]) -> tuple[int, ...] | None:
    """By number; None: all of them."""
    layout = (await get_app(request).catalogue.show_on_sale(booking.show_id)).layout
    if unknown := [label for label in labels if layout.index_of.get(label) not in booking.seats]:
        raise UnknownSeat(seats=unknown)
    seats = tuple(sorted({layout.index_of[label] for label in labels}))
    return None if seats in ((), booking.seats) else seats


def _parse_ticket(booking: Booking, ticket_id: str) -> tuple[int, int]:
    """(show, serial) of a ticket of this show; whose it is, is looked at under its lock."""
    try:
        show_id, serial = from_public_id(ticket_id)
    except NoSuchBooking:
        raise NoSuchTicket from None
    if show_id != booking.show_id:
        raise NoSuchTicket
    return show_id, serial


def _filename_header(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'inline; filename="{name}"'}


ROUTES = routes.all
