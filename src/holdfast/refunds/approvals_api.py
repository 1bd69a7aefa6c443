"""/admin/refund-proposals: refunds above an amount wait for a second person; and which amount that is."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import NoSuchBooking, WrongMove
from holdfast.errors import Busy
from holdfast.refunds.approvals import RefundApprovals
from holdfast.refunds.errors import (
    NoSuchProposal,
    OwnProposal,
    ProposalEnded,
    ProposalOutdated,
    RefundTooMuch,
    SeatsNotYours,
    SeatsUsed,
)
from holdfast.refunds.every_pod import find_proposal, load_proposals
from holdfast.refunds.proposal import (
    ProposalList,
    ProposalPage,
    ProposalQuery,
    RefundLimits,
    RefundProposal,
    RejectBody,
    build_proposal_page,
)
from holdfast.refunds.refund import RefundGiven, build_refund_given
from holdfast.web.audit_log import find_origin
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, follow_show, get_app, get_caller, get_scope

NO_STORE = {"Cache-Control": "no-store"}
PROPOSALS = "/admin/refund-proposals"
LIMITS = "/admin/refund-limits"
REFUND_REFUSALS = (NoSuchBooking, WrongMove, SeatsUsed, RefundTooMuch, SeatsNotYours, Busy)
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.REFUND)


@routes.get(PROPOSALS, query=ProposalQuery, answers={200: ProposalList})
async def list_refund_proposals(request: Request) -> Response:
    """Refunds that wait for a second person, newest first; and what became of earlier ones."""
    wanted = query(ProposalQuery, request)
    found, away = await load_proposals(get_app(request), _organiser_id(request), wanted)
    pages = [await _page(request, one) for one in found[: wanted.size]]
    last = pages[-1].proposal_id if len(found) > wanted.size else None
    return answer(200, ProposalList(pages, last, complete=not away, missing_pods=away), NO_STORE)


@routes.post(
    PROPOSALS + "/{proposal:int}/approve",
    answers={200: RefundGiven},
    refusals=(NoSuchProposal, OwnProposal, ProposalEnded, ProposalOutdated, *REFUND_REFUSALS),
    for_people=True,
)
async def approve_refund(request: Request) -> Response:
    """Approve a refund that another person proposed. The money goes back at once.

    Exactly the proposed amount: if the booking has changed since, nothing happens (`proposal_outdated`). Of
    two people who approve at the same time one gives the refund.
    """
    proposal = await _own(request)
    app, actor_id = get_app(request), get_caller(request).account_id
    decision = await app.refunds.approve(proposal, actor_id, find_origin())
    show = await app.catalogue.show_on_sale(proposal.show_id)
    return answer(200, build_refund_given(decision, show.layout.labels), NO_STORE)


@routes.post(
    PROPOSALS + "/{proposal:int}/reject",
    body=RejectBody,
    answers={200: ProposalPage},
    refusals=(NoSuchProposal, ProposalEnded),
)
async def reject_refund(request: Request) -> Response:
    """Reject a proposed refund, or withdraw your own proposal."""
    note = read(RejectBody, await request.body() or b"{}").note
    proposal = await _own(request)
    ended = await _approvals(request).end(proposal, get_caller(request).account_id, note)
    return answer(200, await _page(request, ended), NO_STORE)


@routes.get(LIMITS, answers={200: RefundLimits})
async def get_refund_limits(request: Request) -> Response:
    """Above which amounts a refund of yours needs a second person."""
    return answer(200, RefundLimits(await _approvals(request).limits(_organisation(request))), NO_STORE)


@routes.put(LIMITS, body=RefundLimits, answers={200: RefundLimits}, right=Right.SETTINGS, for_people=True)
async def set_refund_limits(request: Request) -> Response:
    """Set above which amounts a refund needs a second person, by currency.

    Compared with the sum of all refunds by staff for one booking, so that a large one cannot be split.
    """
    body = read(RefundLimits, await request.body())
    await _approvals(request).set_limits(_organisation(request), body.limits)
    return answer(200, RefundLimits(await _approvals(request).limits(_organisation(request))), NO_STORE)


def _approvals(request: Request) -> RefundApprovals:
    approvals: RefundApprovals = get_app(request).refund_store.approvals
    return approvals


async def _own(request: Request) -> RefundProposal:
    """The pod that has it answers the rest of the request."""
    number = request.path_params["proposal"]
    proposal = await find_proposal(get_app(request), number, _organiser_id(request))
    follow_show(request, proposal.show_id)
    return proposal


async def _page(request: Request, proposal: RefundProposal) -> ProposalPage:
    show = await get_app(request).catalogue.show_on_sale(proposal.show_id)
    return build_proposal_page(proposal, show.layout.labels)


def _organiser_id(request: Request) -> int | None:
    return get_scope(request).organiser_id


def _organisation(request: Request) -> int:
    return get_scope(request).owner_id


ROUTES = routes.all
