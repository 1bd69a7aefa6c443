"""What is bought: on paper, in a calendar, the invoice; sent again, given to somebody, given back."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.invoices import invoice_answer
from holdfast.ledger import Booking, State, from_public_id, public_id
from holdfast.people import Email, Visit, normal_email
from holdfast.refusals import Invalid, NoSuchBooking, UnknownSeat
from holdfast.site.checkout.booking.routes import said_of, shown, sources, tried
from holdfast.site.checkout.store import giver_of, own_booking, sheet_of, tickets_of
from holdfast.site.routes import form, page, policy, visitor
from holdfast.tickets import (
    Codes,
    NoSuchTicket,
    NoTickets,
    Transfers,
    calendar_file,
    printed,
)
from holdfast.web.answers import invalid, query
from holdfast.web.routing import Route

NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Label = Annotated[str, Meta(max_length=100)]
Typed = Annotated[str, Meta(max_length=300)]


class Nothing(Struct):
    """A button alone."""


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


async def get_tickets_pdf(request: Request) -> Response:
    """My tickets of a booking, to print."""
    visit, booking = await _own(request)
    box, me = request.state.box, giver_of(visit, booking)
    layout = (await box.catalogue.show_on_sale(booking.show_id)).layout
    own = [one for one in await tickets_of(box, booking) if one.is_of(me.account_id, me.email)]
    sheets = [
        printed(
            one, layout, booking, await box.tickets.fixed_code(one) if one.codes is not Codes.LIVE else None
        )
        for one in own
        if one.voided_at is None
    ]
    if not sheets:
        raise NoTickets(state=booking.state)
    file = await box.tickets.printer.print(await box.tickets.occasion(booking.show_id), sheets)
    return Response(file, 200, {**NO_STORE, **_named("tickets.pdf")}, "application/pdf")


async def get_calendar(request: Request) -> Response:
    """The show as an entry of a calendar."""
    _, booking = await _own(request)
    box, found = request.state.box, await tickets_of(request.state.box, booking)
    if not found:
        raise NoTickets(state=booking.state)
    layout = (await box.catalogue.show_on_sale(booking.show_id)).layout
    occasion = await box.tickets.occasion(booking.show_id)
    seats = [layout.labels[one.seat] for one in found if one.voided_at is None]
    file = calendar_file(
        occasion,
        public_id(booking.show_id, booking.number),
        seats,
        is_off=occasion.cancelled or not seats,
        now=datetime.now(UTC),
    )
    return Response(file, 200, {**NO_STORE, **_named("tickets.ics")}, "text/calendar")


async def get_invoice(request: Request) -> Response:
    """The invoice, and credit notes for what came back."""
    _, booking = await _own(request)
    return await invoice_answer(request, booking)


async def post_resend(request: Request) -> Response:
    """Sends the tickets by mail once more."""
    await form(request, Nothing)

    async def act(visit: Visit, booking: Booking) -> str:
        box = request.state.box
        if not await tickets_of(box, booking):
            raise NoTickets(state=booking.state)
        await box.tickets.resend(booking.show_id, booking.number, booking.owner_id)
        return _path(booking, "resent")

    return await tried(request, act)


async def post_transfer(request: Request) -> Response:
    """Gives a ticket to somebody else; its code is dead at once."""
    asked = await form(request, TransferForm)

    async def act(visit: Visit, booking: Booking) -> str:
        place = _ticket(booking, asked.ticket)
        try:
            email = normal_email(msgspec.convert({"email": asked.email}, Address).email)
        except msgspec.ValidationError as error:
            raise invalid(error) from None
        await Transfers(request.state.box.postgres).give(*place, giver_of(visit, booking), email)
        return _path(booking, "given")

    return await tried(request, act, {"email": asked.email, "ticket": asked.ticket})


async def post_take_back(request: Request) -> Response:
    """Takes a ticket back that waits for somebody to sign up."""
    asked = await form(request, TakeBackForm)

    async def act(visit: Visit, booking: Booking) -> str:
        place = _ticket(booking, asked.ticket)
        await Transfers(request.state.box.postgres).take_back(*place, giver_of(visit, booking))
        return _path(booking, "taken_back")

    return await tried(request, act)


async def get_cancel(request: Request) -> Response:
    """What would come back, and until when, before anything is given back."""
    visit, booking = await _own(request)
    if booking.state is not State.CONFIRMED:
        return await shown(request, visit, booking)
    asked = query(SeatsForm, request).seats
    box, sheet = request.state.box, await sheet_of(request.state.box, visit, booking)
    try:
        seats = await _seats(request, booking, asked)
        quote = await box.refunds.quote(booking, seats)
    except (UnknownSeat, Invalid) as refusal:
        return await shown(request, visit, booking, said_of(request, refusal, {}))
    return page(
        request,
        "checkout/cancel.html",
        headers={"Content-Security-Policy": policy(sources(box, sheet))},
        sheet=sheet,
        quote=quote,
        chosen=asked or [place.label for place in sheet.places],
        visit=visit,
    )


async def post_cancel(request: Request) -> Response:
    """Gives a booking back, or some of its seats: so much returns as its terms promise."""
    asked = await form(request, SeatsForm)

    async def act(visit: Visit, booking: Booking) -> str:
        seats = await _seats(request, booking, asked.seats)
        after, _ = await request.state.box.refunds.cancel(booking, seats)
        return _path(after, "reduced" if after.state is State.CONFIRMED else "")

    return await tried(request, act)


async def _own(request: Request) -> tuple[Visit, Booking]:
    visit = await visitor(request)
    return visit, await own_booking(request.state.box, visit, str(request.path_params["booking"]))


async def _seats(request: Request, booking: Booking, labels: list[str]) -> tuple[int, ...] | None:
    """By number; None: all of them."""
    layout = (await request.state.box.catalogue.show_on_sale(booking.show_id)).layout
    if unknown := [label for label in labels if layout.index_of.get(label) not in booking.seats]:
        raise UnknownSeat(seats=unknown)
    seats = tuple(sorted({layout.index_of[label] for label in labels}))
    return None if seats in ((), booking.seats) else seats


def _ticket(booking: Booking, ticket_id: str) -> tuple[int, int]:
    """(show, serial) of a ticket of this show; whose it is, is looked at under its lock."""
    try:
        show_id, serial = from_public_id(ticket_id)
    except NoSuchBooking:
        raise NoSuchTicket from None
    if show_id != booking.show_id:
        raise NoSuchTicket
    return show_id, serial


def _path(booking: Booking, said: str = "") -> str:
    path = f"/bookings/{public_id(booking.show_id, booking.number)}"
    return f"{path}?said={said}" if said else path


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'inline; filename="{name}"'}


def _route(method: str, what: str, call: object) -> Route:
    path = f"/bookings/{{booking}}/{what}"
    return Route(method=method, path=path, call=call, tag="site", bare=True)  # type: ignore[arg-type]


ROUTES = (
    _route("GET", "tickets.pdf", get_tickets_pdf),
    _route("GET", "calendar.ics", get_calendar),
    _route("GET", "invoice.pdf", get_invoice),
    _route("POST", "resend", post_resend),
    _route("POST", "transfer", post_transfer),
    _route("POST", "take-back", post_take_back),
    _route("GET", "cancel", get_cancel),
    _route("POST", "cancel", post_cancel),
)
