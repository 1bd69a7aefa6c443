"""What people do with their own account: confirm an address, reset a password, sign in by mail, end sessions.

Answers never reveal whether an address has an account: a request for a mail does the same work for every
address, and what the mail says is decided when it is composed.

An address is proved by a mailed link and belongs to one account. A link that would give an address to an
account (VERIFY) works only in a session of that account or with its password: otherwise a stranger could sign
up with the address of another person, and wait for them to confirm it.
"""

from typing import Any

import asyncpg

from holdfast.accounts.account import Account, build_account, normal_email
from holdfast.accounts.errors import (
    AccountBanned,
    EmailTaken,
    LinkGone,
    NoSuchSession,
    PasswordNeeded,
)
from holdfast.accounts.mail_token import MailToken, PersonMail, PersonMails, Purpose, SessionInfo
from holdfast.accounts.mail_tokens import MailTokens
from holdfast.accounts.store import Accounts
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.errors import TokenInvalid
from holdfast.web.caller import Caller

Q = Queries("holdfast.accounts", "people")
SESSIONS_LISTED_MAX = 200
NAME_LENGTH_MAX = 120


class People:
    def __init__(
        self, postgres: Postgres, accounts: Accounts, tokens: MailTokens, mails: PersonMails
    ) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._tokens = tokens
        self._mails = mails

    # ── mails that a person requests ──────────────────────────────────────────────────

    async def request_reset(self, email: str, locale: str) -> None:
        await self._request(PersonMail.RESET_PASSWORD, normal_email(email), None, locale)

    async def request_sign_in(self, email: str, locale: str) -> None:
        """A link that signs in. An address without an account gets one, too: using it makes the account."""
        await self._request(PersonMail.SIGN_IN_LINK, normal_email(email), None, locale)

    async def request_confirmation(self, account_id: int, locale: str, on: Queryable | None = None) -> None:
        """To the address that the account names, if it is not proved yet."""
        row = await self._person(account_id, on)
        account = build_account(row)
        if not account.is_verified and (row["contact_email"] or not row["is_guest"]):
            await self._request(PersonMail.CONFIRM_ADDRESS, account.email, account_id, locale, on)

    async def request_change(
        self, caller: Caller, *, email: str, password: str, address: str, locale: str
    ) -> None:
        """A link to the new address; until it is used, nothing changes."""
        await self._accounts.check_password(caller.account_id, password, address)
        await self._request(PersonMail.CONFIRM_ADDRESS, normal_email(email), caller.account_id, locale)

    async def _request(
        self,
        mail: PersonMail,
        email: str,
        account_id: int | None,
        locale: str,
        on: Queryable | None = None,
    ) -> None:
        on = on or self._postgres
        await self._mails.request(on, mail, email=email, account_id=account_id, locale=locale)

    # ── links that a person uses ──────────────────────────────────────────────────────

    async def needs_password(self, text: str, signed_in: int | None) -> bool:
        """Whether confirming this address here takes the account's password."""
        token = await self._tokens.look(text)
        if token.purpose is not Purpose.VERIFY or token.account_id in (None, signed_in):
            return False
        row = await self._person(token.account_id or 0)
        return not row["is_guest"]

    async def confirm(
        self, text: str, *, signed_in: int | None, password: str | None, address: str
    ) -> Account:
        """The address of a VERIFY link is its account's; the account, or the one it was merged into."""
        token = await self._tokens.look(text)
        if token.purpose is not Purpose.VERIFY or token.account_id is None:
            raise LinkGone
        before = await self._person(token.account_id)
        if token.account_id != signed_in and not before["is_guest"]:
            if password is None or not before["has_password"]:
                raise PasswordNeeded
            await self._accounts.check_password(token.account_id, password, address)
        async with self._postgres.transaction() as tx:
            await self._tokens.use(tx, text, Purpose.VERIFY)
            account_id, ended = await self._give_address(tx, before, token.email)
            if account_id == before["id"] and before["verified_at"] and before["email"] != token.email:
                await self._address_changed(tx, before)
        self._accounts.refuse_sessions(ended)
        return await self._account(account_id)

    async def _address_changed(self, tx: Transaction, before: Any) -> None:
        if not before["is_guest"]:
            await self._tokens.end_all(tx, before["id"], before["email"])
            await self._mails.request(
                tx,
                PersonMail.ADDRESS_CHANGED,
                email=before["email"],
                account_id=before["id"],
                locale=before["locale"],
            )

    async def _give_address(self, tx: Transaction, row: Any, email: str) -> tuple[int, list[int]]:
        """(The account that has the address now, sessions that ended)."""
        if row["is_guest"]:
            if await tx.fetchval(Q.prove_contact, row["id"], email) is None:
                raise LinkGone
            return row["id"], []
        try:
            async with tx.transaction():
                await tx.fetchval(Q.own_address, row["id"], email)
            return row["id"], []
        except asyncpg.UniqueViolationError:
            other = require_row(await tx.fetchrow(Q.person_at, email))
        if not _is_unconfirmed(row):
            raise EmailTaken
        await tx.execute(Q.merge_into, row["id"], other["id"], email)
        return other["id"], await self._accounts.end_sessions(tx, row["id"], "merged")

    async def reset(self, text: str, new_password: str) -> Account:
        """A new password by a RESET link; every session ends."""
        await self._tokens.look(text)  # a password is hashed for links that work, only
        hashed = await self._accounts.hashed(new_password, is_known=True)
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.RESET)
            account_id = await tx.fetchval(Q.reset_password, token.account_id, token.email, hashed)
            if account_id is None:  # its address is another one by now
                raise LinkGone
            ended = await self._accounts.end_sessions(tx, account_id, "reset")
            await self._tokens.end_all(tx, account_id, token.email)
            await self._changed_password(tx, account_id, token.email)
        self._accounts.refuse_sessions(ended)
        return await self._account(account_id)

    async def sign_in(self, text: str, *, signed_in: int | None, locale: str) -> Account:
        """The account of a SIGN_IN link's address, made if there is none."""
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.SIGN_IN)
            account_id, ended = await self._enter(tx, token.email, signed_in, locale)
        self._accounts.refuse_sessions(ended)
        return await self._account(account_id)

    async def enter_proved(
        self, email: str, *, signed_in: int | None, locale: str, name: str = ""
    ) -> Account:
        """The account of an address that an invitation's link has just proved, made if there is none."""
        async with self._postgres.transaction() as tx:
            account_id, ended = await self._enter(tx, email, signed_in, locale, name)
        self._accounts.refuse_sessions(ended)
        return await self._account(account_id)

    async def has_account(self, email: str) -> bool:
        """Only for who has proved the address."""
        return await self._postgres.fetchrow(Q.person_at, email) is not None

    async def _enter(
        self, tx: Transaction, email: str, signed_in: int | None, locale: str, name: str = ""
    ) -> tuple[int, list[int]]:
        """(The account of a proved address, sessions that ended)."""
        row = await tx.fetchrow(Q.person_at, email)
        mine = await tx.fetchrow(Q.person, signed_in) if signed_in is not None else None
        if row is None and mine is not None and _is_unconfirmed(mine, email):
            return await self._give_address(tx, mine, email)
        if row is None:
            return await self._add_proved(tx, email, name, locale), []
        if row["verified_at"] is not None:
            return row["id"], []
        await tx.execute(Q.distrust_password, row["id"])
        return row["id"], await self._accounts.end_sessions(tx, row["id"], "reset")

    async def _add_proved(self, tx: Transaction, email: str, name: str, locale: str) -> int:
        called = name or email.partition("@")[0][:NAME_LENGTH_MAX]
        account_id = await tx.fetchval(Q.add_proved, email, called, locale)
        if account_id is None:
            account_id = require_row(await tx.fetchrow(Q.person_at, email))["id"]
        return int(account_id)

    async def add_proved(self, tx: Transaction, *, email: str, name: str, locale: str) -> int | None:
        """An account whose address a sign-in service has proved. None: the address has an account."""
        account_id: int | None = await tx.fetchval(Q.add_proved, email, name, locale)
        return account_id

    async def account(self, account_id: int) -> Account:
        """To sign in to; AccountBanned if it may not."""
        return await self._account(account_id)

    async def guest_of_link(self, text: str) -> MailToken:
        """A BOOKING link whose guest still reads mail at its address; it is not used up."""
        token = await self._tokens.look(text)
        row = await self._postgres.fetchrow(Q.person, token.account_id or 0)
        is_guest = row is not None and row["is_guest"] and row["contact_email"] == token.email
        if token.purpose is not Purpose.BOOKING or not is_guest:
            raise LinkGone
        return token

    async def is_guest(self, account_id: int) -> bool:
        return bool((await self._person(account_id))["is_guest"])

    # ── the account itself ────────────────────────────────────────────────────────────

    async def change_password(self, caller: Caller, *, current: str, new: str, address: str) -> None:
        """Every other session ends, and so do links in mails; the address gets a notice."""
        await self._accounts.change_password(caller, current=current, new=new, address=address)
        account = build_account(await self._person(caller.account_id))
        async with self._postgres.transaction() as tx:
            await self._tokens.end_all(tx, caller.account_id, account.email)
            await self._changed_password(tx, caller.account_id, account.email)

    async def _changed_password(self, tx: Transaction, account_id: int, email: str) -> None:
        row = require_row(await tx.fetchrow(Q.person, account_id))
        if row["verified_at"] is not None:
            await self._mails.request(
                tx, PersonMail.PASSWORD_CHANGED, email=email, account_id=account_id, locale=row["locale"]
            )

    async def has_password(self, account_id: int) -> bool:
        return bool((await self._person(account_id))["has_password"])

    async def rename(self, account_id: int, name: str) -> Account:
        await self._postgres.execute(Q.rename, account_id, name)
        return await self._account(account_id)

    async def sessions(self, account_id: int, this_session: int) -> list[SessionInfo]:
        """Open ones, the one used last first."""
        rows = await self._postgres.fetch(Q.sessions, account_id, SESSIONS_LISTED_MAX)
        return [
            SessionInfo(
                session_id=row["id"],
                device=row["device"],
                created_at=row["created_at"],
                last_used_at=row["last_used_at"],
                is_this=row["id"] == this_session,
                signed_in_by=row["signed_in_by"],
            )
            for row in rows
        ]

    async def end_session(self, account_id: int, session_id: int) -> None:
        if await self._postgres.fetchval(Q.end_one_session, account_id, session_id) is None:
            raise NoSuchSession
        self._accounts.refuse_sessions([session_id])

    async def end_sessions(self, account_id: int, but_session: int = 0) -> int:
        """Sign out everywhere, or everywhere else; how many sessions ended."""
        ended = await self._accounts.end_sessions(self._postgres, account_id, "revoked", but_session)
        self._accounts.refuse_sessions(ended)
        return len(ended)

    async def _person(self, account_id: int, on: Queryable | None = None) -> Any:
        row = await (on or self._postgres).fetchrow(Q.person, account_id)
        if row is None:
            raise TokenInvalid
        return row

    async def _account(self, account_id: int) -> Account:
        row = await self._person(account_id)
        if row["banned_at"] is not None:
            raise AccountBanned
        return build_account(row)


def _is_unconfirmed(row: Any, email: str | None = None) -> bool:
    """A sign-up whose address (this one) was never proved."""
    is_made_up = row["email"].endswith("@guest.invalid") and not row["is_guest"]
    return bool(is_made_up and (email is None or row["contact_email"] == email))
