"""/admin: give money back, see what a person must see to, follow a cancelled show."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, BookingState, NoSuchBooking, WrongMove, from_public_id, public_id
from holdfast.catalogue import NoSuchShow, ShowOnSale
from holdfast.errors import BadKey, Busy, KeyReused
from holdfast.layouts import UnknownSeat
from holdfast.refunds.admin_form import (
    Given,
    NoteBody,
    RefundBody,
    RefundList,
    RefundPage,
    RefundsAsked,
    is_as_asked,
    refund_page,
)
from holdfast.refunds.api import seats_named
from holdfast.refunds.errors import NoSuchRefund, RefundTooMuch, SeatsNotYours, SeatsUsed
from holdfast.refunds.refund import Cancellation, Decision, Refund, RefundAsk, RefundState, refund_of_id
from holdfast.refunds.service import refusal_of
from holdfast.refunds.store import LATEST, Place
from holdfast.web.caller import Role
from holdfast.web.context import get_app, get_caller
from holdfast.web.idempotency import checked_key
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable

NOT_KEPT = {"Cache-Control": "no-store"}
routes = RouteTable(tag="admin", role=Role.ORGANISER)


@routes.post(
    "/admin/bookings/{booking}/refunds",
    body=RefundBody,
    answers={201: Given},
    refusals=(
        NoSuchBooking,
        WrongMove,
        SeatsUsed,
        RefundTooMuch,
        SeatsNotYours,
        UnknownSeat,
        BadKey,
        KeyReused,
        Busy,
    ),
    takes_key=True,
)
async def create_refund(request: Request) -> Response:
    """Give money back to the owner of a booking.

    The whole booking (`full`), some `seats` at their full price, or an `amount` without seats. The
    Idempotency-Key is required: it is the reason that has one refund, whatever is retried. A used ticket is
    not given back; money alone is possible.
    """
    body = read(RefundBody, await request.body())
    key = request.state.headers.get(b"idempotency-key")
    if key is None:
        raise BadKey(detail="Send an Idempotency-Key: money goes back once for each.")
    booking, show = await _booking_of_mine(request)
    actor_id = get_caller(request).account_id
    ask = RefundAsk(
        booking=booking,
        why=f"admin:{actor_id}:{checked_key(key)}",
        what=body.what,
        seats=seats_named(body.seats, show) if body.seats is not None else (),
        amount_minor=body.amount,
        note=body.reason,
        actor_id=actor_id,
    )
    decision: Decision = await get_app(request).refunds.decide(ask)
    if decision.outcome not in ("decided", "same"):
        raise refusal_of(decision, show)
    if decision.outcome == "same" and decision.refund and not is_as_asked(decision.refund, ask):
        raise KeyReused()
    assert decision.booking is not None
    labels = show.layout.labels
    given = Given(
        booking_id=public_id(booking.show_id, booking.number),
        state=decision.booking.state,
        seats=[labels[seat] for seat in decision.booking.seats]
        if decision.booking.state is BookingState.CONFIRMED
        else [],
        left=decision.left_minor or 0,
        refund=refund_page(decision.refund, labels) if decision.refund else None,
    )
    return answer(201, given, NOT_KEPT)


@routes.get("/admin/refunds", query=RefundsAsked, answers={200: RefundList}, refusals=(NoSuchRefund,))
async def list_refunds(request: Request) -> Response:
    """Refunds of my shows, newest first; with `state=by_hand` those that a person must see to."""
    asked = query(RefundsAsked, request)
    app, before = get_app(request), LATEST
    if asked.before:
        before = _place(await _refund_of_mine(request, asked.before))
    found = await app.refund_store.refunds(
        _organiser_id(request), asked.state, asked.show, before, asked.size + 1
    )
    pages = [await _page(request, refund) for refund in found[: asked.size]]
    more = len(found) > asked.size
    return answer(200, RefundList(pages, pages[-1].refund_id if more else None), NOT_KEPT)


@routes.post(
    "/admin/refunds/{refund}/done-by-hand",
    body=NoteBody,
    answers={200: RefundPage},
    refusals=(NoSuchRefund, WrongMove),
)
async def settle_refund(request: Request) -> Response:
    """A person has paid what the gateway would not: say how. Said twice, the first note stays."""
    note = read(NoteBody, await request.body()).note
    refund = await _refund_of_mine(request, request.path_params["refund"])
    after = await get_app(request).refund_store.settle(refund, RefundState.DONE, note=note)
    if after.settled_note is None:
        raise WrongMove(state=after.state, move="pay by hand")
    return answer(200, await _page(request, after), NOT_KEPT)


@routes.post("/admin/refunds/{refund}/retry", answers={200: RefundPage}, refusals=(NoSuchRefund, WrongMove))
async def retry_refund(request: Request) -> Response:
    """Ask the gateway once more for what it would not do, under a new key."""
    app = get_app(request)
    refund = await _refund_of_mine(request, request.path_params["refund"])
    anew = await app.refund_store.ask_anew(refund)
    if anew is None:
        raise WrongMove(state=refund.state, move="ask anew")
    return answer(200, await _page(request, await app.refunds.carry_out(anew)), NOT_KEPT)


@routes.get(
    "/admin/shows/{show:int}/cancellation", answers={200: Cancellation}, refusals=(NoSuchShow, WrongMove)
)
async def get_show_cancellation(request: Request) -> Response:
    """How far the refunds of a cancelled show are."""
    show_id = request.path_params["show"]
    show = await get_app(request).catalogue.organiser_show(show_id, _organiser_id(request))
    if not show.cancelled:
        raise WrongMove(state="on_sale", move="refund", detail="The show is not cancelled.")
    return answer(200, await get_app(request).refund_store.cancellation(show_id), NOT_KEPT)


def _organiser_id(request: Request) -> int | None:
    caller = get_caller(request)
    return None if caller.role is Role.ADMIN else caller.account_id


async def _booking_of_mine(request: Request) -> tuple[Booking, ShowOnSale]:
    """A booking of a show of one's own; to every other organiser there is no such booking."""
    show_id, number = from_public_id(request.path_params["booking"])
    app = get_app(request)
    try:
        show = await app.catalogue.organiser_show(show_id, _organiser_id(request))
    except NoSuchShow:
        raise NoSuchBooking() from None
    booking = await app.bookings.booking(show_id, number)
    if booking is None or booking.state is BookingState.BLOCKED:
        raise NoSuchBooking()
    return booking, show


async def _refund_of_mine(request: Request, refund_id: str) -> Refund:
    show_id, *rest = refund_of_id(refund_id)
    app = get_app(request)
    try:
        await app.catalogue.organiser_show(show_id, _organiser_id(request))
    except NoSuchShow:
        raise NoSuchRefund() from None
    refund: Refund | None = await app.refund_store.refund(show_id, *rest)
    if refund is None:
        raise NoSuchRefund()
    return refund


def _place(refund: Refund) -> Place:
    return refund.asked_at, refund.show_id, refund.number, refund.attempt, refund.id


async def _page(request: Request, refund: Refund) -> RefundPage:
    show = await get_app(request).catalogue.show_on_sale(refund.show_id)
    return refund_page(refund, show.layout.labels)


ROUTES = routes.all
