"""/shows/{show}/waitlist: join the waitlist of a full show, place and chance, leave, decline an offer."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.bookings import Booking
from holdfast.errors import Invalid, Refusal
from holdfast.site.booking_page import booking_path, handle_form
from holdfast.site.cookies import get_session
from holdfast.site.errors import SignInFirst
from holdfast.site.pages import EmptyForm, get_localiser, read_form, redirect, render_page, require_session
from holdfast.waitlist import LIVE, SEATS_MAX, AddressNotConfirmed, JoinBody, SeatsAvailable
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.catalogue import ShowOnSale

routes = RouteTable(tag="site", bare=True)
PATH = "/shows/{show:int}/waitlist"
REFRESH_S = 10
NO_OWNER = 0  # owner of no entry: a visitor who is not signed in


class WaitlistForm(Struct):
    seats: Annotated[int, Meta(ge=1, le=SEATS_MAX)] = 2
    categories: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=20)] = []
    price_minor_max: Annotated[str, Meta(max_length=12)] = ""
    together: bool = False
    until: Annotated[str, Meta(max_length=10)] = ""


@dataclass(frozen=True, slots=True)
class FormState:
    """The form as its page shows it again, and what is wrong."""

    typed: WaitlistForm = field(default_factory=lambda: WaitlistForm(together=True))
    problem: str = ""
    status: int = 200
    has_seats: bool = False  # on sale now
    is_wrong_until: bool = False


@routes.get(PATH)
async def get_waitlist_page(request: Request) -> Response:
    """My place on the waitlist, or how to join it."""
    return await _render(request, FormState())


@routes.post(PATH)
async def post_waitlist(request: Request) -> Response:
    """Joins, with a confirmed account: an offer is mailed and waits a few minutes only."""
    data, app, show_id = await read_form(request, WaitlistForm), get_app(request), _show_id(request)
    session = await require_session(request)
    if session.is_guest:
        raise SignInFirst(back=f"/shows/{show_id}/waitlist")
    try:
        if not session.account.is_verified:
            raise AddressNotConfirmed
        zone = (await app.catalogue.show_detail(show_id))["timezone"]
        owner_id, wish = session.account_id, _parse_wish(data, zone)
        position = await app.waiting_rooms.drained_position(show_id, owner_id)
        await app.waitlists.join(show_id, owner_id, wish, position)
    except Refusal as refusal:
        return await _render(request, _describe(request, data, refusal))
    return redirect(f"/shows/{show_id}/waitlist")


@routes.post(PATH + "/leave")
async def post_leave_waitlist(request: Request) -> Response:
    """Leaves; an open offer is declined."""
    await read_form(request, EmptyForm)
    session, show_id = await require_session(request), _show_id(request)
    try:
        await get_app(request).waitlists.leave(show_id, session.account_id)
    except Refusal as refusal:
        return await _render(request, _describe(request, WaitlistForm(), refusal))
    return redirect(f"/shows/{show_id}/waitlist")


@routes.post("/bookings/{booking}/decline")
async def post_decline(request: Request) -> Response:
    """Declines an offer: its seats go to the next party."""
    await read_form(request, EmptyForm)

    async def act(_: Session, booking: Booking) -> str:
        await get_app(request).waitlists.decline(booking)
        return f"/shows/{booking.show_id}/waitlist"

    return await handle_form(request, act)


@routes.post("/bookings/{booking}/sell-back")
async def post_sell_back(request: Request) -> Response:
    """Offers all tickets of a booking to the waitlist at the price that was paid."""
    await read_form(request, EmptyForm)

    async def act(_: Session, booking: Booking) -> str:
        app = get_app(request)
        await app.waitlists.returns.put(booking, None, await app.catalogue.show_on_sale(booking.show_id))
        return booking_path(booking, "sell_back")

    return await handle_form(request, act)


@routes.post("/bookings/{booking}/keep")
async def post_keep(request: Request) -> Response:
    """Keeps tickets that are offered to the waitlist and not sold yet."""
    await read_form(request, EmptyForm)

    async def act(_: Session, booking: Booking) -> str:
        await get_app(request).waitlists.returns.withdraw(booking)
        return booking_path(booking, "sell_back_ended")

    return await handle_form(request, act)


def _parse_wish(data: WaitlistForm, zone: str) -> JoinBody:
    price = data.price_minor_max
    if price and not (price.isascii() and price.isdigit()):
        raise Invalid(field="price_minor_max", detail="Expected an amount.")
    return JoinBody(
        seats=data.seats,
        categories=data.categories,
        price_minor_max=int(price) if price else None,
        together=data.together or data.seats == 1,
        until=_end_of_day(data.until, zone) if data.until else None,
    )


def _end_of_day(text: str, zone: str) -> datetime:
    """Where the show is."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid(field="until", detail="Expected a day.") from None
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(zone))


def _describe(request: Request, data: WaitlistForm, refusal: Refusal) -> FormState:
    l10n, details = get_localiser(request), refusal.details
    if isinstance(refusal, SeatsAvailable):
        seats: Any = details["seats"]
        text = l10n.t("waitlist.available", seats=", ".join(seats))
        return FormState(data, text, refusal.status, has_seats=True)
    if isinstance(refusal, Invalid) and details.get("field") == "until":
        return FormState(data, l10n.t("waitlist.wrong_until"), refusal.status, is_wrong_until=True)
    name = f"problems.{refusal.code}"
    text = l10n.t(name) if l10n.has(name) else str(details.get("detail") or refusal.title)
    return FormState(data, text, refusal.status)


async def _render(request: Request, form: FormState) -> Response:
    app, show_id, session = get_app(request), _show_id(request), await get_session(request)
    row = await app.catalogue.show_detail(show_id)
    show = await app.catalogue.public_show(show_id)
    owner_id = session.account_id if session is not None else NO_OWNER
    page = await app.waitlists.page(show_id, owner_id)
    return render_page(
        request,
        "waitlist/waitlist.html",
        status=form.status,
        row=row,
        zone=row["timezone"],
        here=f"/shows/{show_id}/waitlist",
        page=page,
        is_live=page.entry is not None and page.entry.state in LIVE,
        refresh_s=REFRESH_S if page.entry is not None and page.entry.state in LIVE else 0,
        show=show,
        session=session,
        queue_place=await app.waiting_rooms.drained_position(show_id, owner_id) is not None,
        problem=form.problem,
        has_seats=form.has_seats,
        is_wrong_until=form.is_wrong_until,
        typed=form.typed,
        **_form_context(show, row["timezone"]),
    )


def _form_context(show: "ShowOnSale", zone: str) -> dict[str, Any]:
    """What can be chosen."""
    names = [category.name for category in show.layout.categories]
    return {
        "most": min(SEATS_MAX, show.order_seats_max, show.owner_seats_max),
        "categories": list(zip(names, show.prices, strict=True)),
        "prices": sorted({amount for amount in show.prices if amount}),
        "today": datetime.now(ZoneInfo(zone)).date().isoformat(),
        "last_day": show.closes_at.astimezone(ZoneInfo(zone)).date().isoformat(),
    }


def _show_id(request: Request) -> int:
    return int(request.path_params["show"])


ROUTES = routes.all
