"""Invitations to an organisation: a single-use token, mailed to an address, stored as its hash alone.

Who has the link may accept, with the account they are signed in to: it was sent to their mailbox.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from holdfast.accounts import normal_email
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.organisations.errors import AlreadyAMember, InvitationsMax, MembersMax, NoSuchInvitation
from holdfast.organisations.organisation import (
    InvitationPage,
    MyOrganisation,
    NewInvitation,
    list_grantable,
    parse_rights,
    refuse_higher_rights,
)
from holdfast.organisations.staff_log import record_invitation, record_member, record_withdrawn
from holdfast.organisations.store import Organisations
from holdfast.organisations.store import Q as ORGANISATIONS
from holdfast.web.caller import Right, Scope

Q = Queries("holdfast.organisations", "invitations")

INVITATION_DAYS = 7
MEMBERS_MAX = 200
INVITATIONS_PER_DAY_MAX = 50  # of one organisation
INVITATIONS_TO_ADDRESS_MAX = 5  # per day, by all organisations: it protects the mailbox
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """What the person who opens the link sees before they accept."""

    organisation_id: int
    name: str  # of the organisation
    email: str
    rights: frozenset[Right]
    expires_at: datetime


class InvitationMails(Protocol):
    async def mail_invitation(
        self, on: Queryable, invitation_id: int, *, email: str, invited_by: int
    ) -> None:
        """Write the mail, unless this address got many in the last hour; its link is made when it is sent."""


class Invitations:
    def __init__(self, postgres: Postgres, organisations: Organisations, mails: InvitationMails) -> None:
        self._postgres = postgres
        self._organisations = organisations
        self._mails = mails

    async def invite(self, scope: Scope, new: NewInvitation) -> InvitationPage:
        """An earlier one to the same address is replaced. `issue_token` makes its link."""
        assert scope.organisation_id is not None
        email = normal_email(new.email)
        refuse_higher_rights(scope, (), parse_rights(new.rights) - {Right.MEMBER})
        async with self._postgres.transaction() as tx:
            await tx.execute(ORGANISATIONS.lock, scope.organisation_id)
            await self._refuse_surplus(tx, scope.organisation_id, email)
            if await tx.fetchval(Q.is_member, scope.organisation_id, email):
                raise AlreadyAMember
            await tx.execute(Q.replace_open, scope.organisation_id, email)
            rights = list(dict.fromkeys(new.rights))
            values = (scope.organisation_id, email, rights, scope.account_id, INVITATION_DAYS)
            row = require_row(await tx.fetchrow(Q.add, *values))
            await record_invitation(tx, scope.organisation_id, row["id"], email, rights)
            await self._mails.mail_invitation(tx, row["id"], email=email, invited_by=scope.account_id)
        return _page(row)

    async def send_again(self, scope: Scope, invitation_id: int) -> InvitationPage:
        """A new one to the same address with the same rights; it counts like any other."""
        row = await self._postgres.fetchrow(Q.stored, scope.organisation_id, invitation_id)
        if row is None:
            raise NoSuchInvitation
        return await self.invite(scope, NewInvitation(email=row["email"], rights=row["rights"]))

    async def issue_token(self, invitation_id: int) -> str | None:
        """A new token, made when the mail is written, so that no table and no queue ever has it.

        An earlier one stops working. None: the invitation has ended.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        issued = await self._postgres.fetchval(Q.set_token, invitation_id, _digest(token))
        return token if issued is not None else None

    async def organisation_name(self, invitation_id: int) -> str:
        return str(await self._postgres.fetchval(Q.organisation_name, invitation_id))

    async def _refuse_surplus(self, tx: Transaction, organisation_id: int, email: str) -> None:
        if await tx.fetchval(ORGANISATIONS.count_members, organisation_id) >= MEMBERS_MAX:
            raise MembersMax(limit=MEMBERS_MAX)
        lately = require_row(await tx.fetchrow(Q.count_lately, organisation_id, email))
        if lately["by_organisation"] >= INVITATIONS_PER_DAY_MAX:
            raise InvitationsMax(limit=INVITATIONS_PER_DAY_MAX, retry_after_s=3600)
        if lately["to_address"] >= INVITATIONS_TO_ADDRESS_MAX:
            raise InvitationsMax(limit=INVITATIONS_TO_ADDRESS_MAX, retry_after_s=3600)

    async def list_open(self, organisation_id: int) -> list[InvitationPage]:
        return [_page(row) for row in await self._postgres.fetch(Q.list_open, organisation_id)]

    async def withdraw(self, organisation_id: int, invitation_id: int) -> None:
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.withdraw, organisation_id, invitation_id) is None:
                raise NoSuchInvitation
            await record_withdrawn(tx, organisation_id, invitation_id)

    async def find(self, token: str) -> OpenInvitation:
        row = await self._postgres.fetchrow(Q.open, _digest(token))
        if row is None:
            raise NoSuchInvitation
        return OpenInvitation(
            row["organisation_id"], row["name"], row["email"], parse_rights(row["rights"]), row["expires_at"]
        )

    async def accept(self, token: str, account_id: int) -> MyOrganisation:
        """The account becomes a member; the token is used up. Two at once: one of them."""
        found = await self.find(token)
        if not await self._postgres.fetchval(Q.is_person, account_id):
            raise NoSuchInvitation
        async with self._postgres.transaction() as tx:
            await tx.execute(ORGANISATIONS.lock, found.organisation_id)
            row = await tx.fetchrow(Q.accept, _digest(token), account_id)
            if row is None:
                raise NoSuchInvitation
            if await tx.fetchval(ORGANISATIONS.count_members, found.organisation_id) >= MEMBERS_MAX:
                raise MembersMax(limit=MEMBERS_MAX)
            added = await tx.fetchval(
                ORGANISATIONS.add_member, row["organisation_id"], account_id, row["rights"]
            )
            if added is None:
                raise AlreadyAMember
            await record_member(tx, (found.organisation_id, account_id), None, row["rights"])
        self._organisations.forget(account_id)
        rights = parse_rights(row["rights"])
        return MyOrganisation(
            organisation_id=found.organisation_id,
            name=found.name,
            is_owner=Right.OWNER in rights,
            rights=list_grantable(rights),
        )

    async def decline(self, token: str) -> None:
        if await self._postgres.fetchval(Q.decline, _digest(token)) is None:
            raise NoSuchInvitation


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _page(row: Any) -> InvitationPage:
    return InvitationPage(
        invitation_id=row["id"],
        email=row["email"],
        rights=list_grantable(parse_rights(row["rights"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )
