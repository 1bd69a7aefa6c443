"""Routes of refunds: buyers cancel bookings and follow their money, organisers give money back."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, field
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import (
    Booking,
    BookingPage,
    BookingState,
    HoldGone,
    NoSuchBooking,
    WrongMove,
    booking_page,
    from_public_id,
    public_id,
)
from holdfast.catalogue import NoSuchShow, ShowOnSale
from holdfast.errors import BadKey, Busy, Invalid, KeyReused
from holdfast.layouts import UnknownSeat
from holdfast.refunds.errors import (
    NoSuchRefund,
    NotRefundable,
    RefundChanged,
    RefundTooMuch,
    SeatsNotYours,
    SeatsUsed,
    TicketGiven,
)
from holdfast.refunds.every_pod import load_refunds, refund_cursor
from holdfast.refunds.proposal import ProposalPage, build_proposal_page, is_same_proposal
from holdfast.refunds.refund import (
    AttemptLine,
    Cancellation,
    NoteBody,
    Refund,
    RefundBody,
    RefundDecision,
    RefundGiven,
    RefundList,
    RefundPage,
    RefundQuery,
    RefundQuote,
    RefundRequest,
    Timeline,
    build_refund_given,
    build_refund_line,
    build_refund_page,
    is_same_request,
    parse_refund_id,
)
from holdfast.refunds.service import build_refusal
from holdfast.refunds.store import LATEST
from holdfast.web.audit_log import find_origin
from holdfast.web.caller import Right, Role
from holdfast.web.idempotency import checked_key
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_caller, get_scope

SEATS_MAX = 10
LOOK_AGAIN = {"Retry-After": "1", "Cache-Control": "no-store"}
NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="payments", role=Role.FAN)


class RefundSeatsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    """Names of seats, comma-separated or repeated; none: all of them."""

    seats: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=SEATS_MAX)] = field(
        default_factory=list
    )


class CancelQuery(RefundSeatsQuery, frozen=True):
    """`expected_refund_minor`: the amount of the quote that the buyer has agreed to."""

    expected_refund_minor: Annotated[int, Meta(ge=0, le=2**53)] | None = None


@routes.get(
    "/bookings/{booking}/refund",
    query=RefundSeatsQuery,
    answers={200: RefundQuote},
    refusals=(NoSuchBooking, WrongMove, SeatsNotYours, UnknownSeat),
)
async def get_refund_quote(request: Request) -> Response:
    """What would come back if these seats were given back now, and until when."""
    booking = await _own(request)
    if booking.state is not BookingState.CONFIRMED:
        raise WrongMove(state=booking.state, move="refund")
    seats = await _seats(request, booking, query(RefundSeatsQuery, request))
    if seats is not None and not set(seats) <= set(booking.seats):
        raise SeatsNotYours()
    return answer(200, await get_app(request).refunds.quote(booking, seats), NO_STORE)


@routes.delete(
    "/bookings/{booking}",
    tag="sale",
    query=CancelQuery,
    answers={200: BookingPage, 202: BookingPage},
    refusals=(
        NoSuchBooking,
        HoldGone,
        WrongMove,
        NotRefundable,
        RefundChanged,
        SeatsUsed,
        TicketGiven,
        SeatsNotYours,
        UnknownSeat,
        Busy,
    ),
)
async def cancel_booking(request: Request) -> Response:
    """Cancel a booking.

    A hold is released at once. A payment in progress is cancelled first: 202 until the gateway answers, 409
    when the money had been taken. Of a confirmed booking so much comes back as its terms promise
    (GET /bookings/{booking}/refund); with `seats` only those are given back. With `expected_refund_minor`
    it is refused (`refund_changed`) if the terms give another amount by now. Idempotent.
    """
    booking, wanted = await _own(request), query(CancelQuery, request)
    seats = await _seats(request, booking, wanted)
    after, is_under_way = await get_app(request).refunds.cancel(booking, seats, wanted.expected_refund_minor)
    page = await _booking_page(request, after)
    return answer(202, page, LOOK_AGAIN) if is_under_way else answer(200, page, NO_STORE)


@routes.get("/bookings/{booking}/payments", answers={200: Timeline}, refusals=(NoSuchBooking,))
async def list_payments(request: Request) -> Response:
    """Every attempt to pay for a booking, and every refund."""
    app, booking = get_app(request), await _own(request)
    key = (booking.show_id, booking.number)
    refunds = (await app.refund_store.refunds_of([key]))[key]
    labels = (await app.catalogue.show_on_sale(booking.show_id)).layout.labels
    attempts = [
        AttemptLine(
            attempt=row["attempt"],
            step=row["step"],
            amount=row["amount_minor"],
            currency=row["currency"],
            gateway=row["gateway"],
            reason=row["reason"],
            requested_at=row["requested_at"],
            ended_at=row["ended_at"],
            refunds=[build_refund_line(one, labels) for one in refunds if one.attempt == row["attempt"]],
        )
        for row in await app.refund_store.attempts_of(booking)
    ]
    return answer(200, Timeline(public_id(*key), attempts), NO_STORE)


async def _own(request: Request) -> Booking:
    show_id, number = from_public_id(request.path_params["booking"])
    booking: Booking = await get_app(request).bookings.load_owned(
        get_caller(request).account_id, show_id, number
    )
    return booking


async def _seats(request: Request, booking: Booking, named: RefundSeatsQuery) -> tuple[int, ...] | None:
    """By number; None: none are named."""
    if not named.seats:
        return None
    show: ShowOnSale = await get_app(request).catalogue.show_on_sale(booking.show_id)
    return parse_seats([name for text in named.seats for name in text.split(",")], show)


def parse_seats(names: Sequence[str], show: ShowOnSale) -> tuple[int, ...]:
    if unknown := [name for name in names if name not in show.layout.index_of]:
        raise UnknownSeat(seats=unknown)
    seats = tuple(sorted({show.layout.index_of[name] for name in names}))
    if len(seats) != len(names):
        raise Invalid(field="seats", detail="Expected each seat once.")
    return seats


async def _booking_page(request: Request, booking: Booking) -> BookingPage:
    app = get_app(request)
    show = await app.catalogue.show_on_sale(booking.show_id)
    (refunds,) = await app.refunds.shown_many([booking])
    return booking_page(booking, show, await app.catalogue.terms(show, booking.revision), refunds)


admin_routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.REFUND)


@admin_routes.post(
    "/admin/bookings/{booking}/refunds",
    body=RefundBody,
    answers={201: RefundGiven, 202: ProposalPage},
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
    not given back; money alone is possible. Above the amount that the organisation has set, nothing is
    changed yet (202): another person must approve it (POST /admin/refund-proposals/{proposal}/approve).
    """
    body = read(RefundBody, await request.body())
    key = request.state.headers.get(b"idempotency-key")
    if key is None:
        raise BadKey(detail="Send an Idempotency-Key: money goes back once for each.")
    booking, show = await _booking_of_mine(request)
    actor_id = get_caller(request).account_id
    refund_request = RefundRequest(
        booking=booking,
        why=f"admin:{actor_id}:{checked_key(key)}",
        what=body.what,
        seats=parse_seats(body.seats, show) if body.seats is not None else (),
        amount_minor=body.amount,
        note=body.reason,
        actor_id=actor_id,
        origin=find_origin(),
    )
    decision: RefundDecision = await get_app(request).refunds.decide(refund_request)
    if decision.outcome == "approval":
        assert decision.proposal_id is not None
        proposal = await get_app(request).refund_store.approvals.proposal(decision.proposal_id)
        if not is_same_proposal(proposal, refund_request):
            raise KeyReused()
        return answer(202, build_proposal_page(proposal, show.layout.labels), NO_STORE)
    if decision.outcome not in ("decided", "same"):
        raise build_refusal(decision, show)
    if (
        decision.outcome == "same"
        and decision.refund
        and not is_same_request(decision.refund, refund_request)
    ):
        raise KeyReused()
    return answer(201, build_refund_given(decision, show.layout.labels), NO_STORE)


@admin_routes.get("/admin/refunds", query=RefundQuery, answers={200: RefundList}, refusals=(NoSuchRefund,))
async def list_refunds(request: Request) -> Response:
    """Refunds of my shows, newest first; with `state=by_hand` those that a person must see to."""
    wanted = query(RefundQuery, request)
    app, before = get_app(request), LATEST
    if wanted.before:
        before = refund_cursor(await _refund_of_mine(request, wanted.before))
    found, away = await load_refunds(app, _organiser_id(request), wanted, before)
    pages = [await _refund_page(request, refund) for refund in found[: wanted.size]]
    last = pages[-1].refund_id if len(found) > wanted.size else None
    return answer(200, RefundList(pages, last, complete=not away, missing_pods=away), NO_STORE)


@admin_routes.post(
    "/admin/refunds/{refund}/done-by-hand",
    body=NoteBody,
    answers={200: RefundPage},
    refusals=(NoSuchRefund, WrongMove),
)
async def settle_refund(request: Request) -> Response:
    """Record that a refund was paid by hand, and how. The first note stays."""
    note = read(NoteBody, await request.body()).note
    refund = await _refund_of_mine(request, request.path_params["refund"])
    after = await get_app(request).refund_store.settle_by_hand(refund, note)
    if after.settled_note is None:
        raise WrongMove(state=after.state, move="pay by hand")
    return answer(200, await _refund_page(request, after), NO_STORE)


@admin_routes.post(
    "/admin/refunds/{refund}/retry", answers={200: RefundPage}, refusals=(NoSuchRefund, WrongMove)
)
async def retry_refund(request: Request) -> Response:
    """Request a refused refund from the gateway again, under a new key."""
    app = get_app(request)
    refund = await _refund_of_mine(request, request.path_params["refund"])
    retried = await app.refund_store.retry(refund)
    if retried is None:
        raise WrongMove(state=refund.state, move="retry")
    return answer(200, await _refund_page(request, await app.refunds.carry_out(retried)), NO_STORE)


@admin_routes.get(
    "/admin/shows/{show:int}/cancellation", answers={200: Cancellation}, refusals=(NoSuchShow, WrongMove)
)
async def get_show_cancellation(request: Request) -> Response:
    """Progress of the refunds of a cancelled show."""
    show_id = request.path_params["show"]
    show = await get_app(request).catalogue.organiser_show(show_id, _organiser_id(request))
    if not show.cancelled:
        raise WrongMove(state="on_sale", move="refund", detail="The show is not cancelled.")
    return answer(200, await get_app(request).refund_store.cancellation(show_id), NO_STORE)


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


async def _booking_of_mine(request: Request) -> tuple[Booking, ShowOnSale]:
    """A booking of the organiser's own show; for other organisers it does not exist."""
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
    show_id, *rest = parse_refund_id(refund_id)
    app = get_app(request).router.for_show(show_id)
    try:
        await app.catalogue.organiser_show(show_id, _organiser_id(request))
    except NoSuchShow:
        raise NoSuchRefund() from None
    refund: Refund | None = await app.refund_store.refund(show_id, *rest)
    if refund is None:
        raise NoSuchRefund()
    return refund


async def _refund_page(request: Request, refund: Refund) -> RefundPage:
    show = await get_app(request).catalogue.show_on_sale(refund.show_id)
    return build_refund_page(refund, show.layout.labels)


ROUTES = (*routes.all, *admin_routes.all)
