"""The page of a show, the hold that its forms ask for, and what the one who looks at it holds already."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, BookingState, public_id
from holdfast.catalogue import ShowOnSale
from holdfast.engines.errors import EngineDown
from holdfast.errors import Busy, Invalid, Refusal
from holdfast.holds import HoldBody, SeatsTaken, get_party
from holdfast.seatmap import Snapshot
from holdfast.site.cookies import get_admission, get_buyer, get_session
from holdfast.site.guests import current_or_new_guest, with_cookies
from holdfast.site.i18n import Localiser
from holdfast.site.pages import (
    NO_STORE,
    get_localiser,
    read_form,
    redirect,
    render_page,
    render_public_page,
    wants_json,
)
from holdfast.site.seat_form import (
    BestInSection,
    Buyer,
    HoldForm,
    ProofForm,
    build_hold_request,
    choose_best_in_section,
    parse_seat_form,
)
from holdfast.site.show_view import ShowView, build_show_view, price_alternatives, ticket_names
from holdfast.waitingroom import GUARDING, REFUSED_PASSES, NotAdmitted
from holdfast.web.idempotency import checked_key
from holdfast.web.problems import render_engine_down, render_refusal
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

PAGE = "seats/show.html"
TRIES_MAX = 3  # the best of a part is chosen from a map that others are taking from
LATEST_MAX = 30  # latest bookings searched for this show
NUMBER_MAX = 2**62
MINE_STATES = {BookingState.HELD: "held", BookingState.PAYING: "paying", BookingState.CONFIRMED: "has"}
routes = RouteTable(tag="site", bare=True)


@routes.get("/shows/{show:int}")
async def get_show(request: Request) -> Response:
    """Public and cached: facts, prices, and forms that work without scripts."""
    app, show_id, l10n = get_app(request), request.path_params["show"], get_localiser(request)

    if get_admission(request) and await _is_admitted(request, show_id):
        facts = _page_context(await _load_view(app, show_id), l10n)
        return render_page(request, PAGE, **facts, session=await get_session(request))

    async def make() -> dict[str, Any]:
        queue = await app.waiting_rooms.status(show_id)
        return _page_context(await _load_view(app, show_id), l10n) | {"queue": queue}

    return await render_public_page(request, PAGE, (show_id,), make)


async def _is_admitted(request: Request, show_id: int) -> bool:
    """Whether this browser has a pass for the seats behind a waiting room."""
    app, session = get_app(request), await get_session(request)
    try:
        queue = await app.waiting_rooms.status(show_id)
        if session is None or queue is None or queue.state not in GUARDING:
            return False
        await app.waiting_rooms.guard.require(show_id, session.account_id, get_admission(request))
    except EngineDown:
        return False
    except REFUSED_PASSES:
        return False
    return True


@routes.post("/shows/{show:int}/hold")
async def post_hold(request: Request) -> Response:
    """Holds the selected seats. Without a session a guest account is created: no sign-up is needed."""
    app, show_id = get_app(request), request.path_params["show"]
    show = app.catalogue.recent_show(show_id) or await app.catalogue.show_on_sale(show_id)
    cookies: list[str] = []
    try:
        data = await read_form(request, HoldForm)
        if not data.seats and "quantity" not in (await request.body()).decode("latin-1"):
            raise Invalid(field="seats", detail="Expected at least one seat.")
        await _require_proof(request, show_id)
        session, cookies = await current_or_new_guest(request)
        booking = await _hold_selection(app, show, data, get_buyer(request, session))
    except (Refusal, EngineDown) as refusal:
        return with_cookies(await _render_refusal(request, show, refusal), cookies)
    go = f"/bookings/{public_id(booking.show_id, booking.number)}"
    if not wants_json(request):
        return redirect(go, *cookies)
    return with_cookies(answer(200, {"go": go}, {"Cache-Control": NO_STORE}), cookies)


@routes.get("/shows/{show:int}/mine")
async def get_mine(request: Request) -> Response:
    """What the one who looks at the page has of this show: for its script, as the page is everybody's."""
    app, show_id, session = get_app(request), request.path_params["show"], await get_session(request)
    show = await app.catalogue.show_on_sale(show_id)
    found: list[Booking] = []
    for owner_id in session.owner_ids if session is not None else ():
        latest = await app.bookings.bookings_of(owner_id, before=NUMBER_MAX, limit=LATEST_MAX)
        found += [
            booking for booking in latest if booking.show_id == show_id and booking.state in MINE_STATES
        ]
    now, l10n = datetime.now(UTC), get_localiser(request)
    mine = [
        {
            "booking": public_id(booking.show_id, booking.number),
            "state": MINE_STATES[booking.state],
            "seats": [show.layout.labels[seat] for seat in booking.seats],
            "names": ticket_names(show.layout, booking.seats, l10n),
            "expires_at": booking.expires_at,
        }
        for booking in found
        if booking.state is not BookingState.HELD or (booking.expires_at and booking.expires_at > now)
    ]
    return answer(200, {"mine": mine}, {"Cache-Control": NO_STORE})


async def _require_proof(request: Request, show_id: int) -> None:
    """Of guests, while very many of them want this show: before an account is made and seats are sought."""
    session = await get_session(request)
    if session is None or session.is_guest:
        proof = (await read_form(request, ProofForm)).proof
        await get_app(request).puzzles.require_proof(show_id, get_party(request), proof)


async def _hold_selection(app: "App", show: ShowOnSale, data: HoldForm, buyer: Buyer) -> Booking:
    request_id = checked_key(data.key.encode()) if data.key else f"~{secrets.token_hex(12)}"
    snapshot = app.seatmap.fresh(show.show_id) or await _load_map(app, show.show_id)
    selection = parse_seat_form(data, show.layout, snapshot.states if snapshot is not None else None)
    for tries_left in reversed(range(TRIES_MAX)):
        body = selection if isinstance(selection, HoldBody) else await _choose_seats(app, show, selection)
        try:
            held: Booking = await app.holds.hold(build_hold_request(show, buyer, request_id, data, body))
            return held
        except SeatsTaken:
            if not tries_left or isinstance(selection, HoldBody):
                raise
    raise Busy(retry_after_s=1)


async def _choose_seats(app: "App", show: ShowOnSale, selection: BestInSection) -> HoldBody:
    newest = await app.seatmap.newest(show.show_id)
    return HoldBody(seats=choose_best_in_section(show.layout, newest.states, selection))


async def _render_refusal(request: Request, show: ShowOnSale, refusal: Refusal | EngineDown) -> Response:
    """The page again, with what went wrong and what may be had instead; a script reads the problem."""
    request_id = request.state.request_id
    problem = (
        render_refusal(refusal, request_id)
        if isinstance(refusal, Refusal)
        else render_engine_down(refusal, request_id)
    )
    if wants_json(request):
        return problem
    details: dict[str, Any] = dict(refusal.details) if isinstance(refusal, Refusal) else {}
    code = refusal.code if isinstance(refusal, Refusal) else "engine_down"
    if isinstance(refusal, REFUSED_PASSES):
        code = NotAdmitted.code
    groups: Sequence[Sequence[str]] = details.get("alternatives") or []
    if better := details.get("better"):
        groups = [better]
    l10n = get_localiser(request)
    facts = _page_context(await _load_view(get_app(request), show.show_id), l10n)
    if code == NotAdmitted.code:
        facts["queue"] = await get_app(request).waiting_rooms.status(show.show_id)
    facts["refusal"] = {
        "code": code,
        "named": l10n.has(f"seats.refused_{code}"),
        "detail": l10n.t(f"problems.{code}") if l10n.has(f"problems.{code}") else "",
        "seats": ", ".join(details.get("taken") or []),
        "limit": details.get("limit") or min(10, show.order_seats_max),
        "instead": price_alternatives(show, groups),
    }
    if code == "proof_needed":  # a browser without scripts waits, and sends the same choice again
        sent = parse_qsl((await request.body()).decode("latin-1"))
        facts["refusal"]["sent"] = [pair for pair in sent if pair[0] in HoldForm.__struct_fields__]
        facts["refusal"]["puzzle"] = details["puzzle"]
        facts["refusal"]["limit"] = details["retry_after_s"]
    headers = {k.decode(): v.decode() for k, v in problem.raw_headers if k == b"retry-after"}
    return render_page(request, PAGE, status=problem.status_code, headers=headers, **facts)


def _page_context(view: ShowView, l10n: Localiser) -> dict[str, Any]:
    return {"view": view, "script": view.script(l10n), "refusal": None, "queue": None}


async def _load_view(app: "App", show_id: int) -> ShowView:
    row = await app.catalogue.show_detail(show_id)
    show = await app.catalogue.public_show(show_id)
    event = await app.catalogue.event(row["event_id"])
    venue = await app.catalogue.venue(row["venue_id"])
    snapshot = await _load_map(app, show_id)
    return build_show_view(row, event, venue, show, snapshot.states if snapshot else None, datetime.now(UTC))


async def _load_map(app: "App", show_id: int) -> Snapshot | None:
    """The map, or None while it cannot be data for: the page has other things to tell."""
    try:
        return await app.seatmap.snapshot(show_id)
    except EngineDown:
        return None


ROUTES = routes.all
