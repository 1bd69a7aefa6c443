"""The only file in people/ that talks to engines: accounts, sessions and keys in the ledger, tries in Redis.

Who may ask is decided from memory: `verify` reads nothing. `catch_up` reads who logged out elsewhere every
few seconds; when it could not for REVOCATIONS_STALE_MAX_S, every token is refused (EngineDown).
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from holdfast.accounts.account import (
    DUMMY_HASH,
    GUEST_HOST,
    LANGUAGES,
    Account,
    NewAccount,
    SignedIn,
    build_account,
    digest,
    guest_email,
    hash_password,
    is_dated,
    matches_hash,
    normal_email,
)
from holdfast.accounts.errors import AccountBanned, BadCredentials, SecondFactorRequired, WrongPassword
from holdfast.accounts.password_threads import PasswordThreads
from holdfast.accounts.second_factor import FirstStep, is_complete
from holdfast.accounts.sign_in_steps import SignInSteps
from holdfast.accounts.staff_log import record_key, record_role, record_sign_in
from holdfast.accounts.token import LEEWAY_S, SigningKey, Tokens, claims_for, sign, signing_key
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.engines.redis import Redis
from holdfast.errors import TokenExpired, TokenInvalid
from holdfast.web.caller import Caller, Role
from holdfast.web.rate_limits import RateLimits

Q = Queries("holdfast.accounts")
log = structlog.get_logger(__name__)

REVOCATIONS_STALE_MAX_S = 60
# A token may be signed a moment after its session has ended, and is good a moment longer than it says.
REVOCATIONS_SLACK_S = 60 + LEEWAY_S
CATCH_UP_RETRY_S = 1
KEY_KNOWN_AFTER_S = 120  # every process has read a new signing key by then
PRUNE_MAX = 1_000
ADD_MAX = 5_000
REFRESH_TOKEN_BYTES = 32
DEVICE_LENGTH_MAX = 300  # of a User-Agent

AlsoAtSignUp = Callable[[Transaction, int], Awaitable[None]]  # the new account


async def replace_signing_keys(tx: Queryable) -> None:
    """One new key and none of the old ones, in the caller's transaction: every access token is refused."""
    await tx.execute(Q.lock_signing_keys)
    await tx.execute(Q.drop_signing_keys)
    await tx.execute(Q.add_signing_key, SigningKey.new_json(), 0)


class Accounts:
    def __init__(
        self,
        postgres: Postgres,
        redis: Redis,
        config: Config,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._postgres = postgres
        self._config = config
        self._monotonic = monotonic
        self._wall = wall
        self._trusted_until = -1.0
        self._revocations_s = config.access_ttl_s + REVOCATIONS_SLACK_S
        self._tokens = Tokens(life_max_s=config.access_ttl_s, remembered_max=config.tokens_remembered_max)
        self._threads = PasswordThreads(
            at_once_max=config.passwords_at_once_max, waiting_max=config.passwords_waiting_max
        )
        self.limits = RateLimits(redis, config, monotonic=monotonic)
        self.steps = SignInSteps(postgres)

    async def open(self) -> None:
        """Creates the first signing key if none exists, and loads the revocation list."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock_signing_keys)
            if not await tx.fetch(Q.signing_keys):
                await tx.execute(Q.add_signing_key, SigningKey.new_json(), 0)
        await self._read_trust()

    async def close(self) -> None:
        self._threads.close()

    def verify(self, authorization: str | None) -> Caller:
        """Who sent this Authorization header; NotSignedIn, TokenExpired or TokenInvalid otherwise."""
        now = self._monotonic()
        if now > self._trusted_until:
            raise EngineDown("ledger")
        return self._tokens.verify(authorization, now=now, wall=self._wall())

    async def catch_up(self) -> int:
        """A job of every web process: read the signing keys, and who was revoked by other processes.

        While PostgreSQL is down it polls every second, so that sign-in works again soon after its return.
        """
        try:
            await self._read_trust()
        except EngineDown as down:
            log.warning("revocations not read", reason=str(down))
            await asyncio.sleep(CATCH_UP_RETRY_S)
            return 1
        return 0

    async def _read_trust(self) -> None:
        began = self._monotonic()
        keys = await self._postgres.fetch(Q.signing_keys)
        rows = await self._postgres.fetch(Q.revocations, self._revocations_s)
        self._tokens.trust(SigningKey.from_json(row["jwk"], row["signs_from"]) for row in keys)
        self._tokens.drop_lapsed(began)
        for row in rows:
            if row["kind"] == "session":
                self._tokens.end_session(row["id"], until=began + self._revocations_s)
            else:
                self._tokens.raise_version(row["id"], row["version"], until=began + self._revocations_s)
        self._trusted_until = began + REVOCATIONS_STALE_MAX_S

    async def prune(self) -> int:
        """A job: forget sessions, refresh tokens and signing keys that nothing can refer to any more."""
        await self._postgres.execute(Q.drop_old_signing_keys, self._revocations_s)
        await self.steps.prune()
        sessions = await self._postgres.fetchval(Q.prune_sessions, PRUNE_MAX)
        return int(sessions + await self._postgres.fetchval(Q.prune_refresh_tokens, PRUNE_MAX))

    async def rotate_key(self, *, revoke: bool = False) -> None:
        """A new signing key. It signs once every process knows it; the old one stays good for its tokens.

        With `revoke` it signs at once, and a process refuses what older keys have signed as soon as it has
        read the keys again. Clients get a new token with their refresh token.
        """
        async with self._postgres.transaction() as tx:
            if revoke:
                await replace_signing_keys(tx)
            else:
                await tx.execute(Q.add_signing_key, SigningKey.new_json(), KEY_KNOWN_AFTER_S)
            await record_key(tx, is_revoked=revoke)
        await self._read_trust()

    @property
    def signing_key(self) -> SigningKey:
        return signing_key(self._tokens.keys, self._wall())

    def access_token(self, caller: Caller, version: int = 1) -> str:
        ttl_s = self._config.access_ttl_s
        return sign(self.signing_key, claims_for(caller, version=version, now=self._wall(), ttl_s=ttl_s))

    async def sign_up(
        self,
        *,
        email: str,
        password: str,
        name: str,
        locale: str = LANGUAGES[0],
        device: str = "",
        also: AlsoAtSignUp | None = None,
    ) -> SignedIn:
        """A new account. Whether the address is another account's, the answer does not reveal.

        `also` is written in the same transaction: if it fails, there is no account, and a retry makes one.
        """
        hashed = await self.hashed(password)
        async with self._postgres.transaction() as tx:
            row = await self.add(tx, email=email, name=name, hashed=hashed, locale=locale)
            if also is not None:
                await also(tx, row["id"])
            return await self._open_session(tx, build_account(row), device, FirstStep.PASSWORD)

    async def hashed(self, password: str, *, is_known: bool = False) -> str:
        return await self._threads.run(hash_password, password, is_known=is_known)

    async def add(self, tx: Transaction, *, email: str, name: str, hashed: str, locale: str) -> Any:
        """The row of a new fan, in the caller's transaction."""
        made_up = guest_email(secrets.token_hex(12))
        return require_row(
            await tx.fetchrow(Q.add_sign_up, made_up, normal_email(email), name, hashed, locale)
        )

    async def log_in(self, *, email: str, password: str, address: str, device: str = "") -> SignedIn:
        row = await self._known(email, password, address)
        return await self.sign_in(build_account(row), device, FirstStep.PASSWORD)

    async def sign_in(
        self, account: Account, device: str = "", signed_in_by: str = FirstStep.LINK
    ) -> SignedIn:
        """A session for an account that has just proved who it is; SecondFactorRequired, if it has one."""
        await self.steps.require_complete(account.account_id, signed_in_by)
        async with self._postgres.transaction() as tx:
            return await self._open_session(tx, account, device, signed_in_by)

    async def known(self, *, email: str, password: str, address: str) -> int:
        """The account with this address and password, or BadCredentials."""
        account_id: int = (await self._known(email, password, address))["id"]
        return account_id

    async def _known(self, email: str, password: str, address: str) -> Any:
        email = normal_email(email)
        # Before the password is looked at: many guesses at once are as few as one after the other.
        tries = await self.limits.take("login", account=email, address=address)
        row = await self._postgres.fetchrow(Q.account_by_email, email)
        known = row["password_hash"] if row is not None else None
        # Unknown addresses and guests cost a hash too, so that the response time reveals nothing.
        fits = await self._threads.run(matches_hash, known or DUMMY_HASH, password, is_known=tries.is_known)
        if row is None or known is None or not fits:
            raise BadCredentials
        await self.limits.give_back(tries)
        if row["banned_at"] is not None:
            raise AccountBanned
        if is_dated(known):
            hashed = await self.hashed(password, is_known=True)
            await self._postgres.execute(Q.set_password, row["id"], known, hashed)
        return row

    async def refresh(self, refresh_token: str) -> SignedIn:
        """A new pair of tokens for a refresh token, which is used up by it."""
        hashed = digest(refresh_token)
        async with self._postgres.transaction() as tx:
            used = await tx.fetchrow(Q.use_refresh_token, hashed)
            if used is not None:
                row = require_row(await tx.fetchrow(Q.account_by_id, used["account_id"]))
                await tx.execute(Q.extend_session, used["session_id"], self._config.refresh_ttl_s)
                return await self._signed_in(tx, build_account(row), used["session_id"])
        raise await self._unusable(hashed)

    async def _unusable(self, hashed: bytes) -> TokenInvalid | TokenExpired:
        """Why a refresh token is refused.

        One that comes back after its use was copied. Whether the first or the second to use it is the thief,
        cannot be known, so the whole session ends.
        """
        row = await self._postgres.fetchrow(Q.look_at_refresh_token, hashed)
        if row is None:
            return TokenInvalid()
        if row["is_used"]:
            await self._end_session(row["session_id"], "reuse")
            log.warning("refresh token used twice", session_id=row["session_id"])
            return TokenInvalid()
        return TokenExpired() if row["is_expired"] else TokenInvalid()

    async def log_out(self, authorization: str | None) -> None:
        """End the session of this token. Doing so again is allowed, and gives the same response."""
        session_id = self._tokens.read(authorization, self._wall()).sid
        await self._end_session(session_id, "logout")

    async def change_password(self, caller: Caller, *, current: str, new: str, address: str) -> None:
        """A new password; every other session of the account ends."""
        known = await self.check_password(caller.account_id, current, address)
        hashed = await self.hashed(new, is_known=True)
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.set_password, caller.account_id, known, hashed) is None:
                raise WrongPassword
            ended = await self.end_sessions(tx, caller.account_id, "password", caller.session_id)
        self.refuse_sessions(ended)

    async def check_password(self, account_id: int, password: str, address: str) -> str | None:
        """The stored hash, if this is the password; WrongPassword otherwise.

        An account without a password has proved itself by a mailed link: there is nothing to compare.
        """
        row = await self._postgres.fetchrow(Q.password_of, account_id)
        if row is None:
            raise TokenInvalid
        known: str | None = row["password_hash"]
        if known is None and row["email"].endswith(f"@{GUEST_HOST}"):
            raise WrongPassword
        if known is not None:
            tries = await self.limits.take("login", account=row["email"], address=address)
            if not await self._threads.run(matches_hash, known, password, is_known=tries.is_known):
                raise WrongPassword
            await self.limits.give_back(tries)
        return known

    async def end_sessions(
        self, tx: Queryable, account_id: int, reason: str, but_session: int = 0
    ) -> list[int]:
        """In the caller's transaction; after it, refuse_sessions."""
        ended = await tx.fetch(Q.end_other_sessions, account_id, but_session, reason)
        return [row["id"] for row in ended]

    def refuse_sessions(self, session_ids: Sequence[int]) -> None:
        """Their access tokens are refused by this process at once, by the others within seconds."""
        for session_id in session_ids:
            self._tokens.end_session(session_id, until=self._monotonic() + self._revocations_s)

    async def set_role(self, account_id: int, role: Role) -> None:
        """Tokens of the old role are refused from now on."""
        async with self._postgres.transaction() as tx:
            version = await self.change_role(tx, account_id, role)
        self.refuse_version(account_id, version)

    async def change_role(self, tx: Transaction, account_id: int, role: Role) -> int | None:
        """In the caller's transaction; after it, refuse_version."""
        before = await tx.fetchval(Q.lock_role, account_id)
        version: int | None = await tx.fetchval(Q.set_role, account_id, role)
        if version is not None:
            await record_role(tx, account_id, before, role)
        return version

    def refuse_version(self, account_id: int, version: int | None) -> None:
        """Access tokens that are older than `version`; None: it has not changed."""
        if version is not None:
            until = self._monotonic() + self._revocations_s
            self._tokens.raise_version(account_id, version, until=until)

    async def bring_password(self, account_id: int, password: str, hashed: str) -> None:
        """Store the hash, unless the account has this password already."""
        row = require_row(await self._postgres.fetchrow(Q.password_of, account_id))
        known = row["password_hash"]
        if known is None or not await self._threads.run(matches_hash, known, password):
            await self._postgres.execute(Q.set_password, account_id, known, hashed)

    async def set_locale(self, account_id: int, locale: str) -> Account | None:
        row = await self._postgres.fetchrow(Q.set_locale, account_id, locale)
        return None if row is None else build_account(row)

    async def account(self, account_id: int) -> Account | None:
        row = await self._postgres.fetchrow(Q.account_by_id, account_id)
        return None if row is None else build_account(row)

    async def find_account(self, email: str) -> Account | None:
        row = await self._postgres.fetchrow(Q.account_by_email, normal_email(email))
        return None if row is None else build_account(row)

    async def add_many(self, accounts: Sequence[NewAccount]) -> list[int]:
        """Their ids, in order. Made for demo data and load tests: no password is hashed here."""
        ids: dict[str, int] = {}
        for start in range(0, len(accounts), ADD_MAX):
            some = accounts[start : start + ADD_MAX]
            rows = await self._postgres.fetch(
                Q.add_accounts,
                [normal_email(a.email) for a in some],
                [a.name for a in some],
                [a.password_hash for a in some],
                [a.role for a in some],
                [a.is_verified for a in some],
            )
            ids.update((row["email"], row["id"]) for row in rows)
        return [ids[normal_email(a.email)] for a in accounts]

    async def open_session(self, tx: Transaction, account_id: int, device: str, signed_in_by: str) -> int:
        """A session, in the caller's transaction; its number. Callers have used `steps.require_complete`."""
        args = (account_id, self._config.refresh_ttl_s, device[:DEVICE_LENGTH_MAX], signed_in_by)
        session = require_row(await tx.fetchrow(Q.open_session, *args))
        if session["has_factor"] and not is_complete(signed_in_by):
            raise SecondFactorRequired  # it was set up a moment ago: sign in again
        await tx.execute(Q.end_surplus_sessions, account_id, self._config.sessions_max)
        await record_sign_in(tx, account_id, session["role"])
        return int(session["id"])

    async def end_session(self, session_id: int) -> None:
        await self._end_session(session_id, "logout")

    async def _open_session(
        self, tx: Transaction, account: Account, device: str, signed_in_by: str
    ) -> SignedIn:
        session_id = await self.open_session(tx, account.account_id, device, signed_in_by)
        return await self._signed_in(tx, account, session_id)

    async def _signed_in(self, tx: Transaction, account: Account, session_id: int) -> SignedIn:
        refresh_token = secrets.token_urlsafe(REFRESH_TOKEN_BYTES)
        await tx.execute(Q.add_refresh_token, digest(refresh_token), session_id, self._config.refresh_ttl_s)
        caller = Caller(account.account_id, account.role, session_id, account.is_verified)
        return SignedIn(account, self.access_token(caller, account.version), refresh_token)

    async def _end_session(self, session_id: int, reason: str) -> None:
        await self._postgres.execute(Q.end_session, session_id, reason)
        self._tokens.end_session(session_id, until=self._monotonic() + self._revocations_s)
