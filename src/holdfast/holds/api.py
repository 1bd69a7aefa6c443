"""Hold seats, keep them a little longer; my bookings. To cancel them is in payments: money may go back."""

import secrets
from collections.abc import Sequence
from itertools import count
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, HoldGone, NoSuchBooking, from_public_id
from holdfast.catalogue import NoSuchShow
from holdfast.errors import BadKey, Busy, KeyReused
from holdfast.holds.errors import (
    ExtensionCap,
    LeavesOrphan,
    NotOnSale,
    OverLimit,
    PriceChanged,
    SeatsTaken,
    SoldOut,
)
from holdfast.holds.outcome import claim_id
from holdfast.holds.request import (
    BookingPage,
    HoldBody,
    HoldRequest,
    RefundShown,
    body_hash,
    booking_page,
    parse_selection,
)
from holdfast.holds.service import HoldService
from holdfast.layouts import UnknownSeat
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.idempotency import checked_key
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable

PAGE_MAX = 100
NUMBER_MAX = 2**62


_PREFIX = secrets.token_hex(8)  # of this process; with a counter: unique without asking for entropy each time
_numbers = count(1)
routes = RouteTable(tag="sale", role=Role.FAN)


class BookingsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    before: Annotated[str, Meta(max_length=40)] = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class BookingList(Struct, frozen=True):
    bookings: list[BookingPage]
    next: str | None  # ask for `before` this to go on; null: that was all


class ExtendBody(Struct, forbid_unknown_fields=True, frozen=True):
    """No fields."""


@routes.post(
    "/shows/{show:int}/holds",
    body=HoldBody,
    answers={201: BookingPage},
    refusals=(
        SeatsTaken,
        SoldOut,
        LeavesOrphan,
        PriceChanged,
        OverLimit,
        NotOnSale,
        HoldGone,
        KeyReused,
        BadKey,
        UnknownSeat,
        NoSuchShow,
        Busy,
    ),
    takes_key=True,
)
async def hold_seats(request: Request) -> Response:
    """Hold seats.

    By name (`seats`), by wish (`best`) or as places of a standing area (`places`): all of them, or none. The
    answer is durable before it is given. The same Idempotency-Key gives the same hold. A booking with nothing
    to pay is confirmed at once. Prices are those of this moment, and stay: say what you were shown with
    `expected_total_minor`, and you are asked again when they have moved.
    """
    state, show_id = request.scope["state"], request.scope["path_params"]["show"]
    app, owner_id = get_app(request), get_caller(request).account_id
    raw = await request.body()
    body = read(HoldBody, raw)
    show = app.catalogue.recent_show(show_id) or await app.catalogue.show_on_sale(show_id)
    request_id, claim = request_ids(state["headers"].get(b"idempotency-key"), owner_id)
    try:
        what = parse_selection(body, show)
    except UnknownSeat:  # the seat may be newer than what we know of the hall
        show = await app.catalogue.show_on_sale(show_id)
        what = parse_selection(body, show)
    expected = body.expected_total_minor
    booking = await app.holds.hold(
        HoldRequest(show, owner_id, request_id, claim, body_hash(raw), what, expected)
    )
    if booking.revision > show.revision:  # its layout may be another since we looked
        show = await app.catalogue.show_at_revision(show_id, booking.revision)
    return answer(201, booking_page(booking, show, await app.catalogue.terms(show, booking.revision)))


@routes.get("/bookings", query=BookingsQuery, answers={200: BookingList}, refusals=(NoSuchBooking,))
async def list_bookings(request: Request) -> Response:
    """My bookings, newest first."""
    app, caller = get_app(request), get_caller(request)
    asked = query(BookingsQuery, request)
    before = from_public_id(asked.before)[1] if asked.before else NUMBER_MAX
    found = await app.bookings.bookings_of(caller.account_id, before=before, limit=asked.size + 1)
    refunds = await app.refunds.shown_many(found[: asked.size])
    pages = [
        await _page(request, booking, of_it)
        for booking, of_it in zip(found[: asked.size], refunds, strict=True)
    ]
    more = len(found) > asked.size
    return answer(
        200, BookingList(pages, pages[-1].booking_id if more else None), {"Cache-Control": "no-store"}
    )


@routes.get("/bookings/{booking}", answers={200: BookingPage}, refusals=(NoSuchBooking,))
async def get_booking(request: Request) -> Response:
    """One of my bookings."""
    booking = await own_booking(request)
    (refunds,) = await get_app(request).refunds.shown_many([booking])
    return answer(200, await _page(request, booking, refunds), {"Cache-Control": "no-store"})


@routes.post(
    "/bookings/{booking}/extend",
    answers={200: BookingPage},
    refusals=(NoSuchBooking, HoldGone, ExtensionCap),
    keyed=True,
)
async def extend_booking(request: Request) -> Response:
    """Keep a hold a little longer.

    A heartbeat: it has its whole time again from now, up to a cap counted from its start.
    """
    app = get_app(request)
    if raw := await request.body():
        read(ExtendBody, raw)
    booking = await own_booking(request)
    show = await app.catalogue.show_on_sale(booking.show_id)
    extended = await app.holds.extend(booking, show.hold_ttl_s)
    return answer(200, await _page(request, extended))


async def own_booking(request: Request) -> Booking:
    show_id, number = from_public_id(request.path_params["booking"])
    sales: HoldService = get_app(request).holds
    return await sales.booking(get_caller(request).account_id, show_id, number)


async def _page(request: Request, booking: Booking, refunds: Sequence[RefundShown] = ()) -> BookingPage:
    catalogue = get_app(request).catalogue
    show = await catalogue.show_on_sale(booking.show_id)
    return booking_page(booking, show, await catalogue.terms(show, booking.revision), refunds)


def new_request_id() -> str:
    """For who sends no Idempotency-Key."""
    return f"~{_PREFIX}{next(_numbers):x}"


def request_ids(key: bytes | None, owner_id: int) -> tuple[str, str]:
    """The request id, which is the Idempotency-Key, and the claim id; without a key each is its own."""
    if key is None:
        request_id = new_request_id()
        return request_id, request_id
    text = checked_key(key)
    return text, claim_id(owner_id, text)


ROUTES = routes.all
