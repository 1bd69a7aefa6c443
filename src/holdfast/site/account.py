"""Sign up, in and out. What a guest holds stays theirs on the way: accounts/sessions.py."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import (
    AccountBanned,
    BadCredentials,
    Email,
    Name,
    NewPassword,
    SecondFactorRequired,
    Session,
)
from holdfast.errors import Invalid, TooManyRequests
from holdfast.legal import TermsInForce
from holdfast.site.cookies import get_session, safe_path
from holdfast.site.i18n import Localiser
from holdfast.site.pages import (
    get_localiser,
    read_form,
    redirect,
    refuse_foreign_form,
    render_page,
    set_session_headers,
)
from holdfast.site.second_step import render_second_step
from holdfast.site.signed_in import HOME, client_address, client_device, is_valid, signed_in_redirect
from holdfast.web.responses import query
from holdfast.web.routing import RouteTable, get_app

Typed = Annotated[str, Meta(max_length=300)]
Path = Annotated[str, Meta(max_length=1000)]
routes = RouteTable(tag="site", bare=True)


class BackQuery(Struct):
    back: Path = HOME
    why: Annotated[str, Meta(max_length=20)] = ""  # private: a page that needs a sign-in led here


class SignInForm(Struct):
    email: Typed = ""
    password: Typed = ""
    back: Path = HOME


class SignUpForm(Struct):
    email: Typed = ""
    password: Typed = ""
    name: Typed = ""
    back: Path = HOME
    agreed: Typed = ""  # which terms were on the page: TermsInForce.mark


NEW_ACCOUNT_FIELDS = {"name": Name, "email": Email, "password": NewPassword}  # by the rules of the API


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form as its page shows it again: what was typed, and what is wrong with it."""

    email: str = ""
    name: str = ""
    back: str = HOME
    wrong: dict[str, str] = field(default_factory=dict)  # field → sentence
    is_led_here: bool = False  # by a page that needs a sign-in
    terms: TermsInForce = field(default_factory=TermsInForce)  # to agree to at a sign-up
    problem: str = ""  # of a second step or a passkey


@routes.get("/sign-in")
async def get_sign_in(request: Request) -> Response:
    """The page to sign in on."""
    session, came_from = await get_session(request), _back_query(request)
    shown = AccountForm(
        email=_known_email(session),
        back=safe_path(came_from.back, HOME),
        is_led_here=came_from.why == "private",
    )
    return _render_form(request, "sign_in", shown, session)


@routes.post("/sign-in")
async def post_sign_in(request: Request) -> Response:
    """Signs in and redirects to the page before."""
    data, session = await read_form(request, SignInForm), await get_session(request)
    shown = AccountForm(email=data.email, back=safe_path(data.back, HOME))
    try:
        cookie = await get_app(request).sessions.log_in(
            email=data.email,
            password=data.password,
            address=client_address(request),
            guest=session,
            device=client_device(request),
        )
    except SecondFactorRequired as refusal:
        return await render_second_step(request, refusal, shown.back)
    except BadCredentials:
        sentence = get_localiser(request).t("account.no_match")
        return _render_form(request, "sign_in", replace(shown, wrong={"password": sentence}), session, 401)
    except AccountBanned:
        sentence = get_localiser(request).t("problems.account_banned")
        return _render_form(request, "sign_in", replace(shown, wrong={"email": sentence}), session, 403)
    except TooManyRequests as refusal:
        minutes = int(str(refusal.details.get("retry_after_s", 0)).partition(".")[0]) // 60 + 1
        sentence = get_localiser(request).t("account.too_often", count=minutes)
        return _render_form(request, "sign_in", replace(shown, wrong={"password": sentence}), session, 429)
    return await signed_in_redirect(request, cookie, shown.back)


@routes.get("/sign-up")
async def get_sign_up(request: Request) -> Response:
    """The page to sign up on; a guest's name and address are there already."""
    session = await get_session(request)
    named = session is not None and session.is_guest and session.contact_email is not None
    name = session.account.name if session is not None and named else ""
    back = get_back(request)
    terms = await get_app(request).legal.terms_of_house()
    shown = AccountForm(email=_known_email(session), name=name, back=back, terms=terms)
    return _render_form(request, "sign_up", shown, session)


@routes.post("/sign-up")
async def post_sign_up(request: Request) -> Response:
    """Creates an account, or turns a guest into one, and redirects to the page before.

    The address gets a mail: to confirm it or, if it has an account, to say so. The page is the same.
    """
    data, session = await read_form(request, SignUpForm), await get_session(request)
    terms, l10n = await get_app(request).legal.terms_of_house(), get_localiser(request)
    shown = AccountForm(email=data.email, name=data.name, back=safe_path(data.back, HOME), terms=terms)
    if wrong := _find_wrong(l10n, data, terms):
        return _render_form(request, "sign_up", replace(shown, wrong=wrong), session, 422)
    try:
        await get_app(request).accounts.limits.take("sign-up", address=client_address(request))
    except TooManyRequests:
        wrong = {"password": l10n.t("problems.too_many_requests")}
        return _render_form(request, "sign_up", replace(shown, wrong=wrong), session, 429)
    cookie = await get_app(request).sessions.sign_up(
        email=data.email,
        password=data.password,
        name=data.name,
        locale=l10n.language,
        guest=session if session is not None and session.is_guest else None,
        device=client_device(request),
    )
    if (new := await get_app(request).sessions.load(cookie)) is not None:
        await get_app(request).legal.agree(new.account_id, terms)
        await get_app(request).people.request_confirmation(new.account_id, l10n.language)
    return await signed_in_redirect(request, cookie, shown.back)


def _find_wrong(l10n: Localiser, data: SignUpForm, terms: TermsInForce) -> dict[str, str]:
    wrong = {
        name: l10n.t(f"account.wrong_{name}")
        for name, kind in NEW_ACCOUNT_FIELDS.items()
        if not is_valid(getattr(data, name), kind)
    }
    return wrong if terms.is_agreed(data.agreed) else wrong | {"agreed": l10n.t("checkout.wrong_agreed")}


@routes.post("/sign-out")
async def post_sign_out(request: Request) -> Response:
    """Ends the session; its cookie is worth nothing from now on, wherever it was copied to."""
    refuse_foreign_form(request)
    if (session := await get_session(request)) is not None:
        await get_app(request).sessions.log_out(session)
    return signed_out_redirect(request, "/")


def signed_out_redirect(request: Request, path: str) -> Response:
    response = redirect(path, *set_session_headers(request, ""))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'  # also removes tickets stored on the device
    return response


def _render_form(
    request: Request, name: str, shown: AccountForm, session: Session | None, status: int = 200
) -> Response:
    providers = list(get_app(request).identities.client.providers.values())
    return render_page(
        request, f"account/{name}.html", status=status, shown=shown, session=session, providers=providers
    )


def get_back(request: Request) -> str:
    """The page to go to after signing in."""
    return safe_path(_back_query(request).back, HOME)


def _back_query(request: Request) -> BackQuery:
    try:
        return query(BackQuery, request)
    except Invalid:
        return BackQuery()


def _known_email(session: Session | None) -> str:
    return (session.contact_email or "") if session is not None and session.is_guest else ""


ROUTES = routes.all
