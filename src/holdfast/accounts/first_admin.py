"""The first administrator of an empty installation, made with a link that was printed on a terminal.

Who sees the terminal owns the machine. The link works once, for a day. Printing a new one ends the one
before, and with the first administrator every link ends.
"""

import asyncpg

from holdfast.accounts.account import normal_email
from holdfast.accounts.errors import EmailTaken, LinkGone
from holdfast.accounts.mail_token import MailToken, Purpose
from holdfast.accounts.mail_tokens import MailTokens
from holdfast.accounts.staff_log import record_account
from holdfast.accounts.store import Accounts
from holdfast.engines.postgres import Postgres, Queries

Q = Queries("holdfast.accounts", "admin")
LINK = "/link/"


class FirstAdmin:
    def __init__(self, postgres: Postgres, accounts: Accounts, tokens: MailTokens) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._tokens = tokens

    async def issue_link(self) -> str | None:
        """The path of a new link; None: there is an administrator, who can sign in."""
        if await self._postgres.fetchval(Q.has_admin):
            return None
        await self._postgres.execute(Q.end_begin_tokens)
        return LINK + await self._tokens.issue(MailToken(purpose=Purpose.BEGIN, email=""))

    async def add(self, text: str, *, email: str, name: str, password: str, locale: str) -> int:
        """The account. Its address counts as proved: the terminal is worth more than a mailbox."""
        await self._tokens.look(text)  # a password is hashed for links that work, only
        hashed = await self._accounts.hashed(password)
        async with self._postgres.transaction() as tx:
            await self._tokens.use(tx, text, Purpose.BEGIN)
            if await tx.fetchval(Q.has_admin):
                raise LinkGone
            try:
                account_id = await tx.fetchval(Q.add_first_admin, normal_email(email), name, hashed, locale)
            except asyncpg.UniqueViolationError:
                raise EmailTaken from None
            await record_account(tx, "account.added", account_id)
        return int(account_id)
