"""Give a ticket to somebody else, and take it back while it waits for them."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import normal_email
from holdfast.tickets.api import me_of, page_of, place_of
from holdfast.tickets.errors import (
    NoSuchTicket,
    NothingToTakeBack,
    TicketUsed,
    TicketVoid,
    ToYourself,
    TransferMax,
    TransferTooLate,
)
from holdfast.tickets.issued import TicketPage
from holdfast.tickets.transfer import TransferBody, TransferPage
from holdfast.tickets.transfer_store import Transfers
from holdfast.web.caller import Role
from holdfast.web.context import get_app
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable

routes = RouteTable(tag="tickets", role=Role.FAN)


@routes.post(
    "/tickets/{ticket}/transfer",
    body=TransferBody,
    answers={200: TransferPage},
    refusals=(NoSuchTicket, TicketUsed, TicketVoid, ToYourself, TransferMax, TransferTooLate),
    keyed=True,
)
async def transfer_ticket(request: Request) -> Response:
    """Give a ticket to somebody else.

    Its code is dead at once. Who has an account by this address has the ticket; who has none gets it by
    signing up, and until then you may take it back.
    """
    email = normal_email(read(TransferBody, await request.body()).email)
    place, me = place_of(request.path_params["ticket"]), await me_of(request)
    given = await Transfers(get_app(request).postgres).give(*place, me, email)
    return answer(200, TransferPage(given.ticket_id, email, given.owner_email is None))


@routes.delete(
    "/tickets/{ticket}/transfer",
    answers={200: TicketPage},
    refusals=(NoSuchTicket, NothingToTakeBack, TicketUsed, TicketVoid),
)
async def cancel_ticket_transfer(request: Request) -> Response:
    """Take a ticket back that waits for somebody to sign up."""
    place, me = place_of(request.path_params["ticket"]), await me_of(request)
    ticket = await Transfers(get_app(request).postgres).take_back(*place, me)
    return answer(200, await page_of(request, ticket, me))


ROUTES = routes.all
