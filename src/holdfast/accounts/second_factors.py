"""Second factors in the ledger: set up, used at a sign-in, renewed, removed.

Every change is mailed to its owner and recorded in the audit log, in the transaction of the change. A code is
used up by an update that compares: of two requests with the same code, one gets in.
"""

import secrets
from typing import Any
from urllib.parse import urlsplit

from holdfast.accounts.account import Account, build_account, digest
from holdfast.accounts.errors import NoSecondFactor, SecondFactorExists, WrongCode
from holdfast.accounts.mail_token import PersonMail, PersonMails
from holdfast.accounts.second_factor import (
    NONCE_BYTES,
    PERIOD_S,
    RECOVERY_BYTES,
    RECOVERY_CODES,
    SECRET_BYTES,
    FactorStatus,
    Passkey,
    Seal,
    SecondStep,
    StepPurpose,
    enrolment_uri,
    find_step,
    is_totp,
    normal_code,
    recovery_code,
    secret_as_text,
)
from holdfast.accounts.staff_log import record_own_account
from holdfast.accounts.store import Accounts
from holdfast.config import Config
from holdfast.engines.postgres import Postgres, Queries, Queryable, Transaction, require_row
from holdfast.errors import TokenInvalid

Q = Queries("holdfast.accounts", "second_factors")
ISSUER = "Holdfast"


class SecondFactors:
    def __init__(self, postgres: Postgres, accounts: Accounts, mails: PersonMails, config: Config) -> None:
        self._postgres = postgres
        self._accounts = accounts
        self._mails = mails
        self._seal = Seal(config.totp_key)
        self._issuer = urlsplit(config.public_url).hostname or ISSUER

    async def status(self, account_id: int) -> FactorStatus:
        row = require_row(await self._postgres.fetchrow(Q.status, account_id))
        passkeys = [
            Passkey(one["id"], one["name"], one["created_at"], one["last_used_at"])
            for one in await self._postgres.fetch(Q.passkeys, account_id)
        ]
        return FactorStatus(row["totp_since"], passkeys, row["codes_left"])

    # ── signing in ────────────────────────────────────────────────────────────────────

    async def complete_sign_in(self, token: str, code: str, address: str) -> tuple[Account, str]:
        """(The account, how it signed in), for the second step of a sign-in."""
        step = await self._accounts.steps.look(token, StepPurpose.SECOND)
        account_id = step.account_id or 0
        tries = await self._take(account_id, address)
        try:
            async with self._postgres.transaction() as tx:
                await self._accounts.steps.use(tx, token, StepPurpose.SECOND)
                second = await self._use_code(tx, account_id, code)
        except WrongCode:
            await self._accounts.steps.count_wrong(token)
            raise
        await self._accounts.limits.give_back(tries)
        return build_account(await self._person(account_id)), step.signed_in_by(second)

    async def prove_again(self, account_id: int, *, password: str, code: str, address: str) -> None:
        """Before a change: the password, or a code. WrongPassword or WrongCode."""
        if code:
            tries = await self._take(account_id, address)
            async with self._postgres.transaction() as tx:
                await self._use_code(tx, account_id, code)
            await self._accounts.limits.give_back(tries)
            return
        known = await self._accounts.check_password(account_id, password, address)
        if known is None and (await self.status(account_id)).is_on:
            raise WrongCode  # without a password, the second factor alone proves who it is

    async def _take(self, account_id: int, address: str) -> Any:
        """The limits of wrong passwords, in buckets of their own: a stranger's guesses do not fill them."""
        return await self._accounts.limits.take("login", account=f"second {account_id}", address=address)

    async def _use_code(self, tx: Transaction, account_id: int, typed: str) -> SecondStep:
        code = normal_code(typed)
        if is_totp(code):
            if await self._use_totp(tx, account_id, code, is_confirmed=True):
                return SecondStep.TOTP
        elif await tx.fetchval(Q.use_recovery_code, account_id, digest(code)) is not None:
            await self.announce(tx, account_id, "account.recovery_code_used")
            return SecondStep.RECOVERY
        raise WrongCode

    async def _use_totp(self, tx: Queryable, account_id: int, code: str, *, is_confirmed: bool) -> bool:
        row = await tx.fetchrow(Q.totp, account_id, PERIOD_S, is_confirmed)
        secret = self._seal.open(row["secret"], account_id) if row is not None else None
        if row is None or secret is None or not is_totp(code):
            return False
        step = find_step(secret, code, row["now_step"], row["last_step"])
        return step is not None and await tx.fetchval(Q.use_totp, account_id, step) is not None

    # ── the authenticator app ─────────────────────────────────────────────────────────

    async def begin_totp(self, account_id: int) -> tuple[str, str]:
        """(The secret as text, what the QR code says). In use once confirm_totp has had a right code."""
        person, secret = await self._person(account_id), secrets.token_bytes(SECRET_BYTES)
        sealed = self._seal.close(secret, account_id, secrets.token_bytes(NONCE_BYTES))
        if await self._postgres.fetchval(Q.begin_totp, account_id, sealed) is None:
            raise SecondFactorExists
        email = build_account(person).email
        return secret_as_text(secret), enrolment_uri(secret, self._issuer, email)

    async def pending_totp(self, account_id: int) -> tuple[str, str] | None:
        """The same again, while it is being set up."""
        row = await self._postgres.fetchrow(Q.totp, account_id, PERIOD_S, False)
        secret = self._seal.open(row["secret"], account_id) if row is not None else None
        if secret is None:
            return None
        email = build_account(await self._person(account_id)).email
        return secret_as_text(secret), enrolment_uri(secret, self._issuer, email)

    async def confirm_totp(self, account_id: int, code: str, address: str, session_id: int) -> list[str]:
        """Recovery codes, if the account had none. Its other sessions end: they had one factor."""
        tries = await self._take(account_id, address)
        async with self._postgres.transaction() as tx:
            if await tx.fetchrow(Q.totp, account_id, PERIOD_S, False) is None:
                raise NoSecondFactor
            if not await self._use_totp(tx, account_id, normal_code(code), is_confirmed=False):
                raise WrongCode
            if await tx.fetchval(Q.confirm_totp, account_id) is None:
                raise NoSecondFactor
            codes, ended = await self.after_first(tx, account_id, session_id)
            await self.announce(tx, account_id, "account.totp_added")
        await self._accounts.limits.give_back(tries)
        self._accounts.refuse_sessions(ended)
        return codes

    async def remove_totp(self, account_id: int) -> None:
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.remove_totp, account_id) is None:
                raise NoSecondFactor
            await self.after_last(tx, account_id)
            await self.announce(tx, account_id, "account.totp_removed")

    # ── recovery codes ────────────────────────────────────────────────────────────────

    async def renew_codes(self, account_id: int) -> list[str]:
        """New ones; the old ones end."""
        if not (await self.status(account_id)).is_on:
            raise NoSecondFactor
        async with self._postgres.transaction() as tx:
            codes = await self._new_codes(tx, account_id)
            await self.announce(tx, account_id, "account.recovery_codes_renewed")
        return codes

    async def _new_codes(self, tx: Transaction, account_id: int) -> list[str]:
        codes = [recovery_code(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]
        await tx.execute(Q.drop_codes, account_id)
        await tx.execute(Q.add_codes, account_id, [digest(normal_code(code)) for code in codes])
        return codes

    # ── what every change does ────────────────────────────────────────────────────────

    async def after_first(
        self, tx: Transaction, account_id: int, session_id: int
    ) -> tuple[list[str], list[int]]:
        """(New recovery codes, sessions that ended), if the factor that was just added is the only one."""
        await tx.execute(Q.lock, account_id)
        if await tx.fetchval(Q.count_factors, account_id) != 1:
            return [], []
        ended = await self._accounts.end_sessions(tx, account_id, "factor", session_id)
        return await self._new_codes(tx, account_id), ended

    async def after_last(self, tx: Transaction, account_id: int) -> None:
        """Recovery codes end with the last factor."""
        await tx.execute(Q.lock, account_id)
        if await tx.fetchval(Q.count_factors, account_id) == 0:
            await tx.execute(Q.drop_codes, account_id)

    async def remove_all(self, account_id: int) -> None:
        """By an administrator, for a person who has lost them. Every session ends."""
        async with self._postgres.transaction() as tx:
            if await tx.fetchval(Q.remove_all, account_id) == 0:
                raise NoSecondFactor
            await tx.execute(Q.drop_codes, account_id)
            ended = await self._accounts.end_sessions(tx, account_id, "factor")
            await self.announce(tx, account_id, "account.second_factor_removed")
        self._accounts.refuse_sessions(ended)

    async def announce(self, tx: Transaction, account_id: int, action: str) -> None:
        """Mails it to the person and records it under this name. The last statement of a transaction."""
        row = require_row(await tx.fetchrow(Q.person, account_id))
        if row["verified_at"] is not None:
            await self._mails.request(
                tx,
                PersonMail(action.removeprefix("account.")),
                email=row["email"],
                account_id=account_id,
                locale=row["locale"],
            )
        await record_own_account(tx, action, account_id)

    async def _person(self, account_id: int) -> Any:
        row = await self._postgres.fetchrow(Q.person, account_id)
        if row is None:
            raise TokenInvalid
        return row
