"""Accounts and sessions in the real ledger (R31)."""

import asyncio
from dataclasses import replace

import pytest

from holdfast.accounts import (
    AccountAdmin,
    Accounts,
    BadCredentials,
    MailTokens,
    NewAccount,
    SignedIn,
    WrongPassword,
)
from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.errors import TokenExpired, TokenInvalid
from holdfast.web.caller import Role
from tests.support.account_processes import CONFIG, HERE, PASSWORD, Offices, bearer, is_let_in, signed_up


async def test_signing_up_signs_in(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    caller = people.verify(bearer(ann))
    assert (caller.account_id, caller.role) == (ann.account.account_id, Role.FAN)
    assert await people.account(caller.account_id) == ann.account


async def test_spellings_of_an_address_share_one_account(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email.upper())

    again = await people.log_in(email=email.title(), password=PASSWORD, address=HERE)
    assert again.account == ann.account
    assert again.account.email == email


async def test_a_sign_up_with_a_taken_address_gets_an_account_of_its_own(
    people: Accounts, email: str
) -> None:
    """The same answer as for a new address; it can neither log in nor take anything of the first."""
    ann = await signed_up(people, email)
    eve = await people.sign_up(email=email, password="her own password", name="Eve")
    fresh = await people.sign_up(email=f"x{email}", password="her own password", name="Eve")

    assert eve.account.account_id != ann.account.account_id
    assert (eve.account.email, eve.account.is_verified) == (email, False)
    for address in (email, f"x{email}"):
        with pytest.raises(BadCredentials):
            await people.log_in(email=address, password="her own password", address=HERE)
    assert people.verify(bearer(eve)).role is people.verify(bearer(fresh)).role is Role.FAN
    assert (await people.log_in(email=email, password=PASSWORD, address=HERE)).account == ann.account


async def test_a_sign_up_that_fails_at_its_end_leaves_no_account(
    people: Accounts, email: str, postgres: Postgres
) -> None:
    """Else its retry, with the same Idempotency-Key, would make a second one."""

    async def fail(tx: Transaction, account_id: int) -> None:
        raise EngineDown("postgres")

    with pytest.raises(EngineDown):
        await people.sign_up(email=email, password=PASSWORD, name="Ann", also=fail)

    count = "SELECT count(*) FROM account WHERE contact_email = $1"
    assert await postgres.fetchval(count, email) == 0
    await people.sign_up(email=email, password=PASSWORD, name="Ann")
    assert await postgres.fetchval(count, email) == 1


async def test_neither_password_nor_refresh_token_is_in_the_ledger(
    people: Accounts, email: str, postgres: Postgres
) -> None:
    ann = await signed_up(people, email)

    rows = await postgres.fetch(
        "SELECT account::text || session::text || refresh_token::text AS row FROM account"
        " JOIN session ON account_id = account.id JOIN refresh_token ON session_id = session.id"
        " WHERE email = $1",
        email,
    )
    text = "".join(row["row"] for row in rows)
    assert email in text
    assert PASSWORD not in text
    assert ann.refresh_token not in text


async def test_a_refresh_token_brings_a_new_pair_and_is_used_up(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    again = await people.refresh(ann.refresh_token)

    assert again.refresh_token != ann.refresh_token
    before, after = people.verify(bearer(ann)), people.verify(bearer(again))
    assert (after.account_id, after.session_id) == (before.account_id, before.session_id)
    assert (before.is_verified, after.is_verified) == (False, True), "the address was proved in between"
    assert (await people.refresh(again.refresh_token)).account == ann.account


async def test_a_stolen_refresh_token_ends_the_whole_session(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)
    elsewhere = await people.log_in(email=email, password=PASSWORD, address=HERE)
    again = await people.refresh(ann.refresh_token)

    with pytest.raises(TokenInvalid):
        await people.refresh(ann.refresh_token)

    with pytest.raises(TokenInvalid):
        await people.refresh(again.refresh_token)
    assert not is_let_in(people, ann)
    assert not is_let_in(people, again)
    assert is_let_in(people, elsewhere)


async def test_a_refresh_token_used_by_many_at_once_serves_one_at_most(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    outcomes = await asyncio.gather(
        *(people.refresh(ann.refresh_token) for _ in range(10)), return_exceptions=True
    )

    winners = [outcome for outcome in outcomes if isinstance(outcome, SignedIn)]
    assert len(winners) == 1
    assert sum(isinstance(outcome, TokenInvalid) for outcome in outcomes) == 9
    assert not is_let_in(people, winners[0])


async def test_an_expired_refresh_token_says_so(people: Accounts, email: str, postgres: Postgres) -> None:
    ann = await signed_up(people, email)
    await postgres.execute(
        "UPDATE refresh_token SET expires_at = now() FROM session"
        " WHERE session.id = session_id AND account_id = $1",
        ann.account.account_id,
    )

    with pytest.raises(TokenExpired):
        await people.refresh(ann.refresh_token)


async def test_no_kind_of_token_passes_for_the_other(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    with pytest.raises(TokenInvalid):
        people.verify(f"Bearer {ann.refresh_token}")
    with pytest.raises(TokenInvalid):
        await people.refresh(ann.access_token)


async def test_a_logout_is_felt_at_once_here_and_soon_elsewhere(offices: Offices, email: str) -> None:
    here, there = await offices.open(), await offices.open()
    ann = await signed_up(here, email)
    assert is_let_in(there, ann)

    await here.log_out(bearer(ann))

    assert not is_let_in(here, ann)
    await there.catch_up()
    assert not is_let_in(there, ann)
    with pytest.raises(TokenInvalid):
        await there.refresh(ann.refresh_token)


async def test_a_process_that_starts_later_knows_of_the_logout(offices: Offices, email: str) -> None:
    here = await offices.open()
    ann = await signed_up(here, email)
    await here.log_out(bearer(ann))

    assert not is_let_in(await offices.open(), ann)


async def test_logging_out_twice_succeeds(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    await people.log_out(bearer(ann))
    await people.log_out(bearer(ann))

    assert not is_let_in(people, ann)


async def test_a_new_password_ends_every_other_session(offices: Offices, email: str) -> None:
    here, there = await offices.open(), await offices.open()
    ann = await signed_up(here, email)
    thief = await there.log_in(email=email, password=PASSWORD, address=HERE)

    await here.change_password(here.verify(bearer(ann)), current=PASSWORD, new="a new one", address=HERE)

    assert is_let_in(here, ann)
    assert not is_let_in(here, thief)
    await there.catch_up()
    assert not is_let_in(there, thief)
    with pytest.raises(TokenInvalid):
        await there.refresh(thief.refresh_token)
    with pytest.raises(BadCredentials):
        await here.log_in(email=email, password=PASSWORD, address=HERE)
    assert await here.log_in(email=email, password="a new one", address=HERE)


async def test_changing_the_password_needs_the_old_one(people: Accounts, email: str) -> None:
    ann = await signed_up(people, email)

    with pytest.raises(WrongPassword):
        await people.change_password(
            people.verify(bearer(ann)), current="a guess", new="a new one", address=HERE
        )

    assert await people.log_in(email=email, password=PASSWORD, address=HERE)


async def test_a_new_role_revokes_old_tokens_and_is_in_the_next_one(offices: Offices, email: str) -> None:
    here, there = await offices.open(), await offices.open()
    ann = await signed_up(here, email)
    assert is_let_in(there, ann)

    await here.set_role(ann.account.account_id, Role.ORGANISER)

    assert not is_let_in(here, ann)
    await there.catch_up()
    assert not is_let_in(there, ann)
    assert there.verify(bearer(await there.refresh(ann.refresh_token))).role is Role.ORGANISER


async def test_many_accounts_are_added_in_one_go_and_in_order(people: Accounts, email: str) -> None:
    new = [NewAccount(f"{n}.{email}", f"Fan {n}") for n in range(6_000)]

    ids = await people.add_many(new)

    assert len(set(ids)) == 6_000
    last = await people.account(ids[-1])
    assert last is not None
    assert (last.email, last.name) == (f"5999.{email}", "Fan 5999")
    assert await people.add_many(list(reversed(new[:10]))) == list(reversed(ids[:10]))
    assert await people.add_many([]) == []


async def test_an_account_of_the_demo_is_made_once_and_brought_into_line(
    people: Accounts, postgres: Postgres, email: str
) -> None:
    admin = AccountAdmin(postgres, people, MailTokens(postgres))
    first = await admin.ensure_account(email=email, password=PASSWORD, name="Ada", role=Role.ADMIN)
    again = await admin.ensure_account(email=email, password=PASSWORD, name="Ada", role=Role.ADMIN)
    assert first == again

    changed = await admin.ensure_account(email=email, password="another one", name="Ada", role=Role.GATE)
    assert (changed.account_id, changed.role) == (first.account_id, Role.GATE)
    assert await people.log_in(email=email, password="another one", address=HERE)


async def test_one_login_too_many_ends_the_oldest_session(offices: Offices, email: str) -> None:
    people = await offices.open(replace(CONFIG, sessions_max=2))
    ann = await signed_up(people, email)
    second, third = [await people.log_in(email=email, password=PASSWORD, address=HERE) for _ in range(2)]

    await people.catch_up()

    assert [is_let_in(people, one) for one in (ann, second, third)] == [False, True, True]


async def test_old_ended_sessions_are_pruned(people: Accounts, email: str, postgres: Postgres) -> None:
    ann = await signed_up(people, email)
    old = await people.log_in(email=email, password=PASSWORD, address=HERE)
    await postgres.execute(
        "UPDATE session SET ended_at = now() - interval '2 days', ended_by = 'logout' WHERE id = $1",
        people.verify(bearer(old)).session_id,
    )

    while await people.prune():
        pass

    left = await postgres.fetch("SELECT id FROM session WHERE account_id = $1", ann.account.account_id)
    assert [row["id"] for row in left] == [people.verify(bearer(ann)).session_id]
    assert await people.refresh(ann.refresh_token)
