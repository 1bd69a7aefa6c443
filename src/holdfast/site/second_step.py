"""The second step of a sign-in: a code, which works without scripts, or a passkey. Also: passkey alone."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import decode
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import BadPasskey, SecondFactorRequired, SignInExpired, WrongCode
from holdfast.errors import Refusal, TooManyRequests
from holdfast.site.cookies import get_session, safe_path
from holdfast.site.pages import get_localiser, read_form, render_page
from holdfast.site.signed_in import HOME, client_address, client_device, signed_in_redirect
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable, get_app

Typed = Annotated[str, Meta(max_length=300)]
Path = Annotated[str, Meta(max_length=1000)]
Credential = Annotated[str, Meta(max_length=20_000)]
NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="site", bare=True, prefix="/sign-in")


class SecondStepForm(Struct):
    token: Typed = ""
    code: Typed = ""
    back: Path = HOME
    methods: Typed = "totp recovery"  # what the account has, for the page that is shown again


class PasskeyOptionsForm(Struct):
    token: Typed = ""


class PasskeyForm(Struct):
    credential: Credential = ""
    back: Path = HOME


@routes.post("/second")
async def post_second_step(request: Request) -> Response:
    """Completes a sign-in with a code."""
    data, session, app = (
        await read_form(request, SecondStepForm),
        await get_session(request),
        get_app(request),
    )
    try:
        account, how = await app.second_factors.complete_sign_in(
            data.token, data.code, client_address(request)
        )
    except (WrongCode, TooManyRequests) as refusal:
        return await _render(request, data, refusal)
    except SignInExpired as refusal:
        return await render_sign_in(request, data.back, refusal)
    cookie = await app.sessions.open_account(account.account_id, session, client_device(request), how)
    return await signed_in_redirect(request, cookie, safe_path(data.back, HOME))


@routes.post("/passkey/options")
async def post_passkey_options(request: Request) -> Response:
    """For the script: what the browser's authenticator is to sign."""
    data, passkeys = await read_form(request, PasskeyOptionsForm), get_app(request).passkeys
    party = passkeys.party(str(request.base_url))
    options = await passkeys.begin_sign_in(party, data.token or None, client_address(request))
    return answer(200, options, NO_STORE)


@routes.post("/passkey")
async def post_passkey(request: Request) -> Response:
    """Signs in with what the authenticator has signed."""
    data, session, app = await read_form(request, PasskeyForm), await get_session(request), get_app(request)
    try:
        credential = parse_credential(data.credential)
        party = app.passkeys.party(str(request.base_url))
        account, how = await app.passkeys.sign_in(party, credential)
    except (BadPasskey, SignInExpired) as refusal:
        return await render_sign_in(request, data.back, refusal)
    cookie = await app.sessions.open_account(account.account_id, session, client_device(request), how)
    return await signed_in_redirect(request, cookie, safe_path(data.back, HOME))


def parse_credential(text: str) -> dict[str, object]:
    try:
        return decode(text, type=dict[str, object])
    except ValueError:
        raise BadPasskey from None


async def render_second_step(request: Request, refusal: SecondFactorRequired, back: str = HOME) -> Response:
    """The page that asks for it. `back` is where the sign-in leads."""
    methods = refusal.details.get("methods", [])
    assert isinstance(methods, list)
    form = SecondStepForm(str(refusal.details.get("token", "")), "", back, " ".join(methods))
    return await _render(request, form)


async def _render(request: Request, form: SecondStepForm, refusal: Refusal | None = None) -> Response:
    wrong = {"code": get_localiser(request).t(f"problems.{refusal.code}")} if refusal is not None else {}
    return render_page(
        request,
        "account/second_step.html",
        status=refusal.status if refusal is not None else 200,
        form=form,
        methods=form.methods.split(),
        shown={"wrong": wrong},
        session=await get_session(request),
    )


async def render_sign_in(request: Request, back: str, refusal: Refusal) -> Response:
    """The first page again, with what went wrong."""
    return render_page(
        request,
        "account/sign_in.html",
        status=refusal.status,
        shown={
            "email": "",
            "back": safe_path(back, HOME),
            "wrong": {},
            "is_led_here": False,
            "problem": get_localiser(request).t(f"problems.{refusal.code}"),
        },
        session=await get_session(request),
        providers=list(get_app(request).identities.client.providers.values()),
    )


ROUTES = routes.all
