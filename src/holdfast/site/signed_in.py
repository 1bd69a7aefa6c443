"""What pages that sign a visitor in have in common: from where, and where to go then."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.site.pages import redirect, set_session_headers
from holdfast.web.caller import Role
from holdfast.web.routing import get_app

HOME = "/my"
DESK = "/desk"  # where the work of organisers, door staff and administrators is


async def signed_in_redirect(request: Request, cookie: str, back: str) -> Response:
    """To the page before or, where there was none, to where the work of the role is."""
    session = await get_app(request).sessions.load(cookie)
    if session is not None and back == HOME and await works_here(request, session):
        back = DESK
    name = session.account.name if session is not None and not session.is_guest else ""
    return redirect(back, *set_session_headers(request, cookie, name))


async def works_here(request: Request, session: Session) -> bool:
    """Whether the account has a role, or is a member of an organisation."""
    if session.role is not Role.FAN:
        return True
    return not session.is_guest and bool(await get_app(request).organisations.memberships(session.account_id))


def is_valid(text: str, kind: object) -> bool:
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return False
    return True


def client_address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def client_device(request: Request) -> str:
    return request.headers.get("user-agent", "")
