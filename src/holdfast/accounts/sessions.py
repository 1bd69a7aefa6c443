"""Browser sessions: a cookie is a random text, its hash is a row, and it ends with its session.

The cookie is replaced whenever the identity behind it changes (a guest, an account): a planted one is
worthless after that. A guest is an account without a password and without a proved address; signing up gives
it a password, logging in to another account gives that account what the guest has. The link in a guest's mail
shows the guest's bookings in the session of the browser that opens it.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from holdfast.accounts.account import Account, build_account, digest, guest_email, normal_email
from holdfast.accounts.second_factor import FirstStep
from holdfast.accounts.store import Accounts
from holdfast.config import Config
from holdfast.engines.batch import Batcher
from holdfast.engines.postgres import Postgres, Queries, Transaction, require_row
from holdfast.web.caller import Role

Q = Queries("holdfast.accounts", "sessions")
COOKIE_BYTES = 32
GUEST_NAME = "Guest"
USE_NOTED_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Session:
    account: Account
    session_id: int
    contact_email: str | None  # where a guest receives mail; None: not given yet, or not a guest
    is_guest: bool
    owner_ids: tuple[int, ...]  # whose bookings are theirs: the account first, then guests it once was
    seen_at: datetime = field(compare=False)  # when that was looked up, by the ledger's clock
    last_used_at: datetime = field(compare=False)  # to some minutes

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
        session = await self._look(digest(cookie))
        if session is not None and session.seen_at - session.last_used_at > USE_NOTED_AFTER:
            await self._postgres.execute(Q.note_use, session.session_id)
        return session

    async def _visits(self, hashes: Sequence[bytes]) -> list[Session | None]:
        found = {row["hash"]: _visit(row) for row in await self._postgres.fetch(Q.visits, hashes)}
        return [found.get(one) for one in hashes]

    async def open_guest(self, locale: str, address: str = "", device: str = "") -> str:
        """A guest, and the cookie that speaks for it; TooManyRequests where one address opens very many."""
        await self._accounts.limits.take("guest", address=address)
        async with self._postgres.transaction() as tx:
            return await self._cookie(tx, await self._add_guest(tx, locale), device)

    async def _add_guest(self, tx: Transaction, locale: str) -> int:
        made_up = guest_email(secrets.token_hex(12))
        return int(require_row(await tx.fetchrow(Q.add_guest, made_up, GUEST_NAME, locale))["id"])

    async def name_guest(self, session: Session, *, email: str, name: str) -> None:
        """Set the address for a guest's mail. An account with that address is not involved."""
        await self._postgres.execute(Q.name_guest, session.account_id, normal_email(email), name)

    async def log_in(
        self, *, email: str, password: str, address: str, guest: Session | None, device: str = ""
    ) -> str:
        """The cookie of the account; what the guest held before is the account's from now on."""
        account_id = await self._accounts.known(email=email, password=password, address=address)
        return await self.open_account(account_id, guest, device, FirstStep.PASSWORD)

    async def open_account(
        self,
        account_id: int,
        guest: Session | None,
        device: str = "",
        signed_in_by: str = FirstStep.LINK,
    ) -> str:
        """The cookie of an account that has just proved who it is; the session before it ends.

        SecondFactorRequired, if the account has one and this was the first step.
        """
        await self._accounts.steps.require_complete(account_id, signed_in_by)
        async with self._postgres.transaction() as tx:
            if guest is not None and guest.is_guest:
                await tx.execute(Q.take_guest, guest.account_id, account_id)
                await tx.execute(Q.merge_counts, guest.account_id)
            cookie = await self._cookie(tx, account_id, device, signed_in_by)
        if guest is not None:
            await self._accounts.end_session(guest.session_id)
        return cookie

    async def sign_up(
        self, *, email: str, password: str, name: str, locale: str, guest: Session | None, device: str = ""
    ) -> str:
        """A new account; a guest becomes one and keeps what it has."""
        hashed = await self._accounts.hashed(password)
        async with self._postgres.transaction() as tx:
            row = None
            if guest is not None and guest.is_guest:
                row = await tx.fetchrow(Q.become_account, guest.account_id, normal_email(email), name, hashed)
            if row is None:
                row = await self._accounts.add(tx, email=email, name=name, hashed=hashed, locale=locale)
            cookie = await self._cookie(tx, row["id"], device, FirstStep.PASSWORD)
        if guest is not None:
            await self._accounts.end_session(guest.session_id)
        return cookie

    async def show_guest(self, guest_id: int, session: Session | None, device: str = "") -> str | None:
        """Show a guest's bookings in this session; without one, the cookie of a session of the guest."""
        async with self._postgres.transaction() as tx:
            if session is None:
                return await self._cookie(tx, guest_id, device)
            await tx.execute(Q.open_guest_bookings, session.session_id, guest_id)
            return None

    async def open_proved_guest(
        self, tx: Transaction, email: str, locale: str, device: str
    ) -> tuple[int, str]:
        """(A new guest whose address a mailed link has just proved, the cookie that speaks for it)."""
        guest_id = await self._add_guest(tx, locale)
        await self.prove_guest(tx, guest_id, email)
        return guest_id, await self._cookie(tx, guest_id, device)

    async def prove_guest(self, tx: Transaction, guest_id: int, email: str) -> None:
        """The address is a guest's; an account with that address sees the guest's tickets."""
        await tx.execute(Q.prove_guest, guest_id, email)
        await tx.execute(Q.merge_counts, guest_id)

    async def log_out(self, session: Session) -> None:
        await self._accounts.end_session(session.session_id)

    async def _cookie(self, tx: Transaction, account_id: int, device: str, signed_in_by: str = "") -> str:
        session_id = await self._accounts.open_session(tx, account_id, device, signed_in_by)
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        await tx.execute(Q.add_cookie, digest(cookie), session_id)
        return cookie


def _visit(row: Any) -> Session:
    return Session(
        account=build_account(row),
        session_id=row["session_id"],
        contact_email=row["contact_email"],
        is_guest=row["is_guest"],
        owner_ids=(row["id"], *(one for one in row["guests"] if one != row["id"])),
        seen_at=row["seen_at"],
        last_used_at=row["last_used_at"],
    )
