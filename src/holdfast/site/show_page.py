"""The page of a show, the hold that its forms ask for, and what the one who looks at it holds already."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import Booking, BookingState, public_id
from holdfast.catalogue import ShowOnSale
from holdfast.engines.errors import EngineDown
from holdfast.errors import Busy, Invalid, Refusal
from holdfast.holds import HoldBody, SeatsTaken
from holdfast.site.browser import SESSION
from holdfast.site.i18n import Localiser
from holdfast.site.pages import (
    NO_STORE,
    form,
    get_localiser,
    kept_cookie,
    page,
    public,
    see,
    visit_of,
    wants_json,
)
from holdfast.site.seat_form import HoldForm, InPart, best_in_part, order_of, wished
from holdfast.site.show_view import Told, instead, told
from holdfast.web.context import get_app
from holdfast.web.idempotency import checked_key
from holdfast.web.problems import render_engine_down, render_refusal
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable

PAGE = "seats/show.html"
TRIES_MAX = 3  # the best of a part is chosen from a map that others are taking from
LATEST_MAX = 30  # bookings of somebody that are looked through for this show
NUMBER_MAX = 2**62
SHOWN = {BookingState.HELD: "held", BookingState.PAYING: "paying", BookingState.CONFIRMED: "has"}
routes = RouteTable(tag="site", bare=True)


@routes.get("/shows/{show:int}")
async def get_show(request: Request) -> Response:
    """The same for everybody: facts, prices, and forms that work without a script."""
    app, show_id, l10n = get_app(request), request.path_params["show"], get_localiser(request)

    async def make() -> dict[str, Any]:
        return _page_of(await _told(app, show_id), l10n)

    return await public(request, PAGE, (show_id,), make)


@routes.post("/shows/{show:int}/hold")
async def post_hold(request: Request) -> Response:
    """Hold what the form asks for, for whoever sends it; nobody has to sign up for that."""
    app, show_id = get_app(request), request.path_params["show"]
    show = app.catalogue.recent_show(show_id) or await app.catalogue.show_on_sale(show_id)
    cookies: list[str] = []
    try:
        asked = await form(request, HoldForm)
        if not asked.seats and "quantity" not in (await request.body()).decode("latin-1"):
            raise Invalid(field="seats", detail="Expected at least one seat.")
        visit, cookies = await _somebody(request)
        booking = await _held(app, show, asked, visit)
    except (Refusal, EngineDown) as no:
        return _keeping(await _refused(request, show, no), cookies)
    go = f"/bookings/{public_id(booking.show_id, booking.number)}"
    if not wants_json(request):
        return see(go, *cookies)
    return _keeping(answer(200, {"go": go}, {"Cache-Control": NO_STORE}), cookies)


def _keeping(response: Response, cookies: Sequence[str]) -> Response:
    """Who was refused stays who they are: the next try is no new guest."""
    response.raw_headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in cookies]
    return response


@routes.get("/shows/{show:int}/mine")
async def get_mine(request: Request) -> Response:
    """What the one who looks at the page has of this show: for its script, as the page is everybody's."""
    app, show_id, visit = get_app(request), request.path_params["show"], await visit_of(request)
    show = await app.catalogue.show_on_sale(show_id)
    found: list[Booking] = []
    for owner_id in visit.owner_ids if visit is not None else ():
        latest = await app.bookings.bookings_of(owner_id, before=NUMBER_MAX, limit=LATEST_MAX)
        found += [booking for booking in latest if booking.show_id == show_id and booking.state in SHOWN]
    now = datetime.now(UTC)
    mine = [
        {
            "booking": public_id(booking.show_id, booking.number),
            "state": SHOWN[booking.state],
            "seats": [show.layout.labels[seat] for seat in booking.seats],
            "expires_at": booking.expires_at,
        }
        for booking in found
        if booking.state is not BookingState.HELD or (booking.expires_at and booking.expires_at > now)
    ]
    return answer(200, {"mine": mine}, {"Cache-Control": NO_STORE})


async def _somebody(request: Request) -> tuple[Session, list[str]]:
    """Who is there; a guest is made of nobody, with the cookie that says so from now on."""
    if (visit := await visit_of(request)) is not None:
        return visit, []
    visits, client = get_app(request).sessions, request.client
    cookie = await visits.open_guest(
        get_localiser(request).language, client.host if client is not None else ""
    )
    visit = await visits.visit(cookie)
    assert visit is not None, "a cookie that was made a moment ago speaks for somebody"
    return visit, [kept_cookie(request, SESSION, cookie)]


async def _held(app: Any, show: ShowOnSale, asked: HoldForm, visit: Session) -> Booking:
    request_id = checked_key(asked.key.encode()) if asked.key else f"~{secrets.token_hex(12)}"
    snapshot = app.seatmap.fresh(show.show_id) or await _map(app, show.show_id)
    wish = wished(asked, show.layout, snapshot.states if snapshot is not None else None)
    for tries_left in reversed(range(TRIES_MAX)):
        body = wish if isinstance(wish, HoldBody) else await _chosen(app, show, wish)
        try:
            held: Booking = await app.holds.hold(order_of(show, visit.account_id, request_id, asked, body))
            return held
        except SeatsTaken:
            if not tries_left or isinstance(wish, HoldBody):
                raise
    raise Busy(retry_after_s=1)


async def _chosen(app: Any, show: ShowOnSale, wish: InPart) -> HoldBody:
    newest = await app.seatmap.newest(show.show_id)
    return HoldBody(seats=best_in_part(show.layout, newest.states, wish))


async def _refused(request: Request, show: ShowOnSale, no: Refusal | EngineDown) -> Response:
    """The page again, with what went wrong and what may be had instead; a script reads the problem."""
    request_id = request.state.request_id
    problem = (
        render_refusal(no, request_id) if isinstance(no, Refusal) else render_engine_down(no, request_id)
    )
    if wants_json(request):
        return problem
    details: dict[str, Any] = dict(no.details) if isinstance(no, Refusal) else {}
    code = no.code if isinstance(no, Refusal) else "engine_down"
    groups: Sequence[Sequence[str]] = details.get("alternatives") or []
    if better := details.get("better"):
        groups = [better]
    l10n = get_localiser(request)
    facts = _page_of(await _told(get_app(request), show.show_id), l10n)
    facts["refusal"] = {
        "code": code,
        "named": l10n.has(f"seats.refused_{code}"),
        "detail": l10n.t(f"problems.{code}") if l10n.has(f"problems.{code}") else "",
        "seats": ", ".join(details.get("taken") or []),
        "limit": details.get("limit") or min(10, show.order_seats_max),
        "instead": instead(show, groups),
    }
    headers = {k.decode(): v.decode() for k, v in problem.raw_headers if k == b"retry-after"}
    return page(request, PAGE, status=problem.status_code, headers=headers, **facts)


def _page_of(facts: Told, l10n: Localiser) -> dict[str, Any]:
    return {"told": facts, "script": facts.script(l10n), "refusal": None}


async def _told(app: Any, show_id: int) -> Told:
    row = await app.catalogue.show_detail(show_id)
    show = await app.catalogue.show_on_sale(show_id)
    event = await app.catalogue.event(row["event_id"])
    venue = await app.catalogue.venue(row["venue_id"])
    snapshot = await _map(app, show_id)
    return told(row, event, venue, show, snapshot.states if snapshot else None, datetime.now(UTC))


async def _map(app: Any, show_id: int) -> Any:
    """The map, or None while it cannot be asked for: the page has other things to tell."""
    try:
        return await app.seatmap.snapshot(show_id)
    except EngineDown:
        return None


ROUTES = routes.all
