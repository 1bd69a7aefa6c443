"""Tokens of mailed links in the ledger: issued, looked at, used once. mail_token.py says what each is for."""

import secrets

from holdfast.accounts.account import digest
from holdfast.accounts.errors import LinkGone
from holdfast.accounts.mail_token import TOKEN_BYTES, TTL_S, MailToken, Purpose, build_token
from holdfast.engines.postgres import Postgres, Queries, Queryable

Q = Queries("holdfast.accounts", "mail_tokens")
PRUNE_MAX = 1_000


class MailTokens:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def issue(self, token: MailToken, ttl_s: float | None = None) -> str:
        """The text of the link. It is stored nowhere: only the mail has it."""
        text = secrets.token_urlsafe(TOKEN_BYTES)
        await self._postgres.execute(
            Q.add_token,
            digest(text),
            token.purpose,
            token.account_id,
            token.email,
            token.show_id,
            token.number,
            token.edition,
            TTL_S[token.purpose] if ttl_s is None else ttl_s,
        )
        return text

    async def look(self, text: str) -> MailToken:
        """What a link is for. Nothing is used up."""
        row = await self._postgres.fetchrow(Q.look_at_token, digest(text))
        if row is None:
            raise LinkGone
        return build_token(row)

    async def use(self, tx: Queryable, text: str, *purposes: Purpose) -> MailToken:
        """In the transaction that does what it is for; LinkGone for other purposes, too."""
        token = await self.end(tx, text, *purposes)
        if token is None:
            raise LinkGone
        return token

    async def end(self, tx: Queryable, text: str, *purposes: Purpose) -> MailToken | None:
        """After what it is for was done in another database. None: it was used before."""
        row = await tx.fetchrow(Q.use_token, digest(text), purposes)
        if row is None:
            return None
        token = build_token(row)
        await tx.execute(
            Q.end_tokens_alike, token.email, token.purpose, token.account_id, token.show_id, token.number
        )
        return token

    async def end_all(self, tx: Queryable, account_id: int, *emails: str) -> None:
        """No mail that was sent before lets anyone into this account."""
        await tx.execute(Q.end_tokens_of_account, account_id, emails)

    async def prune(self) -> int:
        """A job."""
        return int(await self._postgres.fetchval(Q.prune_tokens, PRUNE_MAX))
