"""Browser sessions: a cookie is a random text, its hash is a row, and it ends with its session.

The cookie is replaced whenever the identity behind it changes (a guest, an account): a planted one is
worthless after that. A guest is an account without a password; signing up gives it one, logging in to another
account gives that account what the guest has.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import asyncpg

from holdfast.accounts.account import Account, build_account, digest, normal_email
from holdfast.accounts.errors import EmailTaken
from holdfast.accounts.store import Accounts
from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.web.caller import Role

Q = Queries("holdfast.accounts", "sessions")
COOKIE_BYTES = 32
GUEST_NAME = "Guest"


GUEST_HOST = "guest.invalid"  # RFC 2606: no mail can ever be sent there


def guest_email(name: str) -> str:
    return f"{name}@{GUEST_HOST}"


@dataclass(frozen=True, slots=True)
class Session:
    account: Account
    session_id: int
    contact_email: str | None  # where a guest receives mail; None: not given yet, or not a guest
    is_guest: bool
    owner_ids: tuple[int, ...]  # whose bookings are theirs: the account first, then guests it once was
    seen_at: datetime = field(compare=False)  # when that was looked up, by the ledger's clock

    @property
    def account_id(self) -> int:
        return self.account.account_id

    @property
    def role(self) -> Role:
        return self.account.role

    @property
    def email(self) -> str | None:
        """The address for mail; None while a guest has not given one."""
        return self.contact_email if self.is_guest else self.account.email


class Sessions:
    def __init__(self, postgres: Postgres, accounts: Accounts, config: Config) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._config = config
        self._look: Batcher[bytes, Session | None] = Batcher(
            self._visits, batch_max=config.batch_max, waiting_max=config.waiting_max
        )

    async def load(self, cookie: str) -> Session | None:
        """The session of this cookie; None: unknown or expired."""
        return await self._look(digest(cookie))

    async def _visits(self, hashes: Sequence[bytes]) -> list[Session | None]:
        found = {row["hash"]: _visit(row) for row in await self._postgres.fetch(Q.visits, hashes)}
        return [found.get(one) for one in hashes]

    async def open_guest(self, locale: str, address: str = "") -> str:
        """A guest, and the cookie that speaks for it; TooManyRequests where one address opens very many."""
        await self._accounts.count_guest(address)
        async with self._postgres.transaction() as tx:
            row = require_row(
                await tx.fetchrow(Q.add_guest, guest_email(secrets.token_hex(12)), GUEST_NAME, locale)
            )
            return await self._cookie(tx, row["id"])

    async def name_guest(self, session: Session, *, email: str, name: str) -> None:
        """Set the address for a guest's mail. An account with that address is not involved."""
        await self._postgres.execute(Q.name_guest, session.account_id, normal_email(email), name)

    async def log_in(self, *, email: str, password: str, address: str, guest: Session | None) -> str:
        """The cookie of the account; what the guest held before is the account's from now on."""
        account_id = await self._accounts.known(email=email, password=password, address=address)
        async with self._postgres.transaction() as tx:
            if guest is not None and guest.is_guest:
                await tx.execute(Q.take_guest, guest.account_id, account_id)
            cookie = await self._cookie(tx, account_id)
        if guest is not None:
            await self._accounts.end_session(guest.session_id)
        return cookie

    async def sign_up(
        self, *, email: str, password: str, name: str, locale: str, guest: Session | None
    ) -> str:
        """A new account; a guest becomes one and keeps what it has."""
        hashed = await self._accounts.hashed(password)
        async with self._postgres.transaction() as tx:
            if guest is not None and guest.is_guest:
                row = await self._become(tx, guest, normal_email(email), name, hashed)
            else:
                row = await self._accounts.add(tx, email=email, name=name, hashed=hashed, locale=locale)
            if row is None:
                raise EmailTaken
            cookie = await self._cookie(tx, row["id"])
        if guest is not None:
            await self._accounts.end_session(guest.session_id)
        return cookie

    async def log_out(self, session: Session) -> None:
        await self._accounts.end_session(session.session_id)

    async def _become(self, tx: Transaction, guest: Session, email: str, name: str, hashed: str) -> Any:
        try:
            return await tx.fetchrow(Q.become_account, guest.account_id, email, name, hashed)
        except asyncpg.UniqueViolationError:  # a concurrent sign-up used the same address
            raise EmailTaken from None

    async def _cookie(self, tx: Transaction, account_id: int) -> str:
        session_id = await self._accounts.open_session(tx, account_id)
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        await tx.execute(Q.add_cookie, digest(cookie), session_id)
        return cookie


def _visit(row: Any) -> Session:
    return Session(
        account=build_account(row),
        session_id=row["session_id"],
        contact_email=row["contact_email"],
        is_guest=row["is_guest"],
        owner_ids=(row["id"], *row["guests"]),
        seen_at=row["seen_at"],
    )
