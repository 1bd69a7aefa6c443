"""The first steps on an empty installation: its first administrator, then the house.

    link printed on a terminal ──► /link/{token}   name, address, password of the first administrator
    holdfast account add --role admin ──► link ──► password
                                                    └──► /begin   the house, and its first organisation

Until the house is set up, visitors see a page that says so. /begin exists for administrators only, and only
until it was used.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, EmailTaken, Name, NewPassword, Session
from holdfast.errors import NoSuchRoute, Refusal
from holdfast.house import GATEWAYS, HouseBody, check_house, known_currencies, known_timezones
from holdfast.organisations import OrganisationName
from holdfast.site.cookies import get_session
from holdfast.site.invitation import SECRET_ADDRESS
from holdfast.site.pages import get_locale, get_localiser, read_form, redirect, render_page
from holdfast.site.signed_in import DESK, client_device, is_valid, signed_in_redirect
from holdfast.web.caller import Role
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

BEGIN = "/begin"
Typed = Annotated[str, Meta(max_length=300)]
# What a reader of this locale most likely sells in.
USUAL = {
    "en_GB": ("GBP", "Europe/London"),
    "en_US": ("USD", "America/New_York"),
    "en_IN": ("INR", "Asia/Kolkata"),
    "en_AU": ("AUD", "Australia/Sydney"),
    "en_CA": ("CAD", "America/Toronto"),
    "en_IE": ("EUR", "Europe/Dublin"),
    "de_DE": ("EUR", "Europe/Berlin"),
    "de_AT": ("EUR", "Europe/Vienna"),
    "de_CH": ("CHF", "Europe/Zurich"),
    "hi_IN": ("INR", "Asia/Kolkata"),
}
routes = RouteTable(tag="site", bare=True)


class HouseForm(Struct):
    name: Typed = ""
    organisation: Typed = ""
    currency: Typed = ""
    timezone: Typed = ""
    gateway: Typed = "sandbox"


@dataclass(frozen=True, slots=True)
class Shown:
    """A form as its page shows it again: what was typed, and what is wrong with it."""

    typed: dict[str, str]
    wrong: dict[str, str] = field(default_factory=dict)  # field → sentence


# ── the first administrator ───────────────────────────────────────────────────────────


def render_first_admin(request: Request, shown: Shown, session: Session | None) -> Response:
    return render_page(
        request,
        "account/first_admin.html",
        status=422 if shown.wrong else 200,
        headers=SECRET_ADDRESS,
        shown=shown,
        session=session,
    )


async def add_first_admin(request: Request, text: str, email: str, name: str, password: str) -> Response:
    app, session, l10n = get_app(request), await get_session(request), get_localiser(request)
    fields = {"name": (name, Name), "email": (email, Email), "password": (password, NewPassword)}
    wrong = {
        each: l10n.t(f"account.wrong_{each}")
        for each, (typed, kind) in fields.items()
        if not is_valid(typed, kind)
    }
    shown = Shown({"name": name, "email": email}, wrong)
    if wrong:
        return render_first_admin(request, shown, session)
    try:
        account_id = await app.first_admin.add(
            text, email=email, name=name, password=password, locale=l10n.language
        )
    except EmailTaken:
        taken = {"email": l10n.t("problems.email_taken")}
        return render_first_admin(request, Shown(shown.typed, taken), session)
    cookie = await app.sessions.open_account(account_id, session, client_device(request))
    return await signed_in_redirect(request, cookie, BEGIN)


async def first_page_of(app: "App", role: Role) -> str:
    """Where an account goes that has just chosen its password by a link."""
    return BEGIN if role is Role.ADMIN and not await app.house.is_begun() else "/my"


# ── the house ─────────────────────────────────────────────────────────────────────────


@routes.get(BEGIN)
async def get_begin(request: Request) -> Response:
    """The page to set up the house on."""
    session = await _require_founder(request)
    currency, timezone = USUAL.get(get_locale(request), ("EUR", "UTC"))
    gateway = get_app(request).config.gateway or "sandbox"
    shown = Shown({"currency": currency, "timezone": timezone, "gateway": gateway})
    return _render_begin(request, shown, session)


@routes.post(BEGIN)
async def post_begin(request: Request) -> Response:
    """Sets up the house and its first organisation."""
    data, session = await read_form(request, HouseForm), await _require_founder(request)
    wrong = _find_wrong(request, data)
    if wrong:
        return _render_begin(request, Shown(_typed(data), wrong), session)
    body = convert(_typed(data, but="organisation"), HouseBody)
    await get_app(request).house.begin(session.account_id, body, data.organisation)
    return redirect(DESK)


async def _require_founder(request: Request) -> Session:
    """NoSuchRoute for everyone else, and for all once the house is set up."""
    session = await get_session(request)
    if session is None or session.is_guest or session.role is not Role.ADMIN:
        raise NoSuchRoute
    if await get_app(request).house.is_begun():
        raise NoSuchRoute
    return session


def _find_wrong(request: Request, data: HouseForm) -> dict[str, str]:
    l10n = get_localiser(request)
    wrong = {}
    if not is_valid(data.name, Name):
        wrong["name"] = l10n.t("begin.wrong_name")
    if not is_valid(data.organisation, OrganisationName):
        wrong["organisation"] = l10n.t("begin.wrong_name")
    try:
        check_house(convert(_typed(data, but="organisation") | {"name": "x"}, HouseBody))
    except (ValidationError, Refusal):
        wrong["currency"] = l10n.t("begin.wrong_choice")
    return wrong


def _typed(data: HouseForm, but: str = "") -> dict[str, Any]:
    return {name: getattr(data, name) for name in HouseForm.__struct_fields__ if name != but}


def _render_begin(request: Request, shown: Shown, session: Session) -> Response:
    return render_page(
        request,
        "account/begin.html",
        status=422 if shown.wrong else 200,
        shown=shown,
        currencies=sorted(known_currencies()),
        timezones=known_timezones(),
        gateways=GATEWAYS,
        set_gateway=get_app(request).config.gateway,
        session=session,
    )


ROUTES = routes.all
