"""Hold seats, and extend a hold. Cancelling is in refunds: money may go back."""

import secrets
from itertools import count

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import BookingPage, HoldGone, NoSuchBooking, booking_page, from_public_id, public_id
from holdfast.catalogue import NoSuchShow
from holdfast.engines.tracing import note
from holdfast.errors import BadKey, Busy, KeyReused
from holdfast.holds.errors import (
    CoolDown,
    ExtensionCap,
    LeavesOrphan,
    NotOnSale,
    OverLimit,
    PriceChanged,
    RangeLimit,
    SeatsTaken,
    SoldOut,
)
from holdfast.holds.parties import get_party
from holdfast.holds.request import (
    HoldBody,
    HoldRequest,
    compute_body_hash,
    compute_claim_id,
    parse_selection,
)
from holdfast.layouts import UnknownSeat
from holdfast.waitingroom import REFUSED_PASSES
from holdfast.web.caller import Role
from holdfast.web.idempotency import REPLAYED, checked_key
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

_PREFIX = secrets.token_hex(8)  # of this process; with a counter: unique without new entropy per request
_numbers = count(1)
routes = RouteTable(tag="sale", role=Role.FAN)


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
        RangeLimit,
        CoolDown,
        NotOnSale,
        *REFUSED_PASSES,
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

    By name (`seats`), best available (`best`) or as places of a standing area (`places`): all of them, or
    none. The booking is durable before it is returned. The same Idempotency-Key gives the same hold. A
    booking with nothing to pay is confirmed at once. Prices are those of this moment, and stay. Send the
    total that you displayed as `expected_total_minor`: if it has changed, nothing is held.
    """
    state, show_id = request.scope["state"], request.scope["path_params"]["show"]
    app, caller = get_app(request), get_caller(request)
    owner_id = caller.account_id
    raw = await request.body()
    body = read(HoldBody, raw)
    show = app.catalogue.recent_show(show_id) or await app.catalogue.show_on_sale(show_id)
    party = "" if caller.is_verified else get_party(request)
    request_id, claim = request_ids(state["headers"].get(b"idempotency-key"), owner_id, party)
    try:
        selection = parse_selection(body, show)
    except UnknownSeat:  # the seat may be newer than the cached show
        show = await app.catalogue.show_on_sale(show_id)
        selection = parse_selection(body, show)
    expected = body.expected_total_minor
    booking = await app.holds.hold(
        HoldRequest(
            *(show, owner_id, request_id, claim, compute_body_hash(raw), selection, expected),
            admission=state["headers"].get(b"admission", b"").decode("latin-1"),
        )
    )
    if "span" in state:
        note("holdfast.booking_id", public_id(booking.show_id, booking.number))
    if booking.revision > show.revision:  # the layout may have changed since the show was cached
        show = await app.catalogue.show_at_revision(show_id, booking.revision)
    is_current = booking.revision == show.revision  # as nearly always: without a call
    terms = show.terms if is_current else await app.catalogue.terms(show, booking.revision)
    return answer(201, booking_page(booking, show, terms), REPLAYED if booking.is_replay else None)


@routes.post(
    "/bookings/{booking}/extend",
    answers={200: BookingPage},
    refusals=(NoSuchBooking, HoldGone, ExtensionCap),
)
async def extend_booking(request: Request) -> Response:
    """Extend a hold.

    A heartbeat: it gets its whole time to live again from now, up to a cap counted from its start.
    """
    app = get_app(request)
    if raw := await request.body():
        read(ExtendBody, raw)
    show_id, number = from_public_id(request.path_params["booking"])
    booking = await app.bookings.load_owned(get_caller(request).account_id, show_id, number)
    show = await app.catalogue.show_on_sale(booking.show_id)
    extended = await app.holds.extend(booking, show.hold_ttl_s)
    return answer(200, booking_page(extended, show, await app.catalogue.terms(show, extended.revision)))


def new_request_id() -> str:
    """Request id for callers without an Idempotency-Key."""
    return f"~{_PREFIX}{next(_numbers):x}"


def request_ids(key: bytes | None, owner_id: int, party: str = "") -> tuple[str, str]:
    """The request id, which is the Idempotency-Key, and the claim id; without a key both are unique."""
    if key is None:
        request_id = new_request_id()
        return request_id, f"{request_id}@{party}" if party else request_id
    text = checked_key(key)
    return text, compute_claim_id(owner_id, text, party)


ROUTES = routes.all
