"""Sign up, in and out. What a guest holds stays theirs on the way: people/visits."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import BadCredentials, Email, EmailTaken, Name, NewPassword, Session
from holdfast.errors import Invalid, TooManyRequests
from holdfast.site.browser import SESSION, safe_path
from holdfast.site.pages import (
    dropped_cookie,
    form,
    get_localiser,
    kept_cookie,
    page,
    refuse_foreign,
    see,
    visit_of,
)
from holdfast.web.context import get_app
from holdfast.web.responses import invalid, query
from holdfast.web.routing import RouteTable

HOME = "/my"
Typed = Annotated[str, Meta(max_length=300)]
Path = Annotated[str, Meta(max_length=1000)]
routes = RouteTable(tag="site", bare=True)


class Asked(Struct):
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


class NewPerson(Struct):
    """What an account is made of, by the rules of the API."""

    email: Email
    password: NewPassword
    name: Name


@dataclass(frozen=True, slots=True)
class Shown:
    """A form as its page shows it again: what was typed, and what is wrong with it."""

    email: str = ""
    name: str = ""
    back: str = HOME
    wrong: dict[str, str] = field(default_factory=dict)  # field → sentence


@routes.get("/sign-in")
async def get_sign_in(request: Request) -> Response:
    """The page to sign in on."""
    visit = await visit_of(request)
    return _page(request, "sign_in", Shown(email=_known_email(visit), back=_back(request)), visit)


@routes.post("/sign-in")
async def post_sign_in(request: Request) -> Response:
    """Signs in, and goes back to where somebody was."""
    asked, visit = await form(request, SignInForm), await visit_of(request)
    shown = Shown(email=asked.email, back=safe_path(asked.back, HOME))
    try:
        cookie = await get_app(request).sessions.log_in(
            email=asked.email, password=asked.password, address=_address(request), guest=visit
        )
    except BadCredentials:
        sentence = get_localiser(request).t("account.no_match")
        return _page(request, "sign_in", replace(shown, wrong={"password": sentence}), visit, 401)
    except TooManyRequests as refusal:
        minutes = int(str(refusal.details.get("retry_after_s", 0)).partition(".")[0]) // 60 + 1
        sentence = get_localiser(request).t("account.too_often", count=minutes)
        return _page(request, "sign_in", replace(shown, wrong={"password": sentence}), visit, 429)
    return see(shown.back, kept_cookie(request, SESSION, cookie))


@routes.get("/sign-up")
async def get_sign_up(request: Request) -> Response:
    """The page to sign up on; a guest's name and address are there already."""
    visit = await visit_of(request)
    named = visit is not None and visit.is_guest and visit.contact_email is not None
    name = visit.account.name if visit is not None and named else ""
    return _page(request, "sign_up", Shown(email=_known_email(visit), name=name, back=_back(request)), visit)


@routes.post("/sign-up")
async def post_sign_up(request: Request) -> Response:
    """Makes an account, or makes one of a guest, and goes back to where somebody was."""
    asked, visit = await form(request, SignUpForm), await visit_of(request)
    shown = Shown(email=asked.email, name=asked.name, back=safe_path(asked.back, HOME))
    l10n = get_localiser(request)
    try:
        person = msgspec.convert({f: getattr(asked, f) for f in NewPerson.__struct_fields__}, NewPerson)
    except msgspec.ValidationError as error:
        which = str(invalid(error).details["field"])
        sentence = l10n.t(f"account.wrong_{which}")
        return _page(request, "sign_up", replace(shown, wrong={which: sentence}), visit, 422)
    try:
        cookie = await get_app(request).sessions.sign_up(
            email=person.email,
            password=person.password,
            name=person.name,
            locale=l10n.language,
            guest=visit if visit is not None and visit.is_guest else None,
        )
    except EmailTaken:
        wrong = {"email": l10n.t("account.email_taken")}
        return _page(request, "sign_up", replace(shown, wrong=wrong), visit, 409)
    return see(shown.back, kept_cookie(request, SESSION, cookie))


@routes.post("/sign-out")
async def post_sign_out(request: Request) -> Response:
    """Ends the session; its cookie is worth nothing from now on, wherever it was copied to."""
    refuse_foreign(request)
    if (visit := await visit_of(request)) is not None:
        await get_app(request).sessions.log_out(visit)
    response = see("/", dropped_cookie(request, SESSION))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'  # tickets kept on this device too
    return response


def _page(request: Request, name: str, shown: Shown, visit: Session | None, status: int = 200) -> Response:
    return page(request, f"account/{name}.html", status=status, shown=shown, visit=visit)


def _back(request: Request) -> str:
    try:
        return safe_path(query(Asked, request).back, HOME)
    except Invalid:
        return HOME


def _known_email(visit: Session | None) -> str:
    return (visit.contact_email or "") if visit is not None and visit.is_guest else ""


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


ROUTES = routes.all
