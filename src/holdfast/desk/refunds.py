"""/desk/{organisation}/refunds and /desk/house/refunds: refunds, and those that a person must pay."""

from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import WrongMove
from holdfast.catalogue import NoSuchShow
from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.frame import render_desk, say_refusal
from holdfast.errors import Invalid, Refusal
from holdfast.fields import ONE_LINE
from holdfast.refunds import (
    LATEST_REFUND,
    NoSuchRefund,
    ProposalPage,
    ProposalQuery,
    ProposalState,
    Refund,
    RefundPage,
    RefundProposal,
    RefundQuery,
    RefundState,
    build_proposal_page,
    build_refund_page,
    load_proposals,
    load_refunds,
    parse_refund_id,
)
from holdfast.site.pages import read_form, redirect
from holdfast.web.responses import query
from holdfast.web.routing import get_app, get_scope

SHOWN_MAX = 50
desk = DeskTable()
house = DeskTable(OF_HOUSE)


class RefundsPageQuery(Struct):
    state: Literal["", "by_hand"] = "by_hand"
    notice: str = ""


class PaidForm(Struct):
    note: Annotated[str, Meta(max_length=500, pattern=ONE_LINE)] = ""


@desk.get("/refunds", like="list_refunds")
@house.get("/refunds", like="list_accounts")
async def get_desk_refunds(request: Request) -> Response:
    """Refunds, newest first; at first those that a person must see to."""
    return await render_refunds(request)


@desk.post("/refunds/{refund}/paid", like="settle_refund")
@house.post("/refunds/{refund}/paid", like="list_accounts")
async def post_refund_paid(request: Request) -> Response:
    """Records how a person paid it."""
    data = await read_form(request, PaidForm)
    if not data.note:
        return await render_refunds(request, Invalid(field="note", detail=""))
    refund = await _load(request)
    after = await get_app(request).refund_store.settle_by_hand(refund, data.note)
    if after.settled_note is None:
        return await render_refunds(request, WrongMove(state=after.state, move="pay by hand"))
    return redirect(f"{get_desk(request).path}/refunds?notice=paid")


@desk.post("/refunds/{refund}/retry", like="retry_refund")
@house.post("/refunds/{refund}/retry", like="list_accounts")
async def post_refund_retry(request: Request) -> Response:
    """Requests it from the gateway again."""
    app, refund = get_app(request), await _load(request)
    retried = await app.refund_store.retry(refund)
    if retried is None:
        return await render_refunds(request, WrongMove(state=refund.state, move="retry"))
    await app.refunds.carry_out(retried)
    return redirect(f"{get_desk(request).path}/refunds?notice=retried")


async def render_refunds(request: Request, refusal: Refusal | None = None) -> Response:
    try:
        state = query(RefundsPageQuery, request).state
    except Invalid:
        state = "by_hand"
    here, app, organiser_id = get_desk(request), get_app(request), get_scope(request).organiser_id
    wanted = RefundQuery(state=RefundState.BY_HAND if state else None, size=SHOWN_MAX)
    found, away = await load_refunds(app, organiser_id, wanted, LATEST_REFUND)
    proposals: list[RefundProposal] = []
    if not here.organisation or here.may("list_refund_proposals"):
        pending = ProposalQuery(state=ProposalState.PENDING, size=SHOWN_MAX)
        proposals, _ = await load_proposals(app, organiser_id, pending)
    return render_desk(
        request,
        "refunds.html",
        "refunds",
        status=refusal.status if refusal else 200,
        refunds=[await _page(request, refund) for refund in found[:SHOWN_MAX]],
        missing_pods=away,
        proposals=[await _proposal_page(request, one) for one in proposals],
        by_hand=RefundState.BY_HAND,
        state=state,
        problem=say_refusal(request, refusal) if refusal else "",
        notices=("paid", "retried", "approved", "rejected"),
    )


async def _page(request: Request, refund: Refund) -> RefundPage:
    show = await get_app(request).catalogue.show_on_sale(refund.show_id)
    return build_refund_page(refund, show.layout.labels)


async def _proposal_page(request: Request, proposal: RefundProposal) -> ProposalPage:
    show = await get_app(request).catalogue.show_on_sale(proposal.show_id)
    return build_proposal_page(proposal, show.layout.labels)


async def _load(request: Request) -> Refund:
    """Of a show of the organisation; others do not exist for it."""
    show_id, *rest = parse_refund_id(request.path_params["refund"])
    app = get_app(request).router.for_show(show_id)
    try:
        await app.catalogue.organiser_show(show_id, get_scope(request).organiser_id)
    except NoSuchShow:
        raise NoSuchRefund from None
    refund: Refund | None = await app.refund_store.refund(show_id, *rest)
    if refund is None:
        raise NoSuchRefund
    return refund
