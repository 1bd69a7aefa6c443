"""My account: mailed links, change of address and name, list of sessions."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts.account import Email, Name, NewPassword, OldPassword, choose_language
from holdfast.accounts.api import (
    NO_STORE,
    AccountPage,
    SignedInPage,
    account_page,
    address,
    device,
    limit,
    signed_in_page,
)
from holdfast.accounts.errors import (
    AccountBanned,
    EmailTaken,
    LinkGone,
    NoSuchSession,
    PasswordNeeded,
    SecondFactorRequired,
    WrongPassword,
)
from holdfast.accounts.mail_token import MailedToken, SessionInfo
from holdfast.errors import Busy, TokenExpired, TokenInvalid, TooManyRequests
from holdfast.web.caller import Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_caller

routes = RouteTable(tag="accounts")


class AddressBody(Struct, forbid_unknown_fields=True):
    email: Email


class LinkBody(Struct, forbid_unknown_fields=True):
    token: MailedToken  # the last part of the link in the mail


class ResetBody(Struct, forbid_unknown_fields=True):
    token: MailedToken
    new_password: NewPassword


class ConfirmBody(Struct, forbid_unknown_fields=True):
    token: MailedToken
    password: OldPassword | None = None  # of the account; not needed with its access token


class NewAddressBody(Struct, forbid_unknown_fields=True):
    email: Email
    current_password: OldPassword = ""  # of an account that has none: leave it out


class NameBody(Struct, forbid_unknown_fields=True):
    name: Name


class SessionPage(Struct):
    session_id: int
    device: str  # as its browser or program calls itself; may be empty
    created_at: datetime
    last_used_at: datetime  # to some minutes
    is_this: bool  # the session of this request
    signed_in_by: (
        str  # password, link (in a mail) or passkey; with a second step: password+totp, link+recovery
    )


class SessionList(Struct):
    sessions: list[SessionPage]


class EndQuery(Struct, forbid_unknown_fields=True):
    but_this: Literal["true", "false"] = "false"  # true: the session of this request goes on


@routes.post("/auth/forgot-password", body=AddressBody, answers={204: None}, refusals=(TooManyRequests,))
async def request_password_reset(request: Request) -> Response:
    """Forgot the password: mails a link, if the address has an account. The answer is the same if not."""
    body = read(AddressBody, await request.body())
    await limit(request, "reset", body.email)
    await get_app(request).people.request_reset(body.email, _locale(request))
    return answer(204)


@routes.post(
    "/auth/reset-password",
    body=ResetBody,
    answers={200: SignedInPage},
    refusals=(LinkGone, AccountBanned, SecondFactorRequired, Busy),
)
async def reset_password(request: Request) -> Response:
    """Choose a new password with the token of a mailed link. Every session of the account ends."""
    body = read(ResetBody, await request.body())
    account = await get_app(request).people.reset(body.token, body.new_password)
    signed_in = await get_app(request).accounts.sign_in(account, device(request))
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.post("/auth/sign-in-link", body=AddressBody, answers={204: None}, refusals=(TooManyRequests,))
async def request_sign_in_link(request: Request) -> Response:
    """Mail a link that signs in without a password. Using it makes an account, if there is none yet."""
    body = read(AddressBody, await request.body())
    await limit(request, "reset", body.email)
    await get_app(request).people.request_sign_in(body.email, _locale(request))
    return answer(204)


@routes.post(
    "/auth/sign-in-link/use",
    body=LinkBody,
    answers={200: SignedInPage},
    refusals=(LinkGone, AccountBanned, SecondFactorRequired),
)
async def use_sign_in_link(request: Request) -> Response:
    """Sign in with the token of a mailed link. It works once."""
    body = read(LinkBody, await request.body())
    app = get_app(request)
    account = await app.people.sign_in(body.token, signed_in=_signed_in(request), locale=_locale(request))
    signed_in = await app.accounts.sign_in(account, device(request))
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.post(
    "/auth/confirm-address",
    body=ConfirmBody,
    answers={200: AccountPage},
    refusals=(LinkGone, PasswordNeeded, WrongPassword, EmailTaken, TokenInvalid, TokenExpired),
)
async def confirm_address(request: Request) -> Response:
    """The address that the link was sent to is the account's: after a sign-up, or a change of address.

    Send the account's access token or its password with it. Without one of them a stranger could sign up with
    your address and have you confirm it.
    """
    body = read(ConfirmBody, await request.body())
    account = await get_app(request).people.confirm(
        body.token, signed_in=_signed_in(request), password=body.password, address=address(request)
    )
    return answer(200, account_page(account), NO_STORE)


@routes.post("/me/confirmation", answers={204: None}, refusals=(TooManyRequests,), role=Role.FAN)
async def request_confirmation(request: Request) -> Response:
    """Mail the link that confirms my address again."""
    await limit(request, "reset", f"account {get_caller(request).account_id}")
    await get_app(request).people.request_confirmation(get_caller(request).account_id, _locale(request))
    return answer(204)


@routes.post(
    "/me/email",
    body=NewAddressBody,
    answers={204: None},
    refusals=(WrongPassword, TooManyRequests),
    role=Role.FAN,
)
async def change_address(request: Request) -> Response:
    """Change the address: mails a link to the new one. It is yours when the link is used.

    The answer does not reveal whether the address has an account already: then the mail says so.
    """
    body = read(NewAddressBody, await request.body())
    await limit(request, "reset", body.email)
    await get_app(request).people.request_change(
        get_caller(request),
        email=body.email,
        password=body.current_password,
        address=address(request),
        locale=_locale(request),
    )
    return answer(204)


@routes.put("/me/name", body=NameBody, answers={200: AccountPage}, role=Role.FAN)
async def change_name(request: Request) -> Response:
    """Change the name on bookings and in mails."""
    body = read(NameBody, await request.body())
    account = await get_app(request).people.rename(get_caller(request).account_id, body.name.strip())
    return answer(200, account_page(account), NO_STORE)


@routes.get("/me/sessions", answers={200: SessionList}, role=Role.FAN)
async def list_sessions(request: Request) -> Response:
    """Where the account is signed in, the session used last first."""
    caller = get_caller(request)
    found = await get_app(request).people.sessions(caller.account_id, caller.session_id)
    return answer(200, SessionList([_session_page(one) for one in found]), NO_STORE)


@routes.delete("/me/sessions/{session:int}", answers={204: None}, refusals=(NoSuchSession,), role=Role.FAN)
async def end_session(request: Request) -> Response:
    """Sign out there. Its tokens are refused within seconds."""
    await get_app(request).people.end_session(
        get_caller(request).account_id, int(request.path_params["session"])
    )
    return answer(204)


@routes.delete("/me/sessions", query=EndQuery, answers={204: None}, role=Role.FAN)
async def end_sessions(request: Request) -> Response:
    """Sign out everywhere; with `but_this=true`, everywhere else."""
    caller = get_caller(request)
    keeps_this = query(EndQuery, request).but_this == "true"
    await get_app(request).people.end_sessions(caller.account_id, caller.session_id if keeps_this else 0)
    return answer(204)


def _signed_in(request: Request) -> int | None:
    """The account of the access token, where one is sent."""
    authorization = request.headers.get("authorization")
    return get_app(request).accounts.verify(authorization).account_id if authorization else None


def _locale(request: Request) -> str:
    return choose_language(request.headers.get("accept-language"))


def _session_page(one: SessionInfo) -> SessionPage:
    return SessionPage(
        session_id=one.session_id,
        device=one.device,
        created_at=one.created_at,
        last_used_at=one.last_used_at,
        is_this=one.is_this,
        signed_in_by=one.signed_in_by,
    )


ROUTES = routes.all
