"""Refunds that need a second person, in the ledger: limits, proposals, and what a decision does with them.

A refund above the limit becomes a proposal in the transaction that would have decided it, under the same
locks: two small refunds at once cannot pass the limit together. Approving decides it in one transaction with
the mark `approved`, so that of two people who approve at once one gives the refund and the other is refused.
"""

from collections.abc import Mapping, Sequence

from holdfast.bookings import public_id, reference
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.refunds.decision import RefundCase, RefundVerdict
from holdfast.refunds.errors import NoSuchProposal, ProposalEnded
from holdfast.refunds.proposal import ProposalQuery, RefundLimit, RefundProposal, build_proposal
from holdfast.refunds.refund import RefundRequest
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.refunds", "approvals")

BookingKey = tuple[int, int]  # show_id, number


async def load_limits(
    tx: Transaction, requests: Sequence[RefundRequest], cases: Mapping[BookingKey, RefundCase]
) -> None:
    """Tell the cases of staff requests their limits. A batch without such requests costs no statement."""
    shows = sorted({request.show_id for request in requests if request.origin is not None})
    if not shows:
        return
    limits = {
        (row["show_id"], row["currency"]): row["amount_minor"] for row in await tx.fetch(Q.limits, shows)
    }
    for request in requests:
        case = cases.get((request.show_id, request.booking.number))
        if case is not None:
            case.approval_above_minor = limits.get((request.show_id, request.booking.currency))


async def lock_proposals(tx: Transaction, requests: Sequence[RefundRequest]) -> set[int]:
    """The proposals that these requests may approve now. Not those of the approver themselves."""
    wanted = {request.proposal_id: request for request in requests if request.proposal_id is not None}
    if not wanted:
        return set()
    rows = await tx.fetch(Q.lock, sorted(wanted))
    return {row["id"] for row in rows if row["proposed_by"] != wanted[row["id"]].approver_id}


async def settle_proposals(
    tx: Transaction, decided: Sequence[tuple[RefundRequest, RefundVerdict]], hours: int
) -> tuple[dict[int, int], list[AuditEntry]]:
    """Write new proposals and mark approved ones: (place → proposal, entries for the audit log)."""
    proposals: dict[int, int] = {}
    entries: list[AuditEntry] = []
    for place, (request, verdict) in enumerate(decided):
        if verdict.outcome == "approval":
            new = await _propose(tx, request, verdict, hours)
            booking = request.booking
            proposals[place] = new or await tx.fetchval(
                Q.proposal_of_reason, booking.show_id, booking.number, request.why
            )
            entries += [_entry("refund.proposed", request, verdict.amount_minor)] if new else []
        elif verdict.outcome == "decided" and request.proposal_id is not None:
            await tx.execute(Q.approve, request.proposal_id, request.approver_id)
    return proposals, entries


async def _propose(tx: Transaction, request: RefundRequest, verdict: RefundVerdict, hours: int) -> int | None:
    booking = request.booking
    new: int | None = await tx.fetchval(
        Q.propose,
        booking.show_id,
        booking.number,
        request.why,
        request.what,
        list(request.seats),
        verdict.amount_minor,
        booking.currency,
        request.note,
        request.actor_id,
        hours,
    )
    return new


class RefundApprovals:
    """Proposals and limits, as the API lists and changes them."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def proposals(self, organiser_id: int | None, wanted: ProposalQuery) -> list[RefundProposal]:
        """Newest first; one more than wanted, if there are more."""
        async with self._postgres.fresh_plans() as tx:
            rows = await tx.fetch(
                Q.proposals, organiser_id, None, wanted.state, wanted.before, wanted.size + 1
            )
        return [build_proposal(row) for row in rows]

    async def proposal(self, proposal_id: int, organiser_id: int | None = None) -> RefundProposal:
        row = await self._postgres.fetchrow(Q.proposals, organiser_id, proposal_id, None, 2**63 - 1, 1)
        if row is None:
            raise NoSuchProposal
        return build_proposal(row)

    async def end(self, proposal: RefundProposal, actor_id: int, note: str) -> RefundProposal:
        """Reject it, or withdraw one's own."""
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.end, proposal.id, actor_id, note) is None:
                raise ProposalEnded(state=(await self.proposal(proposal.id)).state)
            is_own = proposal.proposed_by == actor_id
            entry = AuditEntry(
                action="refund.withdrawn" if is_own else "refund.rejected",
                subject=("booking", public_id(proposal.show_id, proposal.number)),
                name=reference(proposal.show_id, proposal.number),
                show_id=proposal.show_id,
                after={"proposal": proposal.id, "amount_minor": proposal.amount_minor, "note": note},
            )
            await record(tx, entry)
        return await self.proposal(proposal.id)

    async def limits(self, organiser_id: int) -> list[RefundLimit]:
        rows = await self._postgres.fetch(Q.organiser_limits, organiser_id)
        return [RefundLimit(row["currency"], row["amount_minor"]) for row in rows]

    async def set_limits(self, organiser_id: int, limits: Sequence[RefundLimit]) -> None:
        async with self._postgres.transaction() as tx:
            before = {
                row["currency"]: row["amount_minor"] for row in await tx.fetch(Q.lock_limits, organiser_id)
            }
            after = {limit.currency: limit.amount for limit in limits}
            await tx.execute(Q.drop_limits, organiser_id)
            await tx.execute(Q.put_limits, organiser_id, list(after), list(after.values()))
            if before != after:
                subject = ("refund_limit", organiser_id)
                entry = AuditEntry(
                    action="refund_limit.changed",
                    subject=subject,
                    organiser_id=organiser_id,
                    before=before,
                    after=after,
                )
                await record(tx, entry)


def _entry(action: str, request: RefundRequest, amount_minor: int) -> AuditEntry:
    booking = request.booking
    return AuditEntry(
        action=action,
        subject=("booking", public_id(booking.show_id, booking.number)),
        name=reference(booking.show_id, booking.number),
        show_id=booking.show_id,
        after={"amount_minor": amount_minor, "currency": booking.currency, "reason": request.note},
        person_id=booking.owner_id,
        origin=request.origin,
    )
