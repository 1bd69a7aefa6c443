"""The only file in people/ that talks to engines: accounts, sessions and keys in the ledger, tries in Redis.

Who may ask is decided from memory: `verify` reads nothing. `catch_up` reads who logged out elsewhere every
few seconds; when it could not for REVOCATIONS_STALE_MAX_S, every token is refused (EngineDown).
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import structlog

from holdfast.accounts.account import (
    DUMMY_HASH,
    LANGUAGES,
    Account,
    NewAccount,
    SignedIn,
    build_account,
    digest,
    hash_password,
    is_dated,
    matches_hash,
    normal_email,
)
from holdfast.accounts.errors import BadCredentials, EmailTaken, WrongPassword
from holdfast.accounts.token import LEEWAY_S, SigningKey, Tokens, claims_for, sign, signing_key
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.engines.redis import Redis, Script
from holdfast.errors import Busy, TokenExpired, TokenInvalid
from holdfast.web.caller import Caller, Role
from holdfast.web.guards import GUESTS_WINDOW_S, LOGINS_WINDOW_S, Buckets, normalise_address, too_many

Q = Queries("holdfast.accounts")
LIMIT = Script("holdfast.accounts", "limit")
log = structlog.get_logger(__name__)

REVOCATIONS_STALE_MAX_S = 60
# A token may be signed a moment after its session has ended, and is good a moment longer than it says.
REVOCATIONS_SLACK_S = 60 + LEEWAY_S
CATCH_UP_RETRY_S = 1
KEY_KNOWN_AFTER_S = 120  # every process has read a new signing key by then
PRUNE_MAX = 1_000
ADD_MAX = 5_000
LOGIN_KEYS_MAX = 10_000
REFRESH_TOKEN_BYTES = 32

Result = TypeVar("Result")


async def replace_signing_keys(tx: Queryable) -> None:
    """One new key and none of the old ones, in the caller's transaction: every access token is refused."""
    await tx.execute(Q.lock_signing_keys)
    await tx.execute(Q.drop_signing_keys)
    await tx.execute(Q.add_signing_key, SigningKey.new_json(), 0)


class PasswordThreads:
    """argon2 in threads, a few at a time; when too many wait for theirs, Busy at once."""

    def __init__(self, *, at_once_max: int, waiting_max: int) -> None:
        self._threads = ThreadPoolExecutor(at_once_max, thread_name_prefix="password")
        self._under_way = 0
        self._under_way_max = at_once_max + waiting_max

    async def run(self, work: Callable[..., Result], *args: str) -> Result:
        if self._under_way >= self._under_way_max:
            raise Busy(retry_after_s=2)
        self._under_way += 1
        hash_under_way = asyncio.get_running_loop().run_in_executor(self._threads, work, *args)
        # Counted down when the thread is done, not when the caller gives up: the work goes on without them.
        hash_under_way.add_done_callback(self._done)
        return await asyncio.shield(hash_under_way)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: asyncio.Future[Result]) -> None:
        self._under_way -= 1


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
        self._redis = redis
        self._config = config
        self._monotonic = monotonic
        self._wall = wall
        self._trusted_until = -1.0
        self._revocations_s = config.access_ttl_s + REVOCATIONS_SLACK_S
        self._tokens = Tokens(life_max_s=config.access_ttl_s, remembered_max=config.tokens_remembered_max)
        self._threads = PasswordThreads(
            at_once_max=config.passwords_at_once_max, waiting_max=config.passwords_waiting_max
        )
        self._login_tries = Buckets(
            quota=max(1, config.logins_per_minute_max), window_s=LOGINS_WINDOW_S, keys_max=LOGIN_KEYS_MAX
        )
        self._guests = Buckets(
            quota=max(1, config.guests_per_minute_max), window_s=GUESTS_WINDOW_S, keys_max=LOGIN_KEYS_MAX
        )

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
        await self._read_trust()

    @property
    def signing_key(self) -> SigningKey:
        return signing_key(self._tokens.keys, self._wall())

    def access_token(self, caller: Caller, version: int = 1) -> str:
        ttl_s = self._config.access_ttl_s
        return sign(self.signing_key, claims_for(caller, version=version, now=self._wall(), ttl_s=ttl_s))

    async def sign_up(self, *, email: str, password: str, name: str, locale: str = LANGUAGES[0]) -> SignedIn:
        hashed = await self.hashed(password)
        async with self._postgres.transaction() as tx:
            row = await self.add(tx, email=email, name=name, hashed=hashed, locale=locale)
            if row is None:
                raise EmailTaken
            return await self._open_session(tx, build_account(row))

    async def hashed(self, password: str) -> str:
        return await self._threads.run(hash_password, password)

    async def add(self, tx: Transaction, *, email: str, name: str, hashed: str, locale: str) -> Any:
        """The row of a new fan, in the caller's transaction; None: the address is taken."""
        return await tx.fetchrow(Q.add_account, normal_email(email), name, hashed, Role.FAN, locale)

    async def log_in(self, *, email: str, password: str, address: str) -> SignedIn:
        row = await self._known(email, password, address)
        async with self._postgres.transaction() as tx:
            return await self._open_session(tx, build_account(row))

    async def known(self, *, email: str, password: str, address: str) -> int:
        """The account with this address and password, or BadCredentials."""
        account_id: int = (await self._known(email, password, address))["id"]
        return account_id

    async def _known(self, email: str, password: str, address: str) -> Any:
        email = normal_email(email)
        tries = await self._take_try(email, address)
        row = await self._postgres.fetchrow(Q.account_by_email, email)
        known = row["password_hash"] if row is not None else None
        # Unknown addresses and guests cost a hash too, so that the response time reveals nothing.
        fits = await self._threads.run(matches_hash, known or DUMMY_HASH, password)
        if row is None or known is None or not fits:
            raise BadCredentials
        await self._give_back_tries(tries)
        if is_dated(known):
            hashed = await self.hashed(password)
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
        row = await self._postgres.fetchrow(Q.password_of, caller.account_id)
        if row is None:
            raise TokenInvalid
        known = row["password_hash"]
        tries = await self._take_try(row["email"], address)
        if known is None or not await self._threads.run(matches_hash, known, current):
            raise WrongPassword
        await self._give_back_tries(tries)
        hashed = await self.hashed(new)
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.set_password, caller.account_id, known, hashed) is None:
                raise WrongPassword
            ended = await tx.fetch(Q.end_other_sessions, caller.account_id, caller.session_id)
        for session in ended:
            self._tokens.end_session(session["id"], until=self._monotonic() + self._revocations_s)

    async def set_role(self, account_id: int, role: Role) -> None:
        """Tokens of the old role are refused from now on."""
        version = await self._postgres.fetchval(Q.set_role, account_id, role)
        if version is not None:
            until = self._monotonic() + self._revocations_s
            self._tokens.raise_version(account_id, version, until=until)

    async def set_locale(self, account_id: int, locale: str) -> Account | None:
        row = await self._postgres.fetchrow(Q.set_locale, account_id, locale)
        return None if row is None else build_account(row)

    async def account(self, account_id: int) -> Account | None:
        row = await self._postgres.fetchrow(Q.account_by_id, account_id)
        return None if row is None else build_account(row)

    async def find_account(self, email: str) -> Account | None:
        row = await self._postgres.fetchrow(Q.account_by_email, normal_email(email))
        return None if row is None else build_account(row)

    async def ensure_account(self, *, email: str, password: str, name: str, role: Role) -> Account:
        """The account with this password and role, made or brought into line."""
        email = normal_email(email)
        row = await self._postgres.fetchrow(Q.account_by_email, email)
        if row is None:
            hashed = await self.hashed(password)
            [account_id] = await self.add_many([NewAccount(email, name, role, hashed)])
        else:
            account_id, known = row["id"], row["password_hash"]
            if known is None or not await self._threads.run(matches_hash, known, password):
                hashed = await self.hashed(password)
                await self._postgres.execute(Q.set_password, account_id, known, hashed)
            await self.set_role(account_id, role)
        account = await self.account(account_id)
        assert account is not None
        return account

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
            )
            ids.update((row["email"], row["id"]) for row in rows)
        return [ids[normal_email(a.email)] for a in accounts]

    async def open_session(self, tx: Transaction, account_id: int) -> int:
        """A session, in the caller's transaction; its number."""
        session_id: int = await tx.fetchval(Q.open_session, account_id, self._config.refresh_ttl_s)
        await tx.execute(Q.end_surplus_sessions, account_id, self._config.sessions_max)
        return session_id

    async def end_session(self, session_id: int) -> None:
        await self._end_session(session_id, "logout")

    async def _open_session(self, tx: Transaction, account: Account) -> SignedIn:
        return await self._signed_in(tx, account, await self.open_session(tx, account.account_id))

    async def _signed_in(self, tx: Transaction, account: Account, session_id: int) -> SignedIn:
        refresh_token = secrets.token_urlsafe(REFRESH_TOKEN_BYTES)
        await tx.execute(Q.add_refresh_token, digest(refresh_token), session_id, self._config.refresh_ttl_s)
        caller = Caller(account.account_id, account.role, session_id)
        return SignedIn(account, self.access_token(caller, account.version), refresh_token)

    async def _end_session(self, session_id: int, reason: str) -> None:
        await self._postgres.execute(Q.end_session, session_id, reason)
        self._tokens.end_session(session_id, until=self._monotonic() + self._revocations_s)

    async def _take_try(self, email: str, address: str) -> str:
        """One try less for this account from this address.

        Counted before the password is looked at, so that many guesses at once are as few as one after the
        other; the right password gives them back.
        """
        key = "limit:{login:" + digest(f"{email} {normalise_address(address)}").hex()[:32] + "}"
        if self._config.logins_per_minute_max == 0:
            return key
        if wait_s := await self._wait_s(self._login_tries, key):
            raise too_many(self._login_tries, "login", wait_s)
        return key

    async def count_guest(self, address: str) -> None:
        """One more guest from this address, or TooManyRequests: a client can drop its cookie each time.

        Who comes by a socket without an address is not counted.
        """
        if self._config.guests_per_minute_max == 0 or not address:
            return
        key = "limit:{guest:" + digest(normalise_address(address)).hex()[:32] + "}"
        if wait_s := await self._wait_s(self._guests, key):
            raise too_many(self._guests, "guest", wait_s)

    async def _wait_s(self, buckets: Buckets, key: str) -> float:
        quota, window_ms = buckets.quota, buckets.window_s * 1000
        try:
            reply = await self._redis.script(LIMIT, [key], [quota, window_ms])
        except EngineDown:  # then every process counts for itself: a wider limit, but a limit
            return buckets.take(key, self._monotonic())
        match reply:
            case [b"taken"]:
                return 0.0
            case [b"wait", wait_ms]:
                return int(wait_ms) / 1000
        raise AssertionError(f"limit.lua answered {reply!r}")

    async def _give_back_tries(self, key: str) -> None:
        if self._config.logins_per_minute_max == 0:
            return
        self._login_tries.refill(key)
        try:
            await self._redis.call("DEL", key)
        except EngineDown:
            log.info("tries not given back", engine="holds")
