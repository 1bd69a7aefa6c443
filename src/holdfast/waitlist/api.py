"""/shows/{show}/waitlist: wait for seats of a full show, and answer offers."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import HoldGone, NoSuchBooking, WrongMove, from_public_id
from holdfast.catalogue import NoSuchShow
from holdfast.errors import Busy
from holdfast.holds import NotOnSale
from holdfast.layouts import UnknownSeat
from holdfast.waitlist.entry import JoinBody, PartiesQuery, PartyList, WaitlistPage
from holdfast.waitlist.errors import AddressNotConfirmed, AlreadyWaiting, NotWaiting, SeatsAvailable
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_caller, get_scope

PATH = "/shows/{show:int}/waitlist"
NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="sale", role=Role.FAN)


@routes.post(
    PATH,
    body=JoinBody,
    answers={201: WaitlistPage, 200: WaitlistPage},
    refusals=(NoSuchShow, NotOnSale, SeatsAvailable, AlreadyWaiting, AddressNotConfirmed, UnknownSeat),
)
async def join_waitlist(request: Request) -> Response:
    """Join the waitlist of a show.

    Seats that come free are offered to waiting parties in order, first to those whom the sold-out queue left
    without seats. An offer is a held booking of yours: pay for it within its window, or decline it. One entry
    per account and show; the same request again returns the same entry (200).
    """
    caller = get_caller(request)
    if not caller.is_verified:
        raise AddressNotConfirmed()
    body, show_id = read(JoinBody, await request.body()), int(request.path_params["show"])
    app, owner_id = get_app(request), caller.account_id
    position = await app.waiting_rooms.drained_position(show_id, owner_id)
    page, is_new = await app.waitlists.join(show_id, owner_id, body, position)
    return answer(201 if is_new else 200, page, NO_STORE)


@routes.get(PATH, answers={200: WaitlistPage}, refusals=(NoSuchShow,))
async def get_waitlist(request: Request) -> Response:
    """The waitlist of a show, and my place in it.

    `entry` is my live entry, or the last one; null if I never joined. Chance and days assume that seats go on
    coming free as in the last days.
    """
    owner_id = get_caller(request).account_id
    page = await get_app(request).waitlists.page(int(request.path_params["show"]), owner_id)
    return answer(200, page, NO_STORE)


@routes.delete(PATH, answers={204: None}, refusals=(NotWaiting, WrongMove, HoldGone, Busy))
async def leave_waitlist(request: Request) -> Response:
    """Leave the waitlist. An open offer is declined."""
    await get_app(request).waitlists.leave(int(request.path_params["show"]), get_caller(request).account_id)
    return answer(204)


@routes.post(
    "/waitlist/offers/{booking}/decline",
    answers={200: WaitlistPage},
    refusals=(NoSuchBooking, WrongMove, HoldGone, Busy),
)
async def decline_offer(request: Request) -> Response:
    """Decline an offer: its seats go to the next party, and my entry ends."""
    app = get_app(request)
    show_id, number = from_public_id(request.path_params["booking"])
    booking = await app.bookings.load_owned(get_caller(request).account_id, show_id, number)
    return answer(200, await app.waitlists.decline(booking), NO_STORE)


@routes.get(
    "/admin/shows/{show:int}/waitlist",
    tag="admin",
    role=Role.ORGANISER,
    right=Right.BOOKINGS,
    query=PartiesQuery,
    answers={200: PartyList},
    refusals=(NoSuchShow,),
)
async def list_waitlist(request: Request) -> Response:
    """The parties on the waitlist of a show in the order of joining, counts by state, and reserved seats."""
    app = get_app(request)
    organiser_id = get_scope(request).organiser_id
    show = await app.catalogue.organiser_show(request.path_params["show"], organiser_id)
    return answer(200, await app.waitlists.parties(show, query(PartiesQuery, request)), NO_STORE)


ROUTES = routes.all
