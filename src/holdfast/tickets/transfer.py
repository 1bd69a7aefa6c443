"""Giving a ticket to somebody else: who may, and what it makes of the ticket. No I/O.

    mine ──give──► theirs                       somebody with an account by that address: at once
      ▲  └─give──► waiting for an address ──► theirs, as soon as somebody signs up with it
      └─take back──────┘

Every arrow raises the edition, so that the code from before opens nothing: who gave a ticket away cannot walk
in with a picture of it, and who waits for one has nothing until it is theirs.
"""

from dataclasses import dataclass

from msgspec import Struct

from holdfast.accounts import Email
from holdfast.tickets.errors import (
    NoSuchTicket,
    NothingToTakeBack,
    TicketUsed,
    TicketVoid,
    ToYourself,
    TransferMax,
    TransferTooLate,
)
from holdfast.tickets.issued import IssuedTicket

TRANSFERS_MAX = 5  # of one ticket; taking back counts: an edition is an edition


class TransferBody(Struct, forbid_unknown_fields=True, frozen=True):
    email: Email


class TransferPage(Struct, frozen=True):
    ticket_id: str
    email: str
    has_arrived: (
        bool  # false: it waits until somebody signs up with this address; until then you may take it back
    )


@dataclass(frozen=True, slots=True)
class Giver:
    account_id: int
    email: str


def refuse_giving(ticket: IssuedTicket | None, giver: Giver, email: str, *, is_over: bool) -> IssuedTicket:
    """The ticket, if the giver may give it to this address now."""
    if ticket is None or not ticket.is_of(giver.account_id, giver.email):
        raise NoSuchTicket
    _refuse_unusable(ticket)
    if email == giver.email:
        raise ToYourself
    if is_over:
        raise TransferTooLate
    if ticket.edition > TRANSFERS_MAX:
        raise TransferMax(limit=TRANSFERS_MAX)
    return ticket


def refuse_taking_back(ticket: IssuedTicket | None, giver: Giver, given_by: int | None) -> IssuedTicket:
    """The ticket, if it still waits for somebody and this is who gave it away."""
    if ticket is None or giver.account_id not in (ticket.booked_by, given_by):
        raise NoSuchTicket
    _refuse_unusable(ticket)
    if ticket.owner_email is None or given_by != giver.account_id:
        raise NothingToTakeBack
    return ticket


def _refuse_unusable(ticket: IssuedTicket) -> None:
    if ticket.voided_at is not None:
        raise TicketVoid
    if ticket.used_at is not None:
        raise TicketUsed
