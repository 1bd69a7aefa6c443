"""Refusals about tickets. No I/O.

Refusal
├── NoSuchTicket        404  also for tickets of other owners, which stay secret
├── BadCode             422  not a valid code, or one that was changed
├── NoTickets           409  the booking is not confirmed, so there are none yet
├── TicketUsed          409  it was used at the door
├── TicketVoid          410  it was given back
├── TransferMax         409  it has changed hands as often as it may
├── TransferTooLate     409  the show is over
├── NothingToTakeBack   409  it was not given away, or has arrived
├── ToYourself          422  it is yours already
├── FixedCode           409  the codes of this show do not change: no phone is needed
└── ResendMax           429  sent as often as we do in an hour
"""

from holdfast.errors import Refusal


class NoSuchTicket(Refusal):
    """There is no such ticket of yours.

    Look at `GET /tickets` for those that are.
    """

    code, status, title = "no_such_ticket", 404, "No such ticket"


class BadCode(Refusal):
    """This is not the code of one of our tickets, or it was changed.

    Scan it again, larger and in better light. If it stays, the ticket was not sold by this box office.
    """

    code, status, title = "bad_code", 422, "Not one of our tickets"


class NoTickets(Refusal):
    """The booking has no tickets: it is not confirmed, or everything was given back.

    `state` says how it stands. Pay for what is held; tickets are there at once.
    """

    code, status, title = "no_tickets", 409, "No tickets yet"


class TicketUsed(Refusal):
    """This ticket was used at the door, so it cannot be transferred any more."""

    code, status, title = "ticket_used", 409, "Already used"


class TicketVoid(Refusal):
    """The ticket was given back and is worth nothing."""

    code, status, title = "ticket_void", 410, "Ticket no longer valid"


class TransferMax(Refusal):
    """The ticket has changed hands as often as one may.

    `limit` says how often. Who has it now can still use it.
    """

    code, status, title = "transfer_max", 409, "Transfer limit reached"


class TransferTooLate(Refusal):
    """The show is over: there is nothing left to give away."""

    code, status, title = "transfer_too_late", 409, "The show is over"


class NothingToTakeBack(Refusal):
    """You have not transferred this ticket, or its new owner has it: only the new owner can return it."""

    code, status, title = "nothing_to_take_back", 409, "No transfer to cancel"


class ToYourself(Refusal):
    """The address is your own. Give the ticket to another person, or leave it with you."""

    code, status, title = "to_yourself", 422, "That is your own address"


class FixedCode(Refusal):
    """The codes of this show's tickets do not change, so they are bound to no phone.

    Use the `code` of `GET /bookings/{booking}/tickets`.
    """

    code, status, title = "fixed_code", 409, "These codes do not change"


class ResendMax(Refusal):
    """The tickets of this booking were sent as often as we do in an hour.

    They are on the page of the booking all the time. Ask again after the seconds in Retry-After.
    """

    code, status, title = "resend_max", 429, "Sent too many times"
