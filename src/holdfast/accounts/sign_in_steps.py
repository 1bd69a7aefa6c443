"""Steps of sign-ins in the ledger: begun, and used once within minutes. second_factor.py has the drawing."""

import secrets

from holdfast.accounts.account import digest
from holdfast.accounts.errors import SecondFactorRequired, SignInExpired
from holdfast.accounts.second_factor import (
    STEP_TRIES_MAX,
    STEP_TTL_S,
    TOKEN_BYTES,
    SignInStep,
    StepPurpose,
    is_complete,
)
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row

Q = Queries("holdfast.accounts", "sign_in_steps")
PRUNE_MAX = 1_000


class SignInSteps:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def require_complete(self, account_id: int, signed_in_by: str) -> None:
        """SecondFactorRequired, if the account has a second factor and this sign-in was one step."""
        if is_complete(signed_in_by):
            return
        has = require_row(await self._postgres.fetchrow(Q.factors_of, account_id))
        if not (has["totp"] or has["passkeys"]):
            return
        token = await self.begin(StepPurpose.SECOND, account_id, signed_in_by)
        named = {"totp": has["totp"], "passkey": has["passkeys"], "recovery": has["codes"]}
        methods = [name for name, is_there in named.items() if is_there]
        raise SecondFactorRequired(token=token, methods=methods, expires_in=STEP_TTL_S)

    async def begin(self, purpose: StepPurpose, account_id: int | None, first: str = "") -> str:
        """The token that continues it. The ledger has its hash."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        await self._postgres.execute(Q.begin, digest(token), purpose, account_id, first, STEP_TTL_S)
        return token

    async def look(self, token: str, purpose: StepPurpose) -> SignInStep:
        """Nothing is used up."""
        row = await self._postgres.fetchrow(Q.look, digest(token), purpose)
        if row is None:
            raise SignInExpired
        return SignInStep(row["account_id"], row["first"])

    async def use(self, tx: Queryable, token: str, purpose: StepPurpose) -> SignInStep:
        """In the transaction that completes it: of two requests at once, one gets it."""
        row = await tx.fetchrow(Q.use, digest(token), purpose)
        if row is None:
            raise SignInExpired
        return SignInStep(row["account_id"], row["first"])

    async def count_wrong(self, token: str) -> None:
        """After STEP_TRIES_MAX wrong codes the sign-in begins again with its first step."""
        await self._postgres.execute(Q.count_wrong, digest(token), STEP_TRIES_MAX)

    async def prune(self) -> int:
        return int(await self._postgres.fetchval(Q.prune, PRUNE_MAX))
