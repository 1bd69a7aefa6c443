"""Composes mails about an account. What a mail says, or that none is sent, depends on what the address has.

The token of a link is made here, when the mail is composed: it is stored nowhere else. A mail that is
composed again after a failure has another one, and both work until the first is used.
"""

from dataclasses import replace
from typing import Any

import structlog

from holdfast.accounts import MailToken, MailTokens, Purpose
from holdfast.engines.postgres import Postgres
from holdfast.notifications.notice import DueNotice, NoticeKind
from holdfast.notifications.render import MessageData
from holdfast.notifications.store import Q
from holdfast.organisations import Invitations

LINK = "/link/"
WITH_LINK = {NoticeKind.CONFIRM_ADDRESS, NoticeKind.RESET_PASSWORD, NoticeKind.SIGN_IN_LINK}
log = structlog.get_logger(__name__)


class PersonMessages:
    def __init__(self, postgres: Postgres, links: MailTokens, invitations: Invitations) -> None:
        self._postgres = postgres
        self.links = links
        self._invitations = invitations

    async def contents(self, due: DueNotice, base: str | None) -> MessageData | None:
        """None: there is nothing to write, and the client that requested the mail does not learn it."""
        if base is None:
            log.warning("no link can be mailed: set HOLDFAST_PUBLIC_URL", kind=due.kind)
            return None
        data = MessageData(name=due.name, base=base, email=due.address)
        match due.kind:
            case NoticeKind.CONFIRM_ADDRESS:
                return await self._confirmation(due, data)
            case NoticeKind.INVITATION:
                return await self._invitation(due.body["invitation_id"], data)
            case kind if kind not in WITH_LINK:
                return data
        owner = await self._postgres.fetchrow(Q.person_at, due.address)
        if owner is not None and owner["is_shut"]:
            return None
        if due.kind is NoticeKind.SIGN_IN_LINK:
            return await self._with_link(data, MailToken(purpose=Purpose.SIGN_IN, email=due.address))
        if owner is None:  # a reset for an address without an account
            return None
        token = MailToken(purpose=Purpose.RESET, email=due.address, account_id=owner["id"])
        return await self._with_link(data, token)

    async def _confirmation(self, due: DueNotice, data: MessageData) -> MessageData | None:
        person = await self._postgres.fetchrow(Q.person, due.account_id)
        if person is None or person["is_shut"] or _has_proved(person, due.address):
            return None
        owner = await self._postgres.fetchrow(Q.person_at, due.address)
        if owner is not None and owner["id"] != person["id"] and not person["is_guest"]:
            return replace(data, is_taken=True)
        token = MailToken(purpose=Purpose.VERIFY, email=due.address, account_id=due.account_id)
        return await self._with_link(data, token)

    async def _invitation(self, invitation_id: int, data: MessageData) -> MessageData | None:
        token = await self._invitations.issue_token(invitation_id)
        if token is None:  # it was accepted, withdrawn or replaced meanwhile
            return None
        name = await self._invitations.organisation_name(invitation_id)
        return replace(data, title=name, link_path=LINK + token)

    async def _with_link(self, data: MessageData, token: MailToken) -> MessageData:
        return replace(data, link_path=LINK + await self.links.issue(token))


def _has_proved(person: Any, address: str) -> bool:
    return bool(person["is_verified"] and person["reached_at"] == address)
