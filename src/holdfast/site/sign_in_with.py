"""/sign-in/with/…: to a sign-in service and back. /account/connect/…: make one a way to sign in.

To a service leads a link, not a form: browsers apply our form policy to every redirect that a form leads to,
and services redirect to addresses of their own. Connecting begins with a form of our own page: otherwise
another site could connect its owner's identity to the account that is signed in here.
"""

import hmac
import secrets
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import FirstStep, SecondFactorRequired
from holdfast.errors import Invalid
from holdfast.oidc import Attempt, ProviderClaims, SignInNotFinished
from holdfast.site.account import get_back
from holdfast.site.cookies import get_session
from holdfast.site.my_account import PAGE, require_account
from holdfast.site.pages import (
    EmptyForm,
    get_attempt_cookie,
    get_localiser,
    read_form,
    redirect,
    render_page,
    set_attempt_header,
)
from holdfast.site.second_step import render_second_step
from holdfast.site.signed_in import client_address, client_device, signed_in_redirect
from holdfast.web.responses import query, site_of
from holdfast.web.routing import RouteTable, get_app

SECRET_BYTES = 32
Sent = Annotated[str, Meta(max_length=4000)]
routes = RouteTable(tag="site", bare=True)


class CallbackQuery(Struct):
    code: Sent = ""
    state: Sent = ""
    error: Sent = ""
    iss: Sent = ""


class DisconnectForm(Struct):
    issuer: Sent
    subject: Sent


@routes.get("/sign-in/with/{provider}")
async def get_sign_in_with(request: Request) -> Response:
    """Leads to a sign-in service."""
    attempt = Attempt(_new_secret(), _provider_id(request), get_back(request))
    url = await _authorization_url(request, attempt)
    return redirect(url, set_attempt_header(request, attempt.cookie))


@routes.post("/account/connect/{provider}")
async def post_connect(request: Request) -> Response:
    """Leads to a sign-in service that is to be connected to the account."""
    await read_form(request, EmptyForm)
    session = await require_account(request)
    attempt = Attempt(_new_secret(), _provider_id(request), PAGE, session.account_id)
    url = await _authorization_url(request, attempt)
    provider = get_app(request).identities.client.provider(attempt.provider)
    response = render_page(request, "account/leaving.html", provider=provider, url=url, session=session)
    response.raw_headers.append((b"set-cookie", set_attempt_header(request, attempt.cookie).encode()))
    return response


@routes.post("/account/disconnect")
async def post_disconnect(request: Request) -> Response:
    """A sign-in service is no longer a way to sign in."""
    data, session = await read_form(request, DisconnectForm), await require_account(request)
    await get_app(request).identities.unlink(session.account_id, data.issuer, data.subject)
    return redirect(f"{PAGE}?notice=disconnected")


@routes.get("/sign-in/with/{provider}/callback")
async def get_callback(request: Request) -> Response:
    """Where a sign-in service sends the browser back to."""
    app, attempt, sent = get_app(request), _attempt(request), _sent(request)
    provider = app.identities.client.provider(attempt.provider)
    is_ours = hmac.compare_digest(sent.state.encode(), attempt.state.encode())
    if not is_ours or sent.iss not in ("", provider.issuer):
        raise SignInNotFinished
    if sent.error == "access_denied":  # they chose not to
        return redirect(PAGE if attempt.account_id else "/sign-in", set_attempt_header(request, ""))
    if sent.error or not sent.code:
        raise SignInNotFinished
    tries = await app.accounts.limits.take("login", address=client_address(request))
    claims = await app.identities.client.finish(attempt, sent.code, _callback(request, provider.id))
    await app.accounts.limits.give_back(tries)
    if attempt.account_id:
        return await _connect(request, attempt, claims)
    return await _sign_in(request, attempt, claims)


async def _connect(request: Request, attempt: Attempt, claims: ProviderClaims) -> Response:
    """Only in a session of the account that began it."""
    session = await require_account(request)
    if session.account_id != attempt.account_id:
        raise SignInNotFinished
    await get_app(request).identities.link(claims, session.account_id)
    return redirect(f"{PAGE}?notice=connected", set_attempt_header(request, ""))


async def _sign_in(request: Request, attempt: Attempt, claims: ProviderClaims) -> Response:
    app, session = get_app(request), await get_session(request)
    account = await app.identities.sign_in(claims, get_localiser(request).language)
    if account is None:
        provider = app.identities.client.provider(attempt.provider)
        return render_page(
            request,
            "account/service_known.html",
            status=409,
            provider=provider,
            email=claims.proved_email,
            session=session,
        )
    device = client_device(request)
    try:
        cookie = await app.sessions.open_account(account.account_id, session, device, FirstStep.SERVICE)
        response = await signed_in_redirect(request, cookie, attempt.back)
    except SecondFactorRequired as refusal:
        response = await render_second_step(request, refusal, attempt.back)
    response.raw_headers.append((b"set-cookie", set_attempt_header(request, "").encode()))
    return response


def _attempt(request: Request) -> Attempt:
    """That this browser began; SignInNotFinished without one."""
    attempt = Attempt.from_cookie(get_attempt_cookie(request))
    if attempt is None or attempt.provider != _provider_id(request):
        raise SignInNotFinished
    return attempt


def _sent(request: Request) -> CallbackQuery:
    try:
        return query(CallbackQuery, request)
    except Invalid:
        raise SignInNotFinished from None


async def _authorization_url(request: Request, attempt: Attempt) -> str:
    callback = _callback(request, attempt.provider)
    language = get_localiser(request).language
    return await get_app(request).identities.client.authorization_url(attempt, callback, language)


def _callback(request: Request, provider_id: str) -> str:
    return f"{site_of(request)}/sign-in/with/{provider_id}/callback"


def _provider_id(request: Request) -> str:
    return str(request.path_params["provider"])


def _new_secret() -> str:
    return secrets.token_urlsafe(SECRET_BYTES)


ROUTES = routes.all
