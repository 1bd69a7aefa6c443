"""/link/{token} of an invitation to an organisation: accept or decline, with or without an account.

The link proves the mailbox. Who is signed in to an account joins with it; who is not is signed in to the
account of the invited address, which is made if there is none.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import LinkGone, Name, Session
from holdfast.organisations import AlreadyAMember, NoSuchInvitation, OpenInvitation, list_grantable
from holdfast.site.cookies import get_session
from holdfast.site.pages import get_localiser, redirect, render_page
from holdfast.site.signed_in import DESK, client_device, is_valid, signed_in_redirect
from holdfast.web.routing import get_app

if TYPE_CHECKING:
    from holdfast.app import App

# Of the address only its origin goes to other pages, our own included; forms still name their origin.
SECRET_ADDRESS = {"Referrer-Policy": "strict-origin", "X-Robots-Tag": "noindex"}


async def render_invitation(request: Request, token: str, wrong: str = "") -> Response:
    app, session = get_app(request), await get_session(request)
    found = await _find(app, token)
    joins_as = session.account if session is not None and _is_person(session) else None
    return render_page(
        request,
        "account/invitation.html",
        status=422 if wrong else 200,
        headers=SECRET_ADDRESS,
        invitation=found,
        rights=list_grantable(found.rights),
        joins_as=joins_as,
        needs_name=joins_as is None and not await app.people.has_account(found.email),
        wrong=wrong,
        session=session,
    )


async def accept_invitation(request: Request, token: str, name: str) -> Response:
    app, session = get_app(request), await get_session(request)
    if session is not None and _is_person(session):
        await app.invitations.accept(token, session.account_id)
        return redirect(DESK)
    if name and not is_valid(name, Name):
        return await render_invitation(request, token, get_localiser(request).t("account.wrong_name"))
    found = await _find(app, token)
    account = await app.people.enter_proved(
        found.email,
        signed_in=session.account_id if session is not None else None,
        locale=get_localiser(request).language,
        name=name,
    )
    # First the session: an account with a second factor signs in with it, then opens the link again.
    cookie = await app.sessions.open_account(account.account_id, session, client_device(request))
    with suppress(AlreadyAMember):
        await app.invitations.accept(token, account.account_id)
    return await signed_in_redirect(request, cookie, DESK)


async def decline_invitation(request: Request, token: str) -> Response:
    found = await _find(get_app(request), token)
    await get_app(request).invitations.decline(token)
    return render_page(
        request,
        "account/declined.html",
        headers=SECRET_ADDRESS,
        invitation=found,
        session=await get_session(request),
    )


def _is_person(session: Session) -> bool:
    """An account whose address is proved, not a guest."""
    return not session.is_guest and session.account.is_verified


async def _find(app: "App", token: str) -> OpenInvitation:
    try:
        return await app.invitations.find(token)
    except NoSuchInvitation:
        raise LinkGone from None
