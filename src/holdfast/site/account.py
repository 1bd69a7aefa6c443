"""Sign up, in and out. What a guest holds stays theirs on the way: people/sessions."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import BadCredentials, Email, EmailTaken, Name, NewPassword, Session
from holdfast.errors import Invalid, TooManyRequests
from holdfast.site.cookies import get_session, safe_path
from holdfast.site.pages import (
    get_localiser,
    read_form,
    redirect,
    refuse_foreign_form,
    render_page,
    set_session_headers,
)
from holdfast.web.responses import invalid, query
from holdfast.web.routing import RouteTable, get_app

HOME = "/my"
Typed = Annotated[str, Meta(max_length=300)]
Path = Annotated[str, Meta(max_length=1000)]
routes = RouteTable(tag="site", bare=True)


class BackQuery(Struct):
    back: Path = HOME


class SignInForm(Struct):
    email: Typed = ""
    password: Typed = ""
    back: Path = HOME


class SignUpForm(Struct):
    email: Typed = ""
    password: Typed = ""
    name: Typed = ""
    back: Path = HOME


class NewAccountFields(Struct):
    """What an account is made of, by the rules of the API."""

    email: Email
    password: NewPassword
    name: Name


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form as its page shows it again: what was typed, and what is wrong with it."""

    email: str = ""
    name: str = ""
    back: str = HOME
    wrong: dict[str, str] = field(default_factory=dict)  # field → sentence


@routes.get("/sign-in")
async def get_sign_in(request: Request) -> Response:
    """The page to sign in on."""
    session = await get_session(request)
    return _render_form(
        request, "sign_in", AccountForm(email=_known_email(session), back=_back(request)), session
    )


@routes.post("/sign-in")
async def post_sign_in(request: Request) -> Response:
    """Signs in and redirects to the page before."""
    data, session = await read_form(request, SignInForm), await get_session(request)
    shown = AccountForm(email=data.email, back=safe_path(data.back, HOME))
    try:
        cookie = await get_app(request).sessions.log_in(
            email=data.email, password=data.password, address=_address(request), guest=session
        )
    except BadCredentials:
        sentence = get_localiser(request).t("account.no_match")
        return _render_form(request, "sign_in", replace(shown, wrong={"password": sentence}), session, 401)
    except TooManyRequests as refusal:
        minutes = int(str(refusal.details.get("retry_after_s", 0)).partition(".")[0]) // 60 + 1
        sentence = get_localiser(request).t("account.too_often", count=minutes)
        return _render_form(request, "sign_in", replace(shown, wrong={"password": sentence}), session, 429)
    return redirect(shown.back, *set_session_headers(request, cookie))


@routes.get("/sign-up")
async def get_sign_up(request: Request) -> Response:
    """The page to sign up on; a guest's name and address are there already."""
    session = await get_session(request)
    named = session is not None and session.is_guest and session.contact_email is not None
    name = session.account.name if session is not None and named else ""
    return _render_form(
        request, "sign_up", AccountForm(email=_known_email(session), name=name, back=_back(request)), session
    )


@routes.post("/sign-up")
async def post_sign_up(request: Request) -> Response:
    """Creates an account, or turns a guest into one, and redirects to the page before."""
    data, session = await read_form(request, SignUpForm), await get_session(request)
    shown = AccountForm(email=data.email, name=data.name, back=safe_path(data.back, HOME))
    l10n = get_localiser(request)
    try:
        person = msgspec.convert(
            {f: getattr(data, f) for f in NewAccountFields.__struct_fields__}, NewAccountFields
        )
    except msgspec.ValidationError as error:
        which = str(invalid(error).details["field"])
        sentence = l10n.t(f"account.wrong_{which}")
        return _render_form(request, "sign_up", replace(shown, wrong={which: sentence}), session, 422)
    try:
        cookie = await get_app(request).sessions.sign_up(
            email=person.email,
            password=person.password,
            name=person.name,
            locale=l10n.language,
            guest=session if session is not None and session.is_guest else None,
        )
    except EmailTaken:
        wrong = {"email": l10n.t("account.email_taken")}
        return _render_form(request, "sign_up", replace(shown, wrong=wrong), session, 409)
    return redirect(shown.back, *set_session_headers(request, cookie))


@routes.post("/sign-out")
async def post_sign_out(request: Request) -> Response:
    """Ends the session; its cookie is worth nothing from now on, wherever it was copied to."""
    refuse_foreign_form(request)
    if (session := await get_session(request)) is not None:
        await get_app(request).sessions.log_out(session)
    response = redirect("/", *set_session_headers(request, ""))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'  # also removes tickets stored on the device
    return response


def _render_form(
    request: Request, name: str, shown: AccountForm, session: Session | None, status: int = 200
) -> Response:
    return render_page(request, f"account/{name}.html", status=status, shown=shown, session=session)


def _back(request: Request) -> str:
    try:
        return safe_path(query(BackQuery, request).back, HOME)
    except Invalid:
        return HOME


def _known_email(session: Session | None) -> str:
    return (session.contact_email or "") if session is not None and session.is_guest else ""


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


ROUTES = routes.all
