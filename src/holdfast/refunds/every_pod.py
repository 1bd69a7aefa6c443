"""Refunds and proposals of shows that are in several databases: answers of all pods are merged."""

from typing import TYPE_CHECKING

from holdfast.refunds.errors import NoSuchProposal
from holdfast.refunds.proposal import ProposalQuery, RefundProposal
from holdfast.refunds.refund import Refund, RefundQuery
from holdfast.refunds.store import RefundCursor
from holdfast.web.every_pod import ask_every_pod, drop_copies, find_in_pods

if TYPE_CHECKING:
    from holdfast.app import App


def refund_cursor(refund: Refund) -> RefundCursor:
    """Its place in the list."""
    return refund.requested_at, refund.show_id, refund.number, refund.attempt, refund.id


async def load_refunds(
    app: "App", organiser_id: int | None, wanted: RefundQuery, before: RefundCursor
) -> tuple[list[Refund], list[str]]:
    """Newest first, one more than wanted if there are more; and the pods that cannot be reached."""
    limit = wanted.size + 1
    if wanted.show is not None:
        store = app.router.for_show(wanted.show).refund_store
        return await store.refunds(organiser_id, wanted.state, wanted.show, before, limit), []
    answers = await ask_every_pod(
        app, lambda each: each.refund_store.refunds(organiser_id, wanted.state, None, before, limit)
    )
    found = drop_copies((one for refunds in answers.values for one in refunds), refund_cursor)
    return sorted(found, key=refund_cursor, reverse=True)[:limit], answers.away


async def load_proposals(
    app: "App", organiser_id: int | None, wanted: ProposalQuery
) -> tuple[list[RefundProposal], list[str]]:
    """By number, the highest first. Each pod has numbers of its own: its newer ones are higher."""
    answers = await ask_every_pod(
        app, lambda each: each.refund_store.approvals.proposals(organiser_id, wanted)
    )
    found = drop_copies((one for proposals in answers.values for one in proposals), lambda one: one.id)
    return sorted(found, key=lambda one: one.id, reverse=True)[: wanted.size + 1], answers.away


async def find_proposal(app: "App", proposal_id: int, organiser_id: int | None) -> RefundProposal:
    """In whichever pod it is; the caller goes on there (`follow_show`). Raises NoSuchProposal."""

    async def find(each: "App") -> RefundProposal | None:
        try:
            return await each.refund_store.approvals.proposal(proposal_id, organiser_id)
        except NoSuchProposal:
            return None

    found = await find_in_pods(app, find)
    if found is None:
        raise NoSuchProposal
    return found


async def count_waiting(app: "App") -> int:
    """Refunds that a person must pay, of every pod that can be reached."""
    answers = await ask_every_pod(app, lambda each: each.refund_store.waiting())
    return sum(by_hand for by_hand, _ in answers.values)
