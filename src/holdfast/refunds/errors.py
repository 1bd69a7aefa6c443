"""Refusals about refunds. No I/O.

Refusal
├── NotRefundable       409  the policy gives nothing back at this time; with the quote
├── RefundChanged       409  another amount than the caller expects; with the new quote
├── SeatsUsed           409  one of the tickets has been used at the entrance
├── TicketGiven         409  one of the tickets is another person's now
├── RefundTooMuch       409  more than is left of what was paid
├── SeatsNotYours       422  seats that the booking has not got
├── NoSuchRefund        404  no refund has this id; also for refunds of other organisers
├── NoSuchProposal      404  no refund waits under this id; also for those of other organisers
├── OwnProposal         403  another person must approve it
├── ProposalEnded       409  it was approved, rejected or withdrawn, or its time has passed
└── ProposalOutdated    409  the booking has changed since it was proposed
"""

from holdfast.errors import Refusal


class NotRefundable(Refusal):
    """By the terms these seats were bought on, nothing comes back at this time. `quote` has the terms.

    The booking stays as it is. The organiser may still give money back: ask them.
    """

    code, status, title = "not_refundable", 409, "No longer refundable"


class RefundChanged(Refusal):
    """These seats bring another amount than `expected_refund_minor`: `quote` has the present one.

    Nothing was refunded. Show the new amount to the buyer and send it as `expected_refund_minor`.
    """

    code, status, title = "refund_changed", 409, "The refund has changed"


class SeatsUsed(Refusal):
    """One of these tickets has been used at the entrance: `seats` says which.

    Seats that were used are not given back. The others of the booking can be, one by one; money alone can
    be given back by the organiser.
    """

    code, status, title = "seats_used", 409, "A ticket has been used"


class TicketGiven(Refusal):
    """One of these tickets was transferred to another person: `seats` says which.

    Ask them to give it back to you first, or give back the other seats.
    """

    code, status, title = "ticket_given", 409, "A ticket was transferred"


class RefundTooMuch(Refusal):
    """More than is left of what was paid, after what went back already: `left` is what can still go."""

    code, status, title = "refund_too_much", 409, "Refund exceeds the payment"


class SeatsNotYours(Refusal):
    """The booking has not got these seats, or not any more."""

    code, status, title = "seats_not_booked", 422, "Seats not in this booking"


class NoSuchRefund(Refusal):
    """No refund has this id, or its show is not one of yours."""

    code, status, title = "no_such_refund", 404, "No such refund"


class NoSuchProposal(Refusal):
    """No refund waits for approval under this id, or its show is not one of yours."""

    code, status, title = "no_such_proposal", 404, "No such proposal"


class OwnProposal(Refusal):
    """You proposed this refund yourself: another person must approve it. You can withdraw it."""

    code, status, title = "own_proposal", 403, "Another person must approve this"


class ProposalEnded(Refusal):
    """This proposal can no longer be decided: `state` says what became of it. Nothing was changed.

    If it expired, propose the refund again.
    """

    code, status, title = "proposal_ended", 409, "Already decided"


class ProposalOutdated(Refusal):
    """The booking, or what is left of its money, has changed since this refund was proposed.

    Nothing was refunded. Reject the proposal, look at the booking, and propose the refund again.
    """

    code, status, title = "proposal_outdated", 409, "The booking has changed"
