"""/desk/{organisation}/bookings: one box finds a booking; and the page of one."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from holdfast.attendees import (
    BookingDossier,
    BookingQuery,
    FoundBooking,
    FoundBookings,
    TooManyPeople,
    search_bookings,
)
from holdfast.bookings import BookingState, from_public_id
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.desk.timeline import build_timeline
from holdfast.errors import Invalid
from holdfast.fields import ONE_LINE
from holdfast.site.pages import redirect
from holdfast.web.card_number import refuse_card_number_in_query
from holdfast.web.responses import query
from holdfast.web.routing import get_app, get_scope

SEAT_SHOWS_MAX = 20  # the next shows, in which a seat is looked for when no show is named
NOTHING = FoundBookings([], None)
NOTICES = ("refunded", "refund_waits", "refund_proposed")
desk = DeskTable()


class FindQuery(Struct):
    q: Annotated[str, Meta(max_length=254, pattern=ONE_LINE)] = ""
    show: Annotated[int, Meta(ge=1, le=2**63 - 1)] | Literal[""] = ""
    before: Annotated[str, Meta(max_length=20)] = ""


@desk.get("/bookings", like="find_bookings")
async def get_desk_bookings(request: Request) -> Response:
    """What was found; the page of the booking, if it is one."""
    here = get_desk(request)
    refuse_card_number_in_query(request.scope["query_string"])
    try:
        wanted = query(FindQuery, request)
        page, problem = await _find(request, wanted)
    except Invalid:
        wanted, page, problem = FindQuery(), NOTHING, ""
    found = page.bookings
    if len(found) == 1 and wanted.q.strip() and not wanted.before:
        return redirect(f"{here.path}/bookings/{found[0].booking_id}")
    upcoming = await get_app(request).reports.shows_of_organiser(
        here.organisation_id, is_past=False, limit=SEAT_SHOWS_MAX
    )
    return render_desk(
        request,
        "bookings.html",
        "bookings",
        wanted=wanted,
        found=found,
        next=page.next,
        missing_pods=page.missing_pods,
        problem=problem,
        upcoming=upcoming,
        zones=await get_app(request).catalogue.timezones({one.show_id for one in found}),
    )


@desk.get("/bookings/{booking}", like="get_found_booking")
async def get_desk_booking(request: Request) -> Response:
    """One booking: buyer, tickets, and everything that happened to it."""
    dossier = await load_dossier(request)
    app, key = get_app(request), from_public_id(dossier.booking.booking_id)
    booking = await app.bookings.booking(*key)
    assert booking is not None
    refunds = (await app.refund_store.refunds_of([key]))[key]
    attempts = await app.refund_store.attempts_of(booking)
    detail = await app.catalogue.show_detail(key[0])
    return render_desk(
        request,
        "booking.html",
        "bookings",
        dossier=dossier,
        booking=dossier.booking,
        timezone=detail["timezone"],
        venue=detail["venue"],
        refundable=list_refundable(dossier),
        timeline=build_timeline(dossier, refunds, attempts),
        notices=NOTICES,
    )


async def load_dossier(request: Request) -> BookingDossier:
    key = from_public_id(request.path_params["booking"])
    dossier: BookingDossier = await get_app(request).attendees.dossier(get_scope(request).organiser_id, key)
    return dossier


def list_refundable(dossier: BookingDossier) -> list[str]:
    """Seats whose tickets were neither used nor given back."""
    if dossier.booking.state is not BookingState.CONFIRMED:
        return []
    gone = {one.seat for one in dossier.tickets if one.state != "valid"}
    return [seat for seat in dossier.booking.seats if seat not in gone]


async def _find(request: Request, wanted: FindQuery) -> tuple[FoundBookings, str]:
    """Bookings, and why there are none."""
    here, app = get_desk(request), get_app(request)
    if not wanted.q.strip() and not wanted.show:
        return NOTHING, ""
    show_id = wanted.show or None
    asking = BookingQuery(q=wanted.q, show=show_id, before=wanted.before)
    try:
        found = await search_bookings(app, here.organisation_id, asking)
    except TooManyPeople as refusal:
        return NOTHING, say_refusal(request, refusal)
    if found.bookings or show_id is not None:
        return found, ""
    return replace(found, bookings=await _find_seat(request, wanted.q.strip())), ""


async def _find_seat(request: Request, label: str) -> list[FoundBooking]:
    """Who has this seat at one of the next shows."""
    here, app = get_desk(request), get_app(request)
    shows = await app.reports.shows_of_organiser(here.organisation_id, is_past=False, limit=SEAT_SHOWS_MAX)
    found: list[FoundBooking] = []
    for show in shows:
        layout = (await app.catalogue.show_on_sale(show.show_id)).layout
        if label in layout.index_of:
            asking = BookingQuery(q=label, show=show.show_id)
            found += (await search_bookings(app, here.organisation_id, asking)).bookings
    return found
