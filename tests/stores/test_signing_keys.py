"""Signing keys: rotation, trust, and outdated revocation lists (R31)."""

import asyncio
import time

import pytest

from holdfast.accounts import Accounts, NewAccount, claims_for, sign
from holdfast.accounts.store import KEY_KNOWN_AFTER_S, REVOCATIONS_STALE_MAX_S
from holdfast.engines.errors import EngineDown
from holdfast.web.caller import Caller, Role
from tests.support.account_processes import CONFIG, Offices, bearer, is_let_in, signed_up


async def test_an_outdated_revocation_list_admits_no_caller(offices: Offices, email: str) -> None:
    people = await offices.open()
    ann = await signed_up(people, email)
    assert is_let_in(people, ann)

    offices.clock.ahead_s += REVOCATIONS_STALE_MAX_S + 1
    with pytest.raises(EngineDown):
        people.verify(bearer(ann))

    await people.catch_up()
    assert is_let_in(people, ann)


async def test_two_first_starts_at_once_make_one_key(apart: Offices) -> None:
    opened = await asyncio.gather(*(apart.open() for _ in range(5)))

    assert len({people.signing_key.kid for people in opened}) == 1


async def test_a_key_is_rotated_without_refusing_any_session(apart: Offices, email: str) -> None:
    here, there = await apart.open(), await apart.open()
    ann, old = await signed_up(here, email), here.signing_key

    await here.rotate_key()
    assert here.signing_key.kid == old.kid
    await there.catch_up()
    apart.clock.ahead_s += KEY_KNOWN_AFTER_S + 1
    await asyncio.gather(here.catch_up(), there.catch_up())

    again = await here.refresh(ann.refresh_token)
    assert here.signing_key.kid != old.kid
    assert is_let_in(there, ann)
    assert is_let_in(there, again)

    await apart.postgres.execute("UPDATE signing_key SET signs_from = signs_from - interval '2 hours'")
    await here.prune()
    await there.catch_up()
    assert not is_let_in(there, ann)
    assert is_let_in(there, again)


async def test_a_leaked_key_is_revoked_and_sessions_continue(apart: Offices, email: str) -> None:
    here, there = await apart.open(), await apart.open()
    ann = await signed_up(here, email)
    assert is_let_in(there, ann)

    await here.rotate_key(revoke=True)
    await there.catch_up()

    assert not is_let_in(here, ann)
    assert not is_let_in(there, ann)
    again = await here.refresh(ann.refresh_token)
    assert is_let_in(there, again)


async def test_a_test_may_sign_tokens_itself(people: Accounts, email: str) -> None:
    [account_id] = await people.add_many([NewAccount(email, "Storm")])
    caller = Caller(account_id, Role.FAN, session_id=0)

    claims = claims_for(caller, version=1, now=time.time(), ttl_s=CONFIG.access_ttl_s)
    assert people.verify("Bearer " + sign(people.signing_key, claims)) == caller
    assert people.verify("Bearer " + people.access_token(caller)) == caller
