"""/desk/{organisation}/bookings/{booking}/refund: a member gives tickets back for their buyer.

    booking ─ ticks ─► /refund?seats=…   the chosen tickets, the amount and the button
    POST /refund                         refunds, if the button's amount is still right; else the page again

The form carries a key of its own: pressed twice, it refunds once.
"""

import secrets
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, BookingState, NoSuchBooking, WrongMove, from_public_id
from holdfast.desk.access import DeskTable, get_desk
from holdfast.desk.bookings import list_refundable, load_dossier
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Refusal
from holdfast.refunds import RefundChanged, RefundDecision, RefundRequest, RefundScope, build_refusal
from holdfast.site.pages import read_form, redirect
from holdfast.web.audit_log import find_origin
from holdfast.web.responses import query
from holdfast.web.routing import get_app, get_caller

SEATS_MAX = 200
PATH = "/bookings/{booking}/refund"
Labels = Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=SEATS_MAX)]
desk = DeskTable()


class DeskRefundQuery(Struct):
    seats: Labels = msgspec.field(default_factory=list)


class DeskRefundForm(Struct):
    key: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{20,40}$(?!\n)")]
    amount: Annotated[int, Meta(ge=0, le=2**53)]  # that the button names
    seats: Labels = msgspec.field(default_factory=list)
    reason: Annotated[str, Meta(max_length=500)] = ""


@desk.get(PATH, like="create_refund")
async def get_refund_review(request: Request) -> Response:
    """The chosen tickets and what goes back for them."""
    return await _render(request, query(DeskRefundQuery, request).seats)


@desk.post(PATH, like="create_refund")
async def post_desk_refund(request: Request) -> Response:
    """Refunds the tickets for the amount on the button."""
    data = await read_form(request, DeskRefundForm)
    booking, seats = await _load(request, data.seats)
    try:
        decision = await _decide(request, booking, seats, data)
    except Refusal as refusal:
        return await _render(request, data.seats, say_refusal(request, refusal), data.reason)
    is_done = decision.refund is None or decision.refund.state == "done"
    notice = "refunded" if is_done else "refund_waits"
    if decision.outcome == "approval":
        notice = "refund_proposed"
    return redirect(f"{get_desk(request).path}/bookings/{request.path_params['booking']}?notice={notice}")


async def _decide(
    request: Request, booking: Booking, seats: tuple[int, ...], data: DeskRefundForm
) -> RefundDecision:
    app, actor_id = get_app(request), get_caller(request).account_id
    # Seats that have left the booking: the form was sent twice, and the ledger knows what became of them.
    if set(seats) <= set(booking.seats):
        quote = await app.refunds.quote_in_full(booking, seats)
        if data.amount != quote.amount:
            raise RefundChanged
    is_whole = set(seats) == set(booking.seats)
    refund_request = RefundRequest(
        booking=booking,
        why=f"admin:{actor_id}:{data.key}",
        what=RefundScope.WHOLE if is_whole else RefundScope.SEATS,
        seats=seats,
        amount_minor=data.amount,
        is_exact=True,
        note=data.reason or "Refunded at the desk.",
        actor_id=actor_id,
        origin=find_origin(),
    )
    decision: RefundDecision = await app.refunds.decide(refund_request)
    if decision.outcome not in ("decided", "same", "approval"):
        raise build_refusal(decision, await app.catalogue.show_on_sale(booking.show_id))
    return decision


async def _load(request: Request, labels: list[str]) -> tuple[Booking, tuple[int, ...]]:
    """The booking, which is of this organisation, and the seats by number."""
    dossier = await load_dossier(request)
    app, show_id = get_app(request), dossier.booking.show_id
    index_of = (await app.catalogue.show_on_sale(show_id)).layout.index_of
    booking = await app.bookings.booking(*from_public_id(dossier.booking.booking_id))
    if booking is None:
        raise NoSuchBooking
    known = [index_of[label] for label in labels if label in index_of]
    return booking, tuple(sorted(set(known)))


async def _render(request: Request, labels: list[str], problem: str = "", reason: str = "") -> Response:
    """With a new key: after a refusal the next press is another refund."""
    dossier = await load_dossier(request)
    if dossier.booking.state is not BookingState.CONFIRMED:
        raise WrongMove(state=dossier.booking.state, move="refund")
    chosen = [label for label in list_refundable(dossier) if label in labels]
    if not chosen:
        return redirect(f"{get_desk(request).path}/bookings/{dossier.booking.booking_id}")
    booking, seats = await _load(request, chosen)
    app = get_app(request)
    return render_desk(
        request,
        "refund.html",
        "bookings",
        status=409 if problem else 200,
        booking=dossier.booking,
        timezone=(await app.catalogue.show_detail(booking.show_id))["timezone"],
        prices=dict(zip(dossier.booking.seats, booking.prices_minor, strict=True)),
        quote=await app.refunds.quote_in_full(booking, seats),
        key=secrets.token_urlsafe(18),
        problem=problem,
        reason=reason,
    )
