"""What administrators do with accounts: add by a one-time link, list, role, ban, reset (API and commands)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.accounts.account import Account, NewAccount, build_account, normal_email
from holdfast.accounts.errors import EmailTaken, LastAdmin, NoSuchAccount
from holdfast.accounts.mail_token import INVITATION_TTL_S, MailToken, Purpose
from holdfast.accounts.mail_tokens import MailTokens
from holdfast.accounts.staff_log import record_account
from holdfast.accounts.store import Accounts
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.web.caller import Role

Q = Queries("holdfast.accounts", "admin")
LINK = "/link/"


@dataclass(frozen=True, slots=True)
class ListedAccount:
    account: Account
    banned_at: datetime | None
    erased_at: datetime | None


class AccountAdmin:
    def __init__(self, postgres: Postgres, accounts: Accounts, tokens: MailTokens) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._tokens = tokens

    async def add(self, *, email: str, name: str, role: Role) -> tuple[Account, str]:
        """A new account, and the path of the one-time link with which its owner chooses a password."""
        if await self._accounts.find_account(email) is not None:
            raise EmailTaken
        new = NewAccount(normal_email(email), name, role, is_verified=False)
        [account_id] = await self._accounts.add_many([new])
        await record_account(self._postgres, "account.added", account_id)
        listed = await self.find(account_id)
        return listed.account, await self._link(listed.account)

    async def reset(self, account_id: int) -> str:
        """The path of a link to choose a new password; the old one and every session end now."""
        account = (await self.find(account_id)).account
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.drop_password, account_id)
            ended = await self._end(tx, account, "reset")
            await record_account(tx, "account.reset", account_id)
        self._accounts.refuse_sessions(ended)
        return await self._link(account)

    async def _link(self, account: Account) -> str:
        token = MailToken(purpose=Purpose.RESET, email=account.email, account_id=account.account_id)
        return LINK + await self._tokens.issue(token, INVITATION_TTL_S)

    async def list(
        self, *, text: str = "", role: str = "", before: int, guests: bool = False, limit: int
    ) -> list[ListedAccount]:
        rows = await self._postgres.fetch(Q.accounts, text.lower(), role, before, guests, limit)
        return [_listed(row) for row in rows]

    async def find(self, account_id: int) -> ListedAccount:
        row = await self._postgres.fetchrow(Q.one_account, account_id)
        if row is None:
            raise NoSuchAccount
        return _listed(row)

    async def find_by_email(self, email: str) -> ListedAccount:
        account = await self._accounts.find_account(email)
        if account is None:
            raise NoSuchAccount
        return await self.find(account.account_id)

    async def set_role(self, account_id: int, role: Role) -> ListedAccount:
        await self.find(account_id)
        if role is not Role.ADMIN:
            async with self._postgres.transaction() as tx:
                await refuse_last_admin(tx, account_id)
                version = await self._accounts.change_role(tx, account_id, role)
            self._accounts.refuse_version(account_id, version)
        else:
            await self._accounts.set_role(account_id, role)
        return await self.find(account_id)

    async def ban(self, account_id: int) -> ListedAccount:
        """Signed out everywhere at once. Holds lapse; a payment under way ends as it would have."""
        account = (await self.find(account_id)).account
        async with self._postgres.transaction() as tx:
            await refuse_last_admin(tx, account_id)
            version = await tx.fetchval(Q.ban, account_id)
            ended = await self._end(tx, account, "ban")
            if version is not None:
                await record_account(tx, "account.banned", account_id)
        self._accounts.refuse_version(account_id, version)
        self._accounts.refuse_sessions(ended)
        return await self.find(account_id)

    async def unban(self, account_id: int) -> ListedAccount:
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.unban, account_id) is not None:
                await record_account(tx, "account.unbanned", account_id)
        return await self.find(account_id)

    async def _end(self, tx: Transaction, account: Account, reason: str) -> Sequence[int]:
        await self._tokens.end_all(tx, account.account_id, account.email)
        return await self._accounts.end_sessions(tx, account.account_id, reason)

    async def ensure_account(self, *, email: str, password: str, name: str, role: Role) -> Account:
        """The account with this password and role, made or brought into line. For demo data."""
        hashed = await self._accounts.hashed(password)
        [account_id] = await self._accounts.add_many([NewAccount(email, name, role, hashed)])
        await self._accounts.bring_password(account_id, password, hashed)
        await self._accounts.set_role(account_id, role)
        return (await self.find(account_id)).account


async def refuse_last_admin(tx: Transaction, account_id: int) -> None:
    """The caller takes the role, or the account, away from this person."""
    admins = [row["id"] for row in await tx.fetch(Q.lock_admins)]
    if admins == [account_id]:
        raise LastAdmin


def _listed(row: Any) -> ListedAccount:
    return ListedAccount(build_account(row), row["banned_at"], row["erased_at"])
