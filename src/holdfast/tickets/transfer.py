"""Giving a ticket to another person: who may, and what happens to the ticket.

    mine ──give──► waiting for an address ──accept──► theirs
      ▲                   │
      └────take back──────┘

A transfer is accepted by the link in the mail to its address, or by an account that has proved the address;
never by signing up with it. The giver gets the same answer whether or not the address has an account.

Giving and taking back raise the edition, so the previous code stops working: a giver cannot walk in with a
picture of it, and a recipient has no code before the ticket is theirs. One transaction locks the ticket,
checks it, raises the edition and writes the facts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from holdfast.accounts import Email
from holdfast.engines.postgres import Postgres, Queries, Transaction
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
from holdfast.tickets.store import Q as TICKETS
from holdfast.tickets.store import parse_ticket

TRANSFERS_MAX = 5  # of one ticket; taking back counts: an edition is an edition


class TransferBody(Struct, forbid_unknown_fields=True, frozen=True):
    email: Email


class TransferPage(Struct, frozen=True):
    ticket_id: str
    email: str
    has_arrived: bool  # false: it waits to be accepted; until then you may take it back


@dataclass(frozen=True, slots=True)
class Giver:
    account_id: int
    email: str | None  # proved; None: none


def check_giving(ticket: IssuedTicket | None, giver: Giver, email: str, *, is_over: bool) -> IssuedTicket:
    """The ticket, if the giver may give it to this address now."""
    if ticket is None or not ticket.is_of(giver.account_id):
        raise NoSuchTicket
    _refuse_unusable(ticket)
    if email == giver.email:
        raise ToYourself
    if is_over:
        raise TransferTooLate
    if ticket.edition > TRANSFERS_MAX:
        raise TransferMax(limit=TRANSFERS_MAX)
    return ticket


def check_taking_back(ticket: IssuedTicket | None, giver: Giver, given_by: int | None) -> IssuedTicket:
    """The ticket, if its recipient has not accepted it and this account gave it away."""
    if ticket is None or giver.account_id not in (ticket.booked_by, given_by):
        raise NoSuchTicket
    _refuse_unusable(ticket)
    if ticket.owner_email is None or given_by != giver.account_id:
        raise NothingToTakeBack
    return ticket


def check_accepting(
    ticket: IssuedTicket | None, email: str | None, edition: int | None, *, is_over: bool
) -> IssuedTicket:
    """The ticket, if it waits for this address, in this edition (None: any)."""
    if ticket is None or email is None or ticket.owner_email != email:
        raise NoSuchTicket
    if edition not in (None, ticket.edition):
        raise NoSuchTicket
    _refuse_unusable(ticket)
    if is_over:
        raise TransferTooLate
    return ticket


def _refuse_unusable(ticket: IssuedTicket) -> None:
    if ticket.voided_at is not None:
        raise TicketVoid
    if ticket.used_at is not None:
        raise TicketUsed


Q = Queries("holdfast.tickets", "transfer")


class Transfers:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def give(self, show_id: int, serial: int, giver: Giver, email: str) -> IssuedTicket:
        """To the owner of this address, in its normalised spelling."""
        async with self._postgres.transaction() as tx:
            is_over = await tx.fetchval(Q.show_is_over, show_id)
            ticket = check_giving(
                await self._locked(tx, show_id, serial), giver, email, is_over=bool(is_over)
            )
            edition = await self._move(tx, ticket, giver, None, email)
            body = {"serial": serial, "edition": edition, "from_id": giver.account_id, "to_id": None}
            for side in ("given", "got"):
                await self._add_fact(tx, ticket, "ticket.transferred", body | {"side": side})
            return await self._again(tx, ticket)

    async def take_back(self, show_id: int, serial: int, giver: Giver) -> IssuedTicket:
        """A ticket whose recipient has not accepted it."""
        async with self._postgres.transaction() as tx:
            found = await self._locked(tx, show_id, serial)
            given_by = await tx.fetchval(Q.last_giver, show_id, serial)
            ticket = check_taking_back(found, giver, given_by)
            back_to = (giver.account_id, giver.email or "")
            edition = await self._move(tx, ticket, giver, *back_to, is_taken_back=True)
            body = {"serial": serial, "edition": edition, "to_id": giver.account_id}
            await self._add_fact(tx, ticket, "ticket.taken_back", body)
            return await self._again(tx, ticket)

    async def accept(
        self,
        tx: Transaction,
        place: tuple[int, int],
        *,
        account_id: int,
        email: str | None,
        edition: int | None = None,
    ) -> IssuedTicket:
        """In the caller's transaction. `email` is proved. The new owner gets the ticket by mail, too."""
        is_over = await tx.fetchval(Q.show_is_over, place[0])
        found = await self._locked(tx, *place)
        if found is not None and found.owner_id == account_id and found.edition == edition:
            return found  # accepted with the same link before, whose answer was lost
        ticket = check_accepting(found, email, edition, is_over=bool(is_over))
        await tx.execute(Q.accept, *place, account_id)
        await tx.execute(Q.note_acceptance, *place, ticket.edition, account_id)
        await self._add_fact(tx, ticket, "tickets.sent_again", {"account_id": account_id})
        return await self._again(tx, ticket)

    async def check_offer(
        self, tx: Transaction, place: tuple[int, int], email: str, edition: int | None
    ) -> None:
        """Whether `accept` would succeed now. Raises what it would."""
        is_over = await tx.fetchval(Q.show_is_over, place[0])
        row = await tx.fetchrow(TICKETS.ticket, *place)
        check_accepting(parse_ticket(row) if row else None, email, edition, is_over=bool(is_over))

    async def _locked(self, tx: Transaction, show_id: int, serial: int) -> IssuedTicket | None:
        await tx.fetchval(Q.lock_ticket, show_id, serial)
        row = await tx.fetchrow(TICKETS.ticket, show_id, serial)
        return parse_ticket(row) if row else None

    async def _move(
        self,
        tx: Transaction,
        ticket: IssuedTicket,
        giver: Giver,
        to_id: int | None,
        email: str,
        is_taken_back: bool = False,
    ) -> int:
        place = (ticket.show_id, ticket.serial)
        edition = await tx.fetchval(Q.change_hands, *place, to_id, None if to_id is not None else email)
        await tx.execute(Q.note_transfer, *place, edition, giver.account_id, to_id, email, is_taken_back)
        return int(edition)

    async def _add_fact(
        self, tx: Transaction, ticket: IssuedTicket, kind: str, values: Mapping[str, object]
    ) -> None:
        body = msgspec.json.encode(values).decode()
        await tx.execute(Q.add_fact, ticket.show_id, ticket.number, kind, body)

    async def _again(self, tx: Transaction, ticket: IssuedTicket) -> IssuedTicket:
        return parse_ticket(await tx.fetchrow(TICKETS.ticket, ticket.show_id, ticket.serial))
