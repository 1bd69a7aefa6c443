"""Links in mails work once, for a time, for one purpose, address and account (R31)."""

import asyncio

import pytest

from holdfast.accounts import LinkGone, MailToken, MailTokens, NewAccount, Purpose
from holdfast.app import App
from holdfast.engines.postgres import Postgres


@pytest.fixture
def tokens(app: App) -> MailTokens:
    return app.mail_tokens


async def use(postgres: Postgres, tokens: MailTokens, text: str, purpose: Purpose) -> MailToken:
    async with postgres.transaction() as tx:
        return await tokens.use(tx, text, purpose)


async def test_a_link_works_once(postgres: Postgres, tokens: MailTokens, email: str) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.SIGN_IN, email=email))

    looked = [await tokens.look(text) for _ in range(3)]
    used = await use(postgres, tokens, text, Purpose.SIGN_IN)

    assert looked == [used] * 3
    for attempt in (tokens.look(text), use(postgres, tokens, text, Purpose.SIGN_IN)):
        with pytest.raises(LinkGone):
            await attempt


async def test_of_many_tabs_at_once_one_uses_it(postgres: Postgres, tokens: MailTokens, email: str) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.RESET, email=email))

    done = await asyncio.gather(
        *(use(postgres, tokens, text, Purpose.RESET) for _ in range(20)), return_exceptions=True
    )

    assert sum(isinstance(one, MailToken) for one in done) == 1
    assert sum(isinstance(one, LinkGone) for one in done) == 19


@pytest.mark.parametrize("purpose", [one for one in Purpose if one is not Purpose.SIGN_IN])
async def test_a_link_for_one_purpose_serves_no_other(
    postgres: Postgres, tokens: MailTokens, email: str, purpose: Purpose
) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.SIGN_IN, email=email))

    with pytest.raises(LinkGone):
        await use(postgres, tokens, text, purpose)
    assert await use(postgres, tokens, text, Purpose.SIGN_IN)


async def test_an_expired_link_is_gone_and_pruned(postgres: Postgres, tokens: MailTokens, email: str) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.RESET, email=email), 3600)
    await postgres.execute("UPDATE mail_token SET expires_at = now() WHERE email = $1", email)

    for attempt in (tokens.look(text), use(postgres, tokens, text, Purpose.RESET)):
        with pytest.raises(LinkGone):
            await attempt
    while await tokens.prune():
        pass
    assert await postgres.fetchval("SELECT count(*) FROM mail_token WHERE email = $1", email) == 0


async def test_a_mail_that_was_sent_twice_is_used_once(
    postgres: Postgres, tokens: MailTokens, email: str
) -> None:
    """Both copies work until one is used; links of other addresses and purposes stay."""
    same = MailToken(purpose=Purpose.SIGN_IN, email=email)
    first, second = [await tokens.issue(same) for _ in range(2)]
    others = [
        await tokens.issue(MailToken(purpose=Purpose.RESET, email=email)),
        await tokens.issue(MailToken(purpose=Purpose.SIGN_IN, email=f"x{email}")),
    ]

    await use(postgres, tokens, second, Purpose.SIGN_IN)

    with pytest.raises(LinkGone):
        await tokens.look(first)
    assert [(await tokens.look(text)).email for text in others] == [email, f"x{email}"]


async def test_what_the_transaction_takes_back_is_not_used(
    postgres: Postgres, tokens: MailTokens, email: str
) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.RESET, email=email))

    async def used_and_refused() -> None:
        async with postgres.transaction() as tx:
            await tokens.use(tx, text, Purpose.RESET)
            raise LookupError

    with pytest.raises(LookupError):
        await used_and_refused()

    assert (await tokens.look(text)).email == email


async def test_the_ledger_has_no_token(postgres: Postgres, tokens: MailTokens, email: str) -> None:
    text = await tokens.issue(MailToken(purpose=Purpose.RESET, email=email))

    rows = await postgres.fetch("SELECT mail_token::text AS row FROM mail_token WHERE email = $1", email)

    assert email in rows[0]["row"]
    assert text not in rows[0]["row"]
    assert len(text) == 43


async def test_links_end_with_their_account(app: App, postgres: Postgres, email: str) -> None:
    (account_id,) = await app.accounts.add_many([NewAccount(email, "Ann")])
    token = MailToken(purpose=Purpose.RESET, email=email, account_id=account_id)
    text = await app.mail_tokens.issue(token)

    await postgres.execute("DELETE FROM account WHERE id = $1", account_id)

    with pytest.raises(LinkGone):
        await app.mail_tokens.look(text)
