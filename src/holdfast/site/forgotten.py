"""Forgotten password, and sign-in by a mailed link: one field, and the same answer for every address."""

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Email, normal_email
from holdfast.errors import TooManyRequests
from holdfast.site.account import AccountForm
from holdfast.site.cookies import get_session
from holdfast.site.pages import get_localiser, read_form, render_page
from holdfast.site.signed_in import client_address, is_valid
from holdfast.web.routing import RouteTable, get_app

Typed = Annotated[str, Meta(max_length=300)]
routes = RouteTable(tag="site", bare=True)


class AddressForm(Struct):
    email: Typed = ""


@routes.get("/forgot-password")
async def get_forgot_password(request: Request) -> Response:
    """The page to request a new password on."""
    return await _render(request, "reset", AccountForm())


@routes.post("/forgot-password")
async def post_forgot_password(request: Request) -> Response:
    """Mails a link, if the address has an account; the page is the same if not."""
    data = await read_form(request, AddressForm)
    if (wrong := _wrong(request, data)) is not None:
        return await _render(request, "reset", wrong, 422)
    if (late := await _limited(request, data)) is not None:
        return await _render(request, "reset", late, 429)
    await get_app(request).people.request_reset(data.email, get_localiser(request).language)
    return await _render(request, "reset", AccountForm(email=data.email), is_sent=True)


@routes.get("/sign-in-link")
async def get_sign_in_link(request: Request) -> Response:
    """The page to request a sign-in link on."""
    return await _render(request, "link", AccountForm())


@routes.post("/sign-in-link")
async def post_sign_in_link(request: Request) -> Response:
    """Mails a link that signs in."""
    data = await read_form(request, AddressForm)
    if (wrong := _wrong(request, data)) is not None:
        return await _render(request, "link", wrong, 422)
    if (late := await _limited(request, data)) is not None:
        return await _render(request, "link", late, 429)
    await get_app(request).people.request_sign_in(data.email, get_localiser(request).language)
    return await _render(request, "link", AccountForm(email=data.email), is_sent=True)


def _wrong(request: Request, data: AddressForm) -> AccountForm | None:
    if is_valid(data.email, Email):
        return None
    return AccountForm(email=data.email, wrong={"email": get_localiser(request).t("account.wrong_email")})


async def _limited(request: Request, data: AddressForm) -> AccountForm | None:
    """Too many requests for mails by this client, to this address or of the house."""
    limits = get_app(request).accounts.limits
    try:
        await limits.take("reset", account=normal_email(data.email), address=client_address(request))
    except TooManyRequests:
        sentence = get_localiser(request).t("problems.too_many_requests")
        return AccountForm(email=data.email, wrong={"email": sentence})
    return None


async def _render(
    request: Request, what: str, shown: AccountForm, status: int = 200, *, is_sent: bool = False
) -> Response:
    return render_page(
        request,
        "account/by_mail.html",
        status=status,
        what=what,
        shown=shown,
        is_sent=is_sent,
        session=await get_session(request),
    )


ROUTES = routes.all
