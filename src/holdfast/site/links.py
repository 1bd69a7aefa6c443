"""/link/{token}: what links in mails lead to. GET shows a page with a button, POST uses the link.

Programs that open the links of a mail, to check or to preload them, send GET: they use nothing up. The
address of the page is a secret: it is sent to no other page as a referrer, and is in no log.
"""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import (
    LinkGone,
    MailToken,
    NewPassword,
    PasswordNeeded,
    Purpose,
    SecondFactorRequired,
    Session,
    WrongPassword,
)
from holdfast.bookings import BookingState, public_id
from holdfast.errors import Refusal, TooManyRequests
from holdfast.site.begin import Shown, add_first_admin, first_page_of, render_first_admin
from holdfast.site.cookies import get_session
from holdfast.site.invitation import (
    SECRET_ADDRESS,
    accept_invitation,
    decline_invitation,
    render_invitation,
)
from holdfast.site.pages import (
    get_localiser,
    read_form,
    redirect,
    render_page,
    set_session_headers,
)
from holdfast.site.second_step import render_second_step
from holdfast.site.signed_in import HOME, client_address, client_device, is_valid, signed_in_redirect
from holdfast.tickets import ResendMax, TicketShow
from holdfast.web.every_pod import ask_every_pod
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

Typed = Annotated[str, Meta(max_length=300)]
RESENT_MAX = 20
NUMBER_MAX = 2**62
routes = RouteTable(tag="site", bare=True)


class LinkForm(Struct):
    password: Typed = ""
    name: Typed = ""  # of a person who accepts an invitation and has no account
    answer: Typed = ""  # to an invitation: decline, or accept
    email: Typed = ""  # of the first administrator


@routes.get("/link/{token}")
async def get_link(request: Request) -> Response:
    """What the link is for, and the button that uses it."""
    try:
        return await _render(request)
    except LinkGone:
        return await render_invitation(request, _text(request))


@routes.post("/link/{token}")
async def post_link(request: Request) -> Response:
    """Uses the link."""
    data, session = await read_form(request, LinkForm), await get_session(request)
    text, app = _text(request), get_app(request)
    try:
        token = await _look(app, text)
        match token.purpose if token is not None else None:
            case None:
                if data.answer == "decline":
                    return await decline_invitation(request, text)
                return await accept_invitation(request, text, data.name)
            case Purpose.VERIFY:
                return await _confirm(request, text, session, data.password)
            case Purpose.RESET:
                return await _reset(request, text, session, data.password)
            case Purpose.SIGN_IN:
                return await _sign_in(request, text, session)
            case Purpose.CLAIM:
                return await _accept(request, text, session)
            case Purpose.BEGIN:
                return await add_first_admin(request, text, data.email, data.name, data.password)
        return await _open_booking(request, text, session)
    except SecondFactorRequired as refusal:
        return await render_second_step(request, refusal)
    except (WrongPassword, PasswordNeeded, TooManyRequests) as refusal:
        return await _render(request, refusal)


async def _confirm(request: Request, text: str, session: Session | None, password: str) -> Response:
    app, signed_in = get_app(request), session.account_id if session is not None else None
    account = await app.people.confirm(
        text, signed_in=signed_in, password=password or None, address=client_address(request)
    )
    if await app.people.is_guest(account.account_id):
        await _send_tickets(app, account.account_id)
        return render_page(request, "account/confirmed.html", headers=SECRET_ADDRESS, session=session)
    if session is None or account.account_id != session.account_id:
        cookie = await app.sessions.open_account(account.account_id, session, client_device(request))
        return await signed_in_redirect(request, cookie, "/account?notice=confirmed")
    return redirect("/account?notice=confirmed")


async def _send_tickets(app: "App", guest_id: int) -> None:
    """What could not be mailed to an address that was not proved."""

    async def send(each: "App") -> None:
        for booking in await each.bookings.bookings_of(guest_id, before=NUMBER_MAX, limit=RESENT_MAX):
            if booking.state is BookingState.CONFIRMED:
                try:
                    await each.tickets.resend(booking.show_id, booking.number, guest_id)
                except ResendMax:
                    return

    await ask_every_pod(app, send)


async def _reset(request: Request, text: str, session: Session | None, password: str) -> Response:
    if not is_valid(password, NewPassword):
        return await _render(request, wrong=get_localiser(request).t("account.wrong_password"))
    app = get_app(request)
    account = await app.people.reset(text, password)
    cookie = await app.sessions.open_account(account.account_id, session, client_device(request))
    return await signed_in_redirect(request, cookie, await first_page_of(app, account.role))


async def _sign_in(request: Request, text: str, session: Session | None) -> Response:
    app, signed_in = get_app(request), session.account_id if session is not None else None
    account = await app.people.sign_in(text, signed_in=signed_in, locale=get_localiser(request).language)
    cookie = await app.sessions.open_account(account.account_id, session, client_device(request))
    return await signed_in_redirect(request, cookie, HOME)


async def _accept(request: Request, text: str, session: Session | None) -> Response:
    app, language = get_app(request), get_localiser(request).language
    ticket, cookie = await app.acceptance.accept_in_browser(
        text, session, locale=language, device=client_device(request)
    )
    headers = set_session_headers(request, cookie) if cookie is not None else []
    return redirect(f"/tickets/{await app.tickets.link(ticket)}", *headers)


async def _open_booking(request: Request, text: str, session: Session | None) -> Response:
    """It works as often as it is opened, until the guest names another address."""
    app = get_app(request)
    token = await app.people.guest_of_link(text)
    cookie = await app.sessions.show_guest(token.account_id or 0, session, client_device(request))
    headers = set_session_headers(request, cookie) if cookie is not None else []
    return redirect(f"/bookings/{public_id(token.show_id or 0, token.number or 0)}", *headers)


async def _render(request: Request, refusal: Refusal | None = None, wrong: str = "") -> Response:
    """The page of the link; a refusal stands beside the password that it is about."""
    app, session, l10n = get_app(request), await get_session(request), get_localiser(request)
    token = await app.mail_tokens.look(_text(request))
    if token.purpose is Purpose.BEGIN:
        return render_first_admin(request, Shown({"name": "", "email": ""}), session)
    if token.purpose is Purpose.BOOKING:
        await app.people.guest_of_link(_text(request))
    signed_in = session.account_id if session is not None else None
    if refusal is not None and not isinstance(refusal, PasswordNeeded):
        wrong = l10n.t(f"problems.{refusal.code}")
    return render_page(
        request,
        "account/link.html",
        status=refusal.status if refusal is not None else 422 if wrong else 200,
        headers=SECRET_ADDRESS,
        token=token,
        occasion=await _occasion(app, token),
        needs_password=await app.people.needs_password(_text(request), signed_in),
        wrong=wrong,
        session=session,
    )


async def _occasion(app: "App", token: MailToken) -> TicketShow | None:
    return await app.tickets.recent_occasion(token.show_id) if token.show_id is not None else None


async def _look(app: "App", text: str) -> MailToken | None:
    """None: not a mail token. It may be that of an invitation."""
    try:
        return await app.mail_tokens.look(text)
    except LinkGone:
        return None


def _text(request: Request) -> str:
    return str(request.path_params["token"])


ROUTES = routes.all
