"""After a purchase: PDF, calendar entry, invoice, resending the e-mail and transfers."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, Session, normal_email
from holdfast.bookings import Booking, NoSuchBooking, from_public_id
from holdfast.invoices import invoice_answer
from holdfast.site.booking_page import booking_path, handle_form, load_requested_booking
from holdfast.site.load_booking import load_tickets, transfer_sender
from holdfast.site.pages import EmptyForm, get_locale, read_form
from holdfast.tickets import NoSuchTicket, NoTickets
from holdfast.web.responses import invalid
from holdfast.web.routing import RouteTable, get_app

NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Typed = Annotated[str, Meta(max_length=300)]
routes = RouteTable(tag="site", prefix="/bookings/{booking}", bare=True)


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
    session, booking = await load_requested_booking(request)
    app, me = get_app(request), transfer_sender(session, booking)
    own = [one for one in await load_tickets(app, booking) if one.is_of(me.account_id)]
    good = [one for one in own if one.voided_at is None]
    if not good:
        raise NoTickets(state=booking.state)
    file = await app.tickets.paper(
        await app.tickets.occasion(booking.show_id), good, booking, get_locale(request)
    )
    return Response(file, 200, {**NO_STORE, **_filename_header("tickets.pdf")}, "application/pdf")


@routes.get("/calendar.ics")
async def get_calendar(request: Request) -> Response:
    """The show as an entry of a calendar."""
    _, booking = await load_requested_booking(request)
    app, found = get_app(request), await load_tickets(get_app(request), booking)
    if not found:
        raise NoTickets(state=booking.state)
    file = await app.tickets.calendar(booking, found, get_locale(request))
    return Response(file, 200, {**NO_STORE, **_filename_header("tickets.ics")}, "text/calendar")


@routes.get("/invoice.pdf")
async def get_invoice(request: Request) -> Response:
    """The invoice, and credit notes for what came back."""
    _, booking = await load_requested_booking(request)
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
