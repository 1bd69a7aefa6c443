"""The page of a booking in any state, and the same page with a notice when a form was refused.

render_booking(request, …)   the page;  PageNotice: the notice at its top
booking_path(booking)        its path
handle_form(request, act)    runs a form's action, then redirects, or shows the page with the refusal
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import Booking, HoldGone, NoSuchBooking, public_id
from holdfast.engines.errors import EngineDown
from holdfast.errors import Invalid, Refusal
from holdfast.site.booking_view import BookingView, DisplayState
from holdfast.site.cookies import get_session, safe_path
from holdfast.site.errors import SignInFirst
from holdfast.site.load_booking import load_booking_view, load_own_booking
from holdfast.site.pages import (
    content_security_policy,
    current_path,
    get_localiser,
    redirect,
    render_page,
    require_session,
    wants_json,
)
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

# Notices after a form was sent, and their kind.
NOTICE_KINDS = {
    "extended": "good",
    "resent": "good",
    "details": "good",
    "given": "good",
    "taken_back": "good",
    "reduced": "good",
    "returned": "good",
    "merged": "good",
    "swapped": "good",
    "sell_back": "good",
    "sell_back_ended": "good",
    "amount_changed": "warn",
    "still_calling_off": "warn",
}
RETRY_AFTER_S = 2  # when an engine is away
STRIPE_SOURCES = {
    "script-src": "https://js.stripe.com",
    "frame-src": "https://js.stripe.com https://hooks.stripe.com",
    "connect-src": "https://api.stripe.com",
}
RAZORPAY_FORM = "https://api.razorpay.com"
# Lets the service worker store this page for offline use.
STORE_OFFLINE = {"Holdfast-Offline": "keep"}
routes = RouteTable(tag="site", bare=True)


class NoticeQuery(Struct):
    notice: str = ""


class BookingStatus(Struct, frozen=True):
    """For scripts: load the page again when `view_version` changes."""

    view_version: str
    display_state: DisplayState
    left_ms: int


@dataclass(frozen=True, slots=True)
class PageNotice:
    """What the page says at its top, and beside its fields."""

    kind: str = ""  # good, warn, bad
    title: str = ""
    text: str = ""
    wrong: dict[str, str] = field(default_factory=dict)  # field → sentence
    typed: dict[str, str] = field(default_factory=dict)  # field → what was typed
    alternatives: list[list[str]] = field(default_factory=list)  # seats instead of those that are gone
    status: int = 200


@routes.get("/bookings/{booking}")
async def get_booking_page(request: Request) -> Response:
    """A booking of mine: held, being paid for, confirmed with its tickets, or what became of it."""
    session, booking = await load_requested_booking(request)
    if wants_json(request):
        view = await load_booking_view(get_app(request), session, booking, session.seen_at)
        status = BookingStatus(view.view_version, view.display_state, view.left_ms)
        return answer(200, status, {"Cache-Control": "no-store", "Vary": "Accept, Cookie"})
    return await render_booking(request, session, booking, _requested_notice(request), session.seen_at)


async def render_booking(
    request: Request,
    session: Session,
    booking: Booking,
    notice: PageNotice | None = None,
    now: datetime | None = None,
) -> Response:
    app, notice = get_app(request), notice or PageNotice()
    view = await load_booking_view(app, session, booking, now)
    headers = {"Content-Security-Policy": content_security_policy(gateway_sources(app, view))}
    if view.display_state is DisplayState.CONFIRMED and not notice.kind:
        headers |= STORE_OFFLINE
    if notice.status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return render_page(
        request,
        "checkout/booking.html",
        status=notice.status,
        headers=headers,
        view=view,
        notice=notice,
        session=session,
        config=app.config,
        gateway=app.saga_runner.gateway.name,
        back=current_path(request),
    )


async def handle_form(
    request: Request, act: Callable[[Session, Booking], Awaitable[str]], typed: dict[str, str] | None = None
) -> Response:
    """Does what a form asks for; `act` answers where to go.

    A refusal is shown on the booking's page, with what was typed. While an engine is down that page cannot be
    loaded: what was typed is shown in a form that can be sent again.
    """
    try:
        session = await require_form_sender(request)
        booking = await load_own_booking(get_app(request), session, request.path_params["booking"])
        try:
            path = await act(session, booking)
        except NoSuchBooking:
            raise
        except Refusal as refusal:
            if wants_json(request):
                raise
            now = await load_own_booking(get_app(request), session, request.path_params["booking"])
            return await render_booking(
                request, session, now, notice_for_refusal(request, refusal, typed or {})
            )
    except EngineDown:
        if wants_json(request):
            raise
        return await render_unsent_form(request)
    return answer(200, {"go": path}) if wants_json(request) else redirect(path)


async def load_requested_booking(request: Request) -> tuple[Session, Booking]:
    """The booking in the path and its owner's session; without one, sign-in leads back here."""
    session = await require_session(request)
    return session, await load_own_booking(get_app(request), session, str(request.path_params["booking"]))


async def require_form_sender(request: Request) -> Session:
    """The sender's session; without one, sign-in leads back to the booking's page, not to the form."""
    if (session := await get_session(request)) is None:
        raise SignInFirst(back=safe_path(f"/bookings/{request.path_params['booking']}"))
    return session


async def render_unsent_form(request: Request) -> Response:
    """An engine is down and the outcome unknown: the same form, filled in, to be sent again."""
    pairs = parse_qsl((await request.body()).decode("latin-1"), keep_blank_values=True)
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return render_page(request, "checkout/unsent.html", status=503, headers=headers, pairs=pairs)


def notice_for_refusal(request: Request, refusal: Refusal, typed: dict[str, str]) -> PageNotice:
    """A refusal in the reader's language; one of a field stands beside it."""
    l10n, code, details = get_localiser(request), refusal.code, refusal.details
    if isinstance(refusal, HoldGone) and not details.get("alternatives"):
        # The page itself says what became of the hold; a second sentence above it could only contradict.
        return PageNotice(typed=typed, status=refusal.status)
    name = f"problems.{code}"
    sentence = l10n.t(name) if l10n.has(name) else str(details.get("detail") or refusal.title)
    title = l10n.t(f"problem_titles.{code}") if l10n.has(f"problem_titles.{code}") else refusal.title
    which = [one for one in str(details.get("field", "")).split(",") if one in typed]
    if isinstance(refusal, Invalid) and which:
        wrong = {one: l10n.t(f"checkout.wrong_{one}") for one in which}
        return PageNotice("bad", "", "", wrong=wrong, typed=typed, status=refusal.status)
    groups: Any = details.get("alternatives") or []
    return PageNotice("bad", title, sentence, typed=typed, alternatives=list(groups), status=refusal.status)


def gateway_sources(app: "App", view: BookingView) -> dict[str, str]:
    """Whom the page may load from, or send a form to, beside ourselves: the gateway, while one can pay."""
    if view.display_state not in (DisplayState.HELD, DisplayState.PAYING):
        return {}
    match app.saga_runner.gateway.name:
        case "stripe":
            return STRIPE_SOURCES
        case "razorpay":
            return {"form-action": RAZORPAY_FORM}
    return {"form-action": origin} if (origin := gateway_origin(app)) else {}


def gateway_origin(app: "App") -> str:
    """Of the gateway's own pages, as far as it is known."""
    parts = urlsplit(app.config.gateway_url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc and app.config.gateway == "sandbox" else ""


def _requested_notice(request: Request) -> PageNotice:
    try:
        name = query(NoticeQuery, request).notice
    except Invalid:
        return PageNotice()
    if name not in NOTICE_KINDS:
        return PageNotice()
    return PageNotice(NOTICE_KINDS[name], "", get_localiser(request).t(f"checkout.notice_{name}"))


def booking_path(booking: Booking, notice: str = "") -> str:
    """Where a booking's page is, and what it shall say at its top."""
    path = f"/bookings/{public_id(booking.show_id, booking.number)}"
    return f"{path}?notice={notice}" if notice else path


ROUTES = routes.all
