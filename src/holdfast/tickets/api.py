"""My tickets: codes, pictures, paper, calendar, the page on a phone; transfers."""

from base64 import b32encode
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import LinkGone, MailedToken, locale_for, normal_email
from holdfast.bookings import Booking, NoSuchBooking, from_public_id
from holdfast.errors import Busy, TokenInvalid
from holdfast.tickets.errors import (
    FixedCode,
    NoSuchTicket,
    NothingToTakeBack,
    NoTickets,
    ResendMax,
    TicketUsed,
    TicketVoid,
    ToYourself,
    TransferMax,
    TransferTooLate,
)
from holdfast.tickets.issued import (
    Codes,
    IssuedTicket,
    LiveTicket,
    LiveTicketList,
    PrintedTicket,
    Standing,
    TicketList,
    TicketPage,
    build_printed_ticket,
)
from holdfast.tickets.qr import svg_url
from holdfast.tickets.store import LISTED_MAX, Tickets
from holdfast.tickets.ticket import STEP_S
from holdfast.tickets.transfer import Giver, TransferBody, TransferPage
from holdfast.web.caller import Role
from holdfast.web.every_pod import ask_every_pod, cut_page, drop_copies
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import BIGINT_MAX, RouteTable, follow_show, get_app, get_caller

NO_STORE = {"Cache-Control": "no-store"}
BOOKING = "/bookings/{booking}/tickets"
ONE = "/tickets/{ticket}"
OF_BOOKING = (NoSuchBooking, NoTickets)
routes = RouteTable(tag="tickets", role=Role.FAN)


class PhoneBody(Struct, forbid_unknown_fields=True, frozen=True):
    phone: Annotated[
        str, Meta(min_length=8, max_length=100, pattern=r"^[!-~]+$(?!\n)")
    ]  # generated and stored by the phone


class ClaimBody(Struct, forbid_unknown_fields=True, frozen=True):
    token: MailedToken  # the last part of the link in the mail


class TicketsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    before: Annotated[str, Meta(max_length=40)] = ""  # the last `ticket_id` of the page before
    size: Annotated[int, Meta(ge=1, le=LISTED_MAX)] = 20


@routes.get(BOOKING, answers={200: TicketList}, refusals=OF_BOOKING)
async def list_booking_tickets(request: Request) -> Response:
    """The tickets of my booking.

    One a seat, with its code and the QR as a picture. A ticket that was given away is listed without a code.
    Where the show's codes are live, ask for them with `POST …/tickets/codes`.
    """
    _, found = await _of_booking(request)
    me = await load_giver(request)
    return answer(200, TicketList([await build_page(request, one, me) for one in found]), NO_STORE)


@routes.get(
    BOOKING + ".pdf", answers={200: bytes}, refusals=(*OF_BOOKING, Busy), media_types=("application/pdf",)
)
async def get_booking_tickets_pdf(request: Request) -> Response:
    """The tickets of my booking, to print: three to a sheet, in the language of Accept-Language."""
    booking, found = await _of_booking(request)
    me = await load_giver(request)
    own = [one for one in found if one.is_of(me.account_id) and one.voided_at is None]
    return await _pdf(request, own, booking)


@routes.get(BOOKING + ".ics", answers={200: bytes}, refusals=OF_BOOKING, media_types=("text/calendar",))
async def get_booking_calendar(request: Request) -> Response:
    """The show as an entry of a calendar. Read again, it moves the entry, or strikes it out."""
    booking, found = await _of_booking(request)
    file = await get_tickets(request).calendar(booking, found, locale_for(request.state.headers))
    return Response(file, 200, {**NO_STORE, **_attached("tickets.ics")}, "text/calendar")


@routes.post(
    BOOKING + "/codes",
    body=PhoneBody,
    answers={200: LiveTicketList},
    refusals=(*OF_BOOKING, FixedCode, NoSuchTicket, TicketVoid),
)
async def create_booking_ticket_codes(request: Request) -> Response:
    """Live codes for this phone, of every ticket of my booking.

    They change every `step_s` seconds and are good for the step before and after. A phone is whatever name it
    goes by; only the codes of the phone that requested last are valid.
    """
    body = read(PhoneBody, await request.body())
    _, found = await _of_booking(request)
    me = await load_giver(request)
    return await _live(request, [one for one in found if one.is_of(me.account_id)], body.phone)


@routes.post(BOOKING + "/resend", answers={204: None}, refusals=(*OF_BOOKING, ResendMax))
async def resend_tickets(request: Request) -> Response:
    """Send me my tickets again."""
    booking, _ = await _of_booking(request)
    await get_tickets(request).resend(booking.show_id, booking.number, get_caller(request).account_id)
    return answer(204)


@routes.get("/tickets", query=TicketsQuery, answers={200: TicketList}, refusals=(NoSuchTicket,))
async def list_tickets(request: Request) -> Response:
    """My tickets, newest first: booked by me, given to me, or offered to my confirmed address."""
    parameters, me = query(TicketsQuery, request), await load_giver(request)
    before = parse_ticket_id(parameters.before)[1] if parameters.before else BIGINT_MAX
    answers = await ask_every_pod(
        get_app(request),
        lambda app: app.tickets.of_owner([me.account_id], me.email, before=before, limit=parameters.size),
    )
    found = drop_copies(
        (ticket for tickets in answers.values for ticket in tickets),
        lambda ticket: (ticket.show_id, ticket.serial),
    )
    found.sort(key=lambda ticket: ticket.serial, reverse=True)
    pages = []
    for ticket in cut_page(found, parameters.size, lambda ticket: ticket.serial):
        follow_show(request, ticket.show_id)
        pages.append(await build_page(request, ticket, me))
    return answer(200, TicketList(pages, answers.is_complete), NO_STORE)


@routes.get(ONE, answers={200: TicketPage}, refusals=(NoSuchTicket,))
async def get_ticket(request: Request) -> Response:
    """One of my tickets, or one that is offered to me."""
    ticket, me = await _own_ticket(request, is_offered_too=True)
    return answer(200, await build_page(request, ticket, me), NO_STORE)


@routes.get(
    ONE + "/ticket.pdf", answers={200: bytes}, refusals=(NoSuchTicket, Busy), media_types=("application/pdf",)
)
async def get_ticket_pdf(request: Request) -> Response:
    """One of my tickets, to print."""
    ticket, _ = await _own_ticket(request)
    return await _pdf(request, [ticket], None)


@routes.post(
    ONE + "/codes",
    body=PhoneBody,
    answers={200: LiveTicketList},
    refusals=(NoSuchTicket, NoTickets, FixedCode, TicketVoid),
)
async def create_ticket_codes(request: Request) -> Response:
    """The live code of one ticket, for this phone."""
    body = read(PhoneBody, await request.body())
    ticket, _ = await _own_ticket(request)
    return await _live(request, [ticket], body.phone)


def get_tickets(request: Request) -> Tickets:
    store: Tickets = get_app(request).tickets
    return store


async def load_giver(request: Request) -> Giver:
    account = await get_app(request).accounts.account(get_caller(request).account_id)
    if account is None:
        raise TokenInvalid
    return Giver(account.account_id, account.proved_email)


async def _of_booking(request: Request) -> tuple[Booking, list[IssuedTicket]]:
    """The caller's own booking and its tickets; to everybody else there is no such booking."""
    show_id, number = from_public_id(request.path_params["booking"])
    booking = await get_app(request).bookings.load_owned(get_caller(request).account_id, show_id, number)
    found = await get_tickets(request).of_booking(show_id, number)
    if not found:
        raise NoTickets(state=booking.state)
    return booking, found


async def _own_ticket(request: Request, *, is_offered_too: bool = False) -> tuple[IssuedTicket, Giver]:
    me = await load_giver(request)
    ticket = await get_tickets(request).find(*parse_ticket_id(request.path_params["ticket"]))
    if ticket is None or not (
        ticket.is_of(me.account_id) or (is_offered_too and ticket.is_offered_to(me.email))
    ):
        raise NoSuchTicket
    return ticket, me


def parse_ticket_id(text: str) -> tuple[int, int]:
    try:
        return from_public_id(text)
    except NoSuchBooking:
        raise NoSuchTicket from None


async def build_page(request: Request, ticket: IssuedTicket, me: Giver) -> TicketPage:
    is_mine = ticket.is_of(me.account_id)
    otherwise = Standing.OFFERED if ticket.is_offered_to(me.email) else Standing.GIVEN_AWAY
    printed = await load_printed_ticket(request, ticket, is_mine=is_mine)
    link = await get_tickets(request).link(ticket) if is_mine else None
    return TicketPage(
        ticket_id=ticket.ticket_id,
        show_id=ticket.show_id,
        reference=printed.reference,
        seat=printed.seat,
        section=printed.section,
        category=printed.category,
        standing=printed.worth if is_mine else otherwise,
        codes=ticket.codes,
        issued_at=ticket.issued_at,
        used_at=ticket.used_at,
        code=printed.code,
        qr_svg=svg_url(printed.code) if printed.code else None,
        page_url=f"{get_app(request).config.public_url}/tickets/{link}" if link else None,
        is_suspended=ticket.is_suspended,
    )


async def load_printed_ticket(
    request: Request, ticket: IssuedTicket, *, is_mine: bool = True
) -> PrintedTicket:
    """For a screen: there, what is live is shown by the phone itself."""
    layout = (await get_app(request).catalogue.show_on_sale(ticket.show_id)).layout
    has_code = is_mine and ticket.voided_at is None and ticket.codes is Codes.FIXED
    code = await get_tickets(request).fixed_code(ticket) if has_code else None
    return build_printed_ticket(ticket, layout, None, code)


async def _pdf(request: Request, tickets: list[IssuedTicket], booking: Booking | None) -> Response:
    if not tickets:
        raise NoTickets
    occasion = await get_tickets(request).occasion(tickets[0].show_id)
    locale = locale_for(request.state.headers)
    file = await get_tickets(request).paper(occasion, tickets, booking, locale)
    return Response(file, 200, {**NO_STORE, **_attached("tickets.pdf")}, "application/pdf")


async def _live(request: Request, tickets: list[IssuedTicket], phone: str) -> Response:
    good = [one for one in tickets if one.voided_at is None]
    if not good:
        raise NoTickets
    made = []
    for one in good:
        code, secret = await bind_and_sign(request, [one], phone)
        made.append(live_ticket(one, code, secret))
    now = datetime.now(UTC).timestamp()
    changes_at = datetime.fromtimestamp((now // STEP_S + 1) * STEP_S, UTC)
    return answer(200, LiveTicketList(STEP_S, changes_at, made), NO_STORE)


async def bind_and_sign(request: Request, tickets: list[IssuedTicket], phone: str) -> tuple[str, bytes]:
    (ticket,) = tickets
    if ticket.codes is Codes.FIXED:
        raise FixedCode
    await get_tickets(request).bind_phone(tickets, phone)
    again = await get_tickets(request).find(ticket.show_id, ticket.serial)
    if again is None or again.edition != ticket.edition:
        raise NoSuchTicket
    if again.voided_at is not None:
        raise TicketVoid
    return await get_tickets(request).live_code(again)


def live_ticket(ticket: IssuedTicket, code: str, secret: bytes) -> LiveTicket:
    return LiveTicket(ticket.ticket_id, code, svg_url(code), b32encode(secret).decode().rstrip("="))


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'inline; filename="{name}"', "X-Content-Type-Options": "nosniff"}


@routes.post(
    "/tickets/{ticket}/transfer",
    body=TransferBody,
    answers={200: TransferPage},
    refusals=(NoSuchTicket, TicketUsed, TicketVoid, ToYourself, TransferMax, TransferTooLate),
)
async def transfer_ticket(request: Request) -> Response:
    """Give a ticket to another person.

    Its code is dead at once. The address gets a mail with a link that accepts the ticket; until then you may
    take it back. The answer does not reveal whether the address has an account.
    """
    email = normal_email(read(TransferBody, await request.body()).email)
    place, me = parse_ticket_id(request.path_params["ticket"]), await load_giver(request)
    given = await get_app(request).transfers.give(*place, me, email)
    return answer(200, TransferPage(given.ticket_id, email, given.owner_email is None))


@routes.delete(
    "/tickets/{ticket}/transfer",
    answers={200: TicketPage},
    refusals=(NoSuchTicket, NothingToTakeBack, TicketUsed, TicketVoid),
)
async def cancel_ticket_transfer(request: Request) -> Response:
    """Take back a ticket whose recipient has not accepted it yet."""
    place, me = parse_ticket_id(request.path_params["ticket"]), await load_giver(request)
    ticket = await get_app(request).transfers.take_back(*place, me)
    return answer(200, await build_page(request, ticket, me))


@routes.post(
    "/tickets/{ticket}/accept",
    answers={200: TicketPage},
    refusals=(NoSuchTicket, TicketUsed, TicketVoid, TransferTooLate),
)
async def accept_ticket(request: Request) -> Response:
    """Accept a ticket that is offered to my confirmed address."""
    place, me = parse_ticket_id(request.path_params["ticket"]), await load_giver(request)
    ticket = await get_app(request).acceptance.accept(place, me.account_id, me.email)
    return answer(200, await build_page(request, ticket, me), NO_STORE)


@routes.post(
    "/tickets/claims",
    body=ClaimBody,
    answers={200: TicketPage},
    refusals=(LinkGone, NoSuchTicket, TicketUsed, TicketVoid, TransferTooLate),
)
async def claim_ticket(request: Request) -> Response:
    """Accept a ticket with the token of the link in the mail, whatever my own address is. It works once."""
    body, me = read(ClaimBody, await request.body()), await load_giver(request)
    ticket = await get_app(request).acceptance.accept_by_link(body.token, me.account_id)
    return answer(200, await build_page(request, ticket, me), NO_STORE)


ROUTES = routes.all
