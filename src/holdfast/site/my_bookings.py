"""/my: every booking and ticket of an account or browser, and the worker that stores it for offline use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import (
    Booking,
    BookingState,
    NoSuchBooking,
    from_public_id,
    public_id,
    reference,
)
from holdfast.catalogue import load_show_rows
from holdfast.site.booking_page import STORE_OFFLINE
from holdfast.site.booking_view import DisplayState, display_state_of
from holdfast.site.cookies import get_session
from holdfast.site.load_booking import build_shown_ticket
from holdfast.site.pages import SECURITY_HEADERS, read_form, redirect, render_page, require_session
from holdfast.site.show_view import split_standing
from holdfast.site.templates_env import assets_version, static_files
from holdfast.tickets import NoSuchTicket
from holdfast.waitlist import EntryPage
from holdfast.web.every_pod import ask_every_pod, drop_copies
from holdfast.web.routing import RouteTable, follow_show, get_app

if TYPE_CHECKING:
    from holdfast.app import App

BOOKINGS_MAX = 200
TICKETS_MAX = 100
NUMBER_MAX = 2**62
OPEN_STATES = (DisplayState.HELD, DisplayState.PAYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBooking:
    """A booking in the list."""

    path: str
    reference: str
    display_state: DisplayState
    seats: list[str]
    places: Mapping[str, int]  # tickets of standing areas
    amount_minor: int
    currency: str
    show: Any  # a row of show_detail
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedTicket:
    """A ticket that was transferred to this account."""

    shown: Any
    show: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWaitlist:
    """A waitlist that this account is on."""

    path: str
    entry: EntryPage
    show: Any  # a row of show_detail


@dataclass(frozen=True, slots=True, kw_only=True)
class MyBookings:
    open: Sequence[ListedBooking]  # something is to be done about them
    coming: Sequence[ListedBooking]
    ended: Sequence[ListedBooking]  # refunded, released or expired, of shows that are still to come
    past: Sequence[ListedBooking]
    given: Sequence[ReceivedTicket]
    offered: Sequence[ReceivedTicket]  # to be accepted
    now: datetime
    waitlists: Sequence[ListedWaitlist] = ()
    is_complete: bool = True  # False: a pod cannot be reached, and what it has is missing

    @property
    def is_empty(self) -> bool:
        listed = (self.open, self.coming, self.ended, self.past, self.given, self.offered, self.waitlists)
        return not any(listed)


async def load_my_bookings(app: "App", session: Session) -> MyBookings:
    """Open ones, then what is coming, the soonest first, then what came to nothing, then what is over.

    Of every pod that can be reached.
    """
    answers = await ask_every_pod(app, lambda each: _load_of_pod(each, session))
    return _merge(answers.values, is_complete=answers.is_complete)


def _merge(parts: Sequence[MyBookings], *, is_complete: bool) -> MyBookings:
    def bookings(name: str) -> list[ListedBooking]:
        return drop_copies(chain(*(getattr(part, name) for part in parts)), lambda one: one.path)

    return MyBookings(
        open=sorted(bookings("open"), key=lambda one: one.expires_at),
        coming=sorted(bookings("coming"), key=_starts_at),
        ended=sorted(bookings("ended"), key=_starts_at),
        past=sorted(bookings("past"), key=_starts_at, reverse=True),
        given=list(chain(*(part.given for part in parts))),
        offered=list(chain(*(part.offered for part in parts))),
        now=parts[0].now,
        waitlists=list(chain(*(part.waitlists for part in parts))),
        is_complete=is_complete,
    )


def _starts_at(listed: ListedBooking) -> datetime:
    starts_at: datetime = listed.show["starts_at"]
    return starts_at


async def _load_of_pod(app: "App", session: Session) -> MyBookings:
    """Open ones, what is coming, what came to nothing, what is over; in no order."""
    now = session.seen_at
    bookings: list[Booking] = []
    for owner_id in session.owner_ids:
        bookings += await app.bookings.bookings_of(owner_id, before=NUMBER_MAX, limit=BOOKINGS_MAX)
    received = await _received_tickets(app, session)
    waits = await _listed_waitlists(app, session)
    show_ids = sorted({b.show_id for b in bookings} | {one.show_id for one in received} | waits.keys())
    shows = {row["show_id"]: row for row in await load_show_rows(app, show_ids)} if show_ids else {}
    mine = [
        await _listed_booking(app, booking, shows[booking.show_id], now)
        for booking in bookings
        if booking.state is not BookingState.BLOCKED
    ]
    coming = [
        one for one in mine if one.display_state is DisplayState.CONFIRMED and one.show["ends_at"] > now
    ]
    is_open = [one for one in mine if one.display_state in OPEN_STATES]
    rest = [one for one in mine if one not in coming and one not in is_open]
    ended = [one for one in rest if one.show["ends_at"] > now]
    past = [one for one in rest if one not in ended]
    return MyBookings(
        open=is_open,
        coming=coming,
        ended=ended,
        past=past,
        given=[
            ReceivedTicket(
                shown=await build_shown_ticket(app, one, None, is_mine=True), show=shows[one.show_id]
            )
            for one in received
            if one.owner_email is None
        ],
        offered=[
            ReceivedTicket(
                shown=await build_shown_ticket(app, one, None, is_mine=False), show=shows[one.show_id]
            )
            for one in received
            if one.owner_email is not None and shows[one.show_id]["ends_at"] > now
        ],
        now=now,
        waitlists=[
            ListedWaitlist(path=f"/shows/{show_id}/waitlist", entry=entry, show=shows[show_id])
            for show_id, entry in waits.items()
        ],
    )


async def _listed_waitlists(app: "App", session: Session) -> dict[int, EntryPage]:
    """By show."""
    found = await app.waitlists.store.live_entries(session.owner_ids)
    pages = {one.show_id: await app.waitlists.page(one.show_id, one.owner_id) for one in found}
    return {show_id: page.entry for show_id, page in pages.items() if page.entry is not None}


async def _received_tickets(app: "App", session: Session) -> list[Any]:
    found = await app.tickets.of_owner(
        session.owner_ids, session.account.proved_email, before=NUMBER_MAX, limit=TICKETS_MAX
    )
    return [
        one
        for one in found
        if (one.booked_by not in session.owner_ids or one.owner_email is not None) and one.voided_at is None
    ]


async def _listed_booking(app: "App", booking: Booking, show: Any, now: datetime) -> ListedBooking:
    layout = (await app.catalogue.show_on_sale(booking.show_id)).layout
    seats, places = split_standing(layout, booking.seats)
    left_ms = int((booking.expires_at - now).total_seconds() * 1000)
    return ListedBooking(
        path=f"/bookings/{public_id(booking.show_id, booking.number)}",
        reference=reference(booking.show_id, booking.number),
        display_state=display_state_of(booking.state, left_ms),
        seats=seats,
        places=places,
        amount_minor=booking.amount_minor,
        currency=booking.currency,
        show=show,
        expires_at=booking.expires_at,
    )


WORKER = "js/checkout_worker.js"
routes = RouteTable(tag="site", bare=True)


@routes.get("/my")
async def get_my(request: Request) -> Response:
    """My bookings: what is open, what is coming, what is over. Of a guest: those of this browser."""
    session = await get_session(request)
    mine = await load_my_bookings(get_app(request), session) if session is not None else None
    headers = STORE_OFFLINE if session is not None else {}
    return render_page(request, "checkout/my.html", headers=headers, session=session, mine=mine)


class AcceptForm(Struct):
    ticket: Annotated[str, Meta(max_length=40)]


@routes.post("/my/accept")
async def post_accept(request: Request) -> Response:
    """Accepts a ticket that was transferred to the account's confirmed address."""
    data, session = await read_form(request, AcceptForm), await require_session(request)
    try:
        place = from_public_id(data.ticket)
    except NoSuchBooking:
        raise NoSuchTicket from None
    follow_show(request, place[0])
    app = get_app(request)
    ticket = await app.acceptance.accept(place, session.account_id, session.account.proved_email)
    return redirect(f"/tickets/{await app.tickets.link(ticket)}")


@routes.get("/my/offline")
async def get_offline(request: Request) -> Response:
    """What the service worker shows offline instead of pages it has not stored. No personal data."""
    return render_page(request, "checkout/offline.html", headers=STORE_OFFLINE)


@routes.get("/my-tickets-worker.js")
async def get_worker(request: Request) -> Response:
    """The service worker of /my and /bookings; at the root, because it is registered for both."""
    script = static_files()[WORKER].content.replace(b"{{edition}}", assets_version().encode())
    return Response(script, 200, {**SECURITY_HEADERS, "Cache-Control": "no-cache"}, "text/javascript")


ROUTES = routes.all
