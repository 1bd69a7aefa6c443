"""/admin/bookings and /admin/shows/{show}/attendees: organisers find bookings and the people behind them."""

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdfast.attendees.errors import TooManyPeople
from holdfast.attendees.every_pod import export_bookings as export_all
from holdfast.attendees.every_pod import search_bookings
from holdfast.attendees.page import (
    AttendeeFilter,
    AttendeeList,
    AttendeeQuery,
    BookingDossier,
    BookingFilter,
    BookingQuery,
    FoundBookings,
)
from holdfast.attendees.store import AttendeeStore
from holdfast.bookings import NoSuchBooking, from_public_id
from holdfast.catalogue import NoSuchEvent, NoSuchShow
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app, get_scope

NO_STORE = {"Cache-Control": "no-store"}
CSV = "text/csv"
BOOKINGS = "/admin/bookings"
ATTENDEES = "/admin/shows/{show:int}/attendees"
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.BOOKINGS)


@routes.get(
    BOOKINGS,
    query=BookingQuery,
    answers={200: FoundBookings},
    refusals=(NoSuchShow, NoSuchEvent, NoSuchBooking, TooManyPeople),
)
async def find_bookings(request: Request) -> Response:
    """Find bookings of your shows, newest first.

    `q` is a reference, a booking's id, a mail address (of the buyer, or to which a ticket was given), or
    words of the buyer's name; with a `show` also a seat. Without it, all bookings of a show or an event.
    """
    found = await search_bookings(get_app(request), _organiser_id(request), query(BookingQuery, request))
    return answer(200, found, NO_STORE)


@routes.get(
    BOOKINGS + ".csv",
    query=BookingFilter,
    answers={200: bytes},
    refusals=(NoSuchShow, NoSuchEvent, NoSuchBooking, TooManyPeople),
    media_types=(CSV,),
)
async def export_bookings(request: Request) -> Response:
    """The same for a spreadsheet, all of them. The export is recorded in the audit log."""
    wanted = query(BookingFilter, request)
    return _sheet(await export_all(get_app(request), _organiser_id(request), wanted), "bookings.csv")


@routes.get(BOOKINGS + "/{booking}", answers={200: BookingDossier}, refusals=(NoSuchBooking,))
async def get_found_booking(request: Request) -> Response:
    """One booking of your shows: its buyer, its tickets with their holders, and every step it took."""
    key = from_public_id(request.path_params["booking"])
    return answer(200, await _store(request).dossier(_organiser_id(request), key), NO_STORE)


@routes.get(ATTENDEES, query=AttendeeQuery, answers={200: AttendeeList}, refusals=(NoSuchShow, NoSuchBooking))
async def list_attendees(request: Request) -> Response:
    """The tickets of a show with the people who hold them, and whether they are inside."""
    wanted = query(AttendeeQuery, request)
    found = await _store(request).attendees(request.path_params["show"], _organiser_id(request), wanted)
    return answer(200, found, NO_STORE)


@routes.get(
    ATTENDEES + ".csv",
    query=AttendeeFilter,
    answers={200: bytes},
    refusals=(NoSuchShow,),
    media_types=(CSV,),
)
async def export_attendees(request: Request) -> Response:
    """The same for a spreadsheet, all of them. The export is recorded in the audit log."""
    show_id, wanted = request.path_params["show"], query(AttendeeFilter, request)
    sheet = await _store(request).export_attendees(show_id, _organiser_id(request), wanted)
    return _sheet(sheet, f"attendees-{show_id}.csv")


def _sheet(pages: AsyncIterator[bytes], name: str) -> Response:
    headers = NO_STORE | {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(pages, headers=headers, media_type=CSV)


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


def _store(request: Request) -> AttendeeStore:
    store: AttendeeStore = get_app(request).attendees
    return store


ROUTES = routes.all
