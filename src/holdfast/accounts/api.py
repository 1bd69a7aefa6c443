"""Sign up, log in, stay signed in, log out."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts.account import (
    Account,
    Email,
    Name,
    NewPassword,
    OldPassword,
    Password,
    RefreshToken,
    SignedIn,
    choose_language,
    normal_email,
)
from holdfast.accounts.errors import AccountBanned, BadCredentials, SecondFactorRequired, WrongPassword
from holdfast.accounts.store import Accounts
from holdfast.engines.postgres import Transaction
from holdfast.errors import Busy, NotSignedIn, TokenExpired, TokenInvalid, TooManyRequests
from holdfast.legal import Agreed, TermsChanged, TermsInForce
from holdfast.web.caller import Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller

NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="accounts")


class SignUpBody(Struct, forbid_unknown_fields=True):
    email: Email
    password: NewPassword
    name: Name
    agreed: Agreed | None = None  # the terms of the house that the person agrees to: `GET /legal/terms`


class LogInBody(Struct, forbid_unknown_fields=True):
    email: Email
    password: Password


class RefreshBody(Struct, forbid_unknown_fields=True):
    refresh_token: RefreshToken


class PasswordBody(Struct, forbid_unknown_fields=True):
    new_password: NewPassword
    current_password: OldPassword = ""  # of an account that has none: leave it out


class LocaleBody(Struct, forbid_unknown_fields=True):
    locale: Literal["en", "de", "hi"]


class AccountPage(Struct):
    account_id: int
    email: str
    name: str
    role: Role
    created_at: datetime
    locale: str  # the language we write to you in
    email_verified: bool  # a link in a mail has proved that the address is yours


class SignedInPage(Struct):
    account: AccountPage
    access_token: str
    token_type: str
    expires_in: int
    refresh_token: str


@routes.post(
    "/accounts", body=SignUpBody, answers={201: SignedInPage}, refusals=(TermsChanged, TooManyRequests, Busy)
)
async def create_account(request: Request) -> Response:
    """Sign up.

    Makes an account and signs it in. Send `access_token` as `Authorization: Bearer …`; before `expires_in`
    seconds are over, trade `refresh_token` for a new pair. We write to you in the language that your browser
    asks for (Accept-Language), if it is supported; `PUT /me/locale` chooses another.

    The address gets a mail with a link. Once it is used, you can log in elsewhere with address and password.
    The answer does not reveal whether the address has an account already: then the mail says so. Consent to
    the terms of the house is recorded with `agreed`, if they are those in force.
    """
    body = read(SignUpBody, await request.body())
    terms = await get_app(request).legal.terms_of_house() if body.agreed is not None else TermsInForce()
    terms.check(body.agreed or ())
    await limit(request, "sign-up")
    app, locale = get_app(request), choose_language(request.headers.get("accept-language"))

    async def agree_and_confirm(tx: Transaction, account_id: int) -> None:
        # With the account or not at all: a request that fails after it would make a second one when retried.
        await app.legal.agree(account_id, terms, on=tx)
        await app.people.request_confirmation(account_id, locale, tx)

    signed_in = await _accounts(request).sign_up(
        email=body.email,
        password=body.password,
        name=body.name.strip(),
        locale=locale,
        device=device(request),
        also=agree_and_confirm,
    )
    return answer(201, signed_in_page(request, signed_in), NO_STORE)


@routes.post(
    "/auth/login",
    body=LogInBody,
    answers={200: SignedInPage},
    refusals=(BadCredentials, SecondFactorRequired, AccountBanned, TooManyRequests, Busy),
)
async def log_in(request: Request) -> Response:
    """Log in.

    The answer to a wrong address and to a wrong password is the same. After too many wrong passwords for one
    account from one address, wait as long as Retry-After says. An account with a second factor is refused:
    the `token` of `second_factor_required` continues the sign-in.
    """
    body = read(LogInBody, await request.body())
    signed_in = await _accounts(request).log_in(
        email=body.email, password=body.password, address=address(request), device=device(request)
    )
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.post(
    "/auth/refresh",
    body=RefreshBody,
    answers={200: SignedInPage},
    refusals=(TokenInvalid, TokenExpired),
)
async def refresh_tokens(request: Request) -> Response:
    """Trade a refresh token for a new pair of tokens.

    A refresh token can be used once. One that comes back was copied, so the session it belongs to
    ends, and with it every token that came of it. To repeat a request whose answer was lost, send it with the
    same Idempotency-Key.
    """
    body = read(RefreshBody, await request.body())
    signed_in = await _accounts(request).refresh(body.refresh_token)
    return answer(200, signed_in_page(request, signed_in), NO_STORE)


@routes.post(
    "/auth/logout", answers={204: None}, refusals=(NotSignedIn, TokenInvalid, TokenExpired), takes_key=True
)
async def log_out(request: Request) -> Response:
    """Log out: the session of the access token ends, with its refresh token.

    Doing so again gives the same answer. Other processes notice within seconds.
    """
    await _accounts(request).log_out(request.headers.get("authorization"))
    return answer(204)


@routes.get("/me", answers={200: AccountPage}, role=Role.FAN)
async def get_account(request: Request) -> Response:
    """The account that is signed in."""
    account = await _accounts(request).account(get_caller(request).account_id)
    if account is None:
        raise TokenInvalid
    return answer(200, account_page(account), NO_STORE)


@routes.put("/me/locale", body=LocaleBody, answers={200: AccountPage}, role=Role.FAN)
async def set_locale(request: Request) -> Response:
    """Choose the language we write to you in."""
    body = read(LocaleBody, await request.body())
    account = await _accounts(request).set_locale(get_caller(request).account_id, body.locale)
    if account is None:
        raise TokenInvalid
    return answer(200, account_page(account), NO_STORE)


@routes.post(
    "/me/password",
    body=PasswordBody,
    answers={204: None},
    refusals=(WrongPassword, TooManyRequests, Busy),
    role=Role.FAN,
)
async def change_password(request: Request) -> Response:
    """Change the password. Every other session of the account ends, and the address gets a notice."""
    body = read(PasswordBody, await request.body())
    await get_app(request).people.change_password(
        get_caller(request),
        current=body.current_password,
        new=body.new_password,
        address=address(request),
    )
    return answer(204)


def _accounts(request: Request) -> Accounts:
    store: Accounts = get_app(request).accounts
    return store


def address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def device(request: Request) -> str:
    return request.headers.get("user-agent", "")


async def limit(request: Request, what: str, account: str = "") -> None:
    """TooManyRequests, or one less for this client, this account and the house."""
    limits = get_app(request).accounts.limits
    await limits.take(what, account=normal_email(account), address=address(request))


def account_page(account: Account) -> AccountPage:
    return AccountPage(
        account_id=account.account_id,
        email=account.email,
        name=account.name,
        role=account.role,
        created_at=account.created_at,
        locale=account.locale,
        email_verified=account.is_verified,
    )


def signed_in_page(request: Request, signed_in: SignedIn) -> SignedInPage:
    return SignedInPage(
        account=account_page(signed_in.account),
        access_token=signed_in.access_token,
        token_type="Bearer",
        expires_in=get_app(request).config.access_ttl_s,
        refresh_token=signed_in.refresh_token,
    )


ROUTES = routes.all
