"""/account/security: authenticator app, passkeys and recovery codes."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import PasskeyName, Session
from holdfast.errors import Refusal
from holdfast.site.my_account import require_account
from holdfast.site.pages import get_localiser, read_form, redirect, render_page
from holdfast.site.second_step import NO_STORE, Credential, parse_credential
from holdfast.site.signed_in import client_address, is_valid
from holdfast.tickets import svg_url
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app

Typed = Annotated[str, Meta(max_length=300)]
PAGE = "/account/security"
NOTICES = {"needed", "totp_removed", "passkey_added", "passkey_removed"}
SECRET_GROUP = 4  # letters of a secret that are typed by hand
routes = RouteTable(tag="site", bare=True, prefix=PAGE)


class SecurityNoticeQuery(Struct):
    notice: Typed = ""


class ProveAgainForm(Struct):
    current_password: Typed = ""
    code: Typed = ""


class CodeForm(Struct):
    code: Typed = ""


class AddPasskeyForm(Struct):
    name: Typed = ""
    current_password: Typed = ""
    code: Typed = ""
    credential: Credential = ""


class RemovePasskeyForm(Struct):
    passkey: Annotated[int, Meta(ge=1, le=2**62)]
    current_password: Typed = ""
    code: Typed = ""


@routes.get("")
async def get_security(request: Request) -> Response:
    """The second factors of my account."""
    return await _render(request, await require_account(request), {})


@routes.post("/totp")
async def post_totp(request: Request) -> Response:
    """Begins to set up an authenticator app."""
    data, session = await read_form(request, ProveAgainForm), await require_account(request)

    async def act() -> Response:
        await _prove(request, session, data)
        await get_app(request).second_factors.begin_totp(session.account_id)
        return redirect(f"{PAGE}/totp")

    return await _checked(request, session, "totp", act)


@routes.get("/totp")
async def get_totp(request: Request) -> Response:
    """The QR code, while an app is being set up."""
    return await _render_totp(request, await require_account(request), {})


@routes.post("/totp/confirm")
async def post_confirm_totp(request: Request) -> Response:
    """The first code of the app; shows the recovery codes."""
    data, session = await read_form(request, CodeForm), await require_account(request)
    try:
        codes = await get_app(request).second_factors.confirm_totp(
            session.account_id, data.code, client_address(request), session.session_id
        )
    except Refusal as refusal:
        return await _render_totp(request, session, {"code": _sentence(request, refusal)}, refusal.status)
    return _render_codes(request, session, codes)


@routes.post("/totp/remove")
async def post_remove_totp(request: Request) -> Response:
    """Removes the app."""
    data, session = await read_form(request, ProveAgainForm), await require_account(request)

    async def act() -> Response:
        await _prove(request, session, data)
        await get_app(request).second_factors.remove_totp(session.account_id)
        return redirect(f"{PAGE}?notice=totp_removed")

    return await _checked(request, session, "totp", act)


@routes.post("/recovery-codes")
async def post_recovery_codes(request: Request) -> Response:
    """Shows ten new codes; the old ones end."""
    data, session = await read_form(request, ProveAgainForm), await require_account(request)

    async def act() -> Response:
        await _prove(request, session, data)
        codes = await get_app(request).second_factors.renew_codes(session.account_id)
        return _render_codes(request, session, codes)

    return await _checked(request, session, "codes", act)


@routes.post("/passkeys/options")
async def post_new_passkey_options(request: Request) -> Response:
    """For the script: what the browser's authenticator is to make."""
    data, session = await read_form(request, ProveAgainForm), await require_account(request)
    await _prove(request, session, data)
    passkeys = get_app(request).passkeys
    options = await passkeys.begin_adding(passkeys.party(str(request.base_url)), session.account_id)
    return answer(200, options, NO_STORE)


@routes.post("/passkeys")
async def post_passkey(request: Request) -> Response:
    """Adds what the authenticator has made. The first one shows recovery codes."""
    data, session = await read_form(request, AddPasskeyForm), await require_account(request)
    if not is_valid(data.name, PasskeyName):
        return await _render(request, session, {"name": get_localiser(request).t("security.wrong_name")})

    async def act() -> Response:
        passkeys = get_app(request).passkeys
        if not data.credential:  # without scripts, or the proof was wrong: that is shown
            await _prove(request, session, ProveAgainForm(data.current_password, data.code))
        _, codes = await passkeys.add(
            passkeys.party(str(request.base_url)),
            session.account_id,
            session.session_id,
            name=data.name,
            credential=parse_credential(data.credential),
        )
        if codes:
            return _render_codes(request, session, codes)
        return redirect(f"{PAGE}?notice=passkey_added")

    return await _checked(request, session, "passkey", act)


@routes.post("/passkeys/remove")
async def post_remove_passkey(request: Request) -> Response:
    """Removes a passkey."""
    data, session = await read_form(request, RemovePasskeyForm), await require_account(request)

    async def act() -> Response:
        await _prove(request, session, ProveAgainForm(data.current_password, data.code))
        await get_app(request).passkeys.remove(session.account_id, data.passkey)
        return redirect(f"{PAGE}?notice=passkey_removed")

    return await _checked(request, session, f"passkey{data.passkey}", act)


async def _prove(request: Request, session: Session, data: ProveAgainForm) -> None:
    await get_app(request).second_factors.prove_again(
        session.account_id,
        password=data.current_password,
        code=data.code,
        address=client_address(request),
    )


async def _checked(
    request: Request, session: Session, field: str, act: Callable[[], Awaitable[Response]]
) -> Response:
    """Does it; a refusal stands beside the form that it is about."""
    try:
        return await act()
    except Refusal as refusal:
        wrong = {field: _sentence(request, refusal)}
        return await _render(request, session, wrong, refusal.status)


def _sentence(request: Request, refusal: Refusal) -> str:
    l10n = get_localiser(request)
    known = f"problems.{refusal.code}"
    return l10n.t(known) if l10n.has(known) else l10n.t("problems.bad_passkey")


async def _render(request: Request, session: Session, wrong: dict[str, str], status: int = 422) -> Response:
    app, notice = get_app(request), query(SecurityNoticeQuery, request).notice
    return render_page(
        request,
        "account/security.html",
        status=status if wrong else 200,
        session=session,
        has_password=await app.people.has_password(session.account_id),
        factors=await app.second_factors.status(session.account_id),
        notice=notice if notice in NOTICES else "",
        wrong=wrong,
    )


async def _render_totp(
    request: Request, session: Session, wrong: dict[str, str], status: int = 200
) -> Response:
    pending = await get_app(request).second_factors.pending_totp(session.account_id)
    if pending is None:
        return redirect(PAGE)
    secret, uri = pending
    grouped = " ".join(secret[at : at + SECRET_GROUP] for at in range(0, len(secret), SECRET_GROUP))
    shown = {"wrong": wrong}
    return render_page(
        request,
        "account/totp.html",
        status=status,
        session=session,
        qr=svg_url(uri),
        uri=uri,
        secret=grouped,
        shown=shown,
    )


def _render_codes(request: Request, session: Session, codes: list[str]) -> Response:
    """Shown once: the ledger has their hashes."""
    return render_page(request, "account/recovery_codes.html", session=session, codes=codes)


ROUTES = routes.all
