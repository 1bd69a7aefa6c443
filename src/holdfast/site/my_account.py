"""/account: name, address, password, sessions, my data, deleting the account."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import (
    Email,
    Name,
    NewPassword,
    NoSuchSession,
    Session,
    StaffAccount,
    WrongPassword,
    normal_email,
)
from holdfast.errors import Invalid, TooManyRequests
from holdfast.organisations import LastOwner
from holdfast.site.account import signed_out_redirect
from holdfast.site.devices import describe_device
from holdfast.site.errors import SignInFirst
from holdfast.site.pages import (
    PRIVATE_HEADERS,
    EmptyForm,
    get_localiser,
    read_form,
    redirect,
    render_page,
    require_session,
    set_session_headers,
)
from holdfast.site.signed_in import client_address, is_valid, works_here
from holdfast.web.caller import Caller
from holdfast.web.responses import query
from holdfast.web.routing import RouteTable, get_app

Typed = Annotated[str, Meta(max_length=300)]
PAGE = "/account"
NOTICES = {"name", "password", "email", "confirmed", "confirmation", "session", "sessions", "connected"}
NOTICES |= {"disconnected"}
routes = RouteTable(tag="site", bare=True, prefix=PAGE)


class AccountNoticeQuery(Struct):
    notice: str = ""


class NameForm(Struct):
    name: Typed = ""


class PasswordForm(Struct):
    current_password: Typed = ""
    new_password: Typed = ""


class EmailForm(Struct):
    email: Typed = ""
    current_password: Typed = ""


class SessionForm(Struct):
    session: Annotated[int, Meta(ge=1, le=2**62)]


class DeleteForm(Struct):
    current_password: Typed = ""


@routes.get("")
async def get_account_page(request: Request) -> Response:
    """My account."""
    return await _render(request, await require_account(request), {})


@routes.post("/name")
async def post_name(request: Request) -> Response:
    """Changes the name."""
    data, session = await read_form(request, NameForm), await require_account(request)
    if not is_valid(data.name, Name):
        return await _render(request, session, {"name": "account.wrong_name"})
    await get_app(request).people.rename(session.account_id, data.name)
    headers = set_session_headers(request, "", data.name)[-1:]
    return redirect(f"{PAGE}?notice=name", *headers)


@routes.post("/password")
async def post_password(request: Request) -> Response:
    """Changes the password; every other session ends."""
    data, session = await read_form(request, PasswordForm), await require_account(request)
    if not is_valid(data.new_password, NewPassword):
        return await _render(request, session, {"new_password": "account.wrong_password"})

    async def act() -> None:
        await get_app(request).people.change_password(
            _caller(session),
            current=data.current_password,
            new=data.new_password,
            address=client_address(request),
        )

    return await _checked(request, session, "password", "current_password", act)


@routes.post("/email")
async def post_email(request: Request) -> Response:
    """Mails a link to the new address."""
    data, session = await read_form(request, EmailForm), await require_account(request)
    if not is_valid(data.email, Email):
        return await _render(request, session, {"email": "account.wrong_email"})

    async def act() -> None:
        limits = get_app(request).accounts.limits
        await limits.take("reset", account=normal_email(data.email), address=client_address(request))
        await get_app(request).people.request_change(
            _caller(session),
            email=data.email,
            password=data.current_password,
            address=client_address(request),
            locale=get_localiser(request).language,
        )

    return await _checked(request, session, "email", "email_password", act)


@routes.post("/confirmation")
async def post_confirmation(request: Request) -> Response:
    """Mails the link that confirms the address again."""
    await read_form(request, EmptyForm)
    session = await require_account(request)
    limits, account = get_app(request).accounts.limits, f"account {session.account_id}"
    await limits.take("reset", account=account, address=client_address(request))
    await get_app(request).people.request_confirmation(session.account_id, get_localiser(request).language)
    return redirect(f"{PAGE}?notice=confirmation")


@routes.post("/end-session")
async def post_end_session(request: Request) -> Response:
    """Signs out one device."""
    data, session = await read_form(request, SessionForm), await require_account(request)
    try:
        await get_app(request).people.end_session(session.account_id, data.session)
    except NoSuchSession:  # it has ended meanwhile: that is what was wanted
        return redirect(f"{PAGE}?notice=session")
    if data.session == session.session_id:
        return signed_out_redirect(request, "/")
    return redirect(f"{PAGE}?notice=session")


@routes.post("/end-sessions")
async def post_end_sessions(request: Request) -> Response:
    """Signs out everywhere else."""
    await read_form(request, EmptyForm)
    session = await require_account(request)
    await get_app(request).people.end_sessions(session.account_id, session.session_id)
    return redirect(f"{PAGE}?notice=sessions")


@routes.get("/data.json")
async def get_data(request: Request) -> Response:
    """Everything that is stored about me."""
    session = await require_account(request)
    data = await get_app(request).personal_data.load(session.account_id)
    headers = {**PRIVATE_HEADERS, "Content-Disposition": 'attachment; filename="my-data.json"'}
    return Response(encode(data), 200, headers, "application/json")


@routes.post("/delete")
async def post_delete(request: Request) -> Response:
    """Deletes the account; its sessions end."""
    data, session = await read_form(request, DeleteForm), await require_account(request)
    app = get_app(request)
    try:
        await app.accounts.check_password(session.account_id, data.current_password, client_address(request))
        await app.erasure.erase(session.account_id)
    except (WrongPassword, StaffAccount, LastOwner, TooManyRequests) as refusal:
        return await _render(request, session, {"delete_password": f"problems.{refusal.code}"})
    response = render_page(request, "account/deleted.html")
    for header in set_session_headers(request, ""):
        response.raw_headers.append((b"set-cookie", header.encode("latin-1")))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


async def require_account(request: Request) -> Session:
    """The session of an account; guests sign in first."""
    session = await require_session(request)
    if session.is_guest:
        raise SignInFirst(back=PAGE)
    return session


async def _checked(
    request: Request, session: Session, notice: str, field: str, act: Callable[[], Awaitable[None]]
) -> Response:
    """Does it, unless the current password is wrong; that is shown beside its field."""
    try:
        await act()
    except WrongPassword:
        return await _render(request, session, {field: "problems.wrong_password"})
    except TooManyRequests:
        return await _render(request, session, {field: "problems.too_many_requests"}, 429)
    return redirect(f"{PAGE}?notice={notice}")


async def _render(request: Request, session: Session, wrong: dict[str, str], status: int = 422) -> Response:
    app, l10n = get_app(request), get_localiser(request)
    found = await app.people.sessions(session.account_id, session.session_id)
    providers = app.identities.client.providers.values()
    names = {one.issuer: one.name for one in providers}
    linked = await app.identities.list(session.account_id)
    services, connected = (
        [(one, names.get(one.issuer, one.issuer)) for one in linked],
        {one.issuer for one in linked},
    )
    return render_page(
        request,
        "account/account.html",
        status=status if wrong else 200,
        session=session,
        has_password=await app.people.has_password(session.account_id),
        services=services,
        providers=[one for one in providers if one.issuer not in connected],
        factors=await app.second_factors.status(session.account_id),
        sessions=[(one, describe_device(one.device)) for one in found],
        notice=_notice(request),
        works_here=await works_here(request, session),
        wrong={name: l10n.t(text) for name, text in wrong.items()},
    )


def _notice(request: Request) -> str:
    try:
        name = query(AccountNoticeQuery, request).notice
    except Invalid:
        return ""
    return name if name in NOTICES else ""


def _caller(session: Session) -> Caller:
    return Caller(session.account_id, session.role, session.session_id)


ROUTES = routes.all
