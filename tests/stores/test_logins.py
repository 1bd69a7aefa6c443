"""Passwords and guesses: equal answers, limits that all processes share (R31, R32)."""

import asyncio
import statistics
import time
from dataclasses import replace

import pytest

from holdfast.accounts import Accounts, BadCredentials, NewAccount
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres
from holdfast.errors import Busy, Refusal, TooManyRequests
from tests.support.account_processes import CONFIG, HERE, PASSWORD, Offices, signed_up
from tests.support.wait import until


@pytest.mark.parametrize("wrong", ["password", "address", "guest"])
async def test_a_failed_login_does_not_reveal_the_reason(people: Accounts, email: str, wrong: str) -> None:
    if wrong == "password":
        await signed_up(people, email)
    elif wrong == "guest":
        await people.add_many([NewAccount(email, "Guest")])

    with pytest.raises(BadCredentials) as refused:
        await people.log_in(email=email, password="something else", address=HERE)
    assert refused.value.details == {}


async def test_the_time_of_a_failed_login_does_not_tell_either(people: Accounts, email: str) -> None:
    await signed_up(people, email)
    took: dict[str, list[float]] = {email: [], f"x{email}": []}

    for _ in range(25):
        for address, times in took.items():
            started = time.perf_counter()
            with pytest.raises(BadCredentials):
                await people.log_in(email=address, password="something else", address=HERE)
            times.append(time.perf_counter() - started)

    known, unknown = (statistics.median(times) for times in took.values())
    # Without the dummy hash, hardly any of the time is left.
    assert abs(known - unknown) < max(0.010, known / 2)


async def tries(people: Accounts, email: str, count: int, address: str = HERE) -> list[type[Refusal]]:
    refusals = []
    for _ in range(count):
        with pytest.raises(Refusal) as refused:
            await people.log_in(email=email, password="a guess", address=address)
        refusals.append(type(refused.value))
    return refusals


async def test_guessing_ends_after_a_few_tries_on_every_process(offices: Offices, email: str) -> None:
    config = replace(CONFIG, logins_per_minute_max=3)
    here, there = await offices.open(config), await offices.open(config)
    await signed_up(here, email)

    assert await tries(here, email, 2) == [BadCredentials] * 2
    assert await tries(there, email.upper(), 2) == [BadCredentials, TooManyRequests]

    with pytest.raises(TooManyRequests) as refused:  # the right password is not even looked at
        await here.log_in(email=email, password=PASSWORD, address=HERE)
    assert 1 <= int(str(refused.value.details["retry_after_s"])) <= 20
    assert await here.log_in(email=email, password=PASSWORD, address="192.0.2.2")


async def test_concurrent_guesses_are_limited_like_sequential_ones(offices: Offices, email: str) -> None:
    people = await offices.open(replace(CONFIG, logins_per_minute_max=3))

    outcomes = await asyncio.gather(
        *(people.log_in(email=email, password="a guess", address=HERE) for _ in range(20)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, BadCredentials) for outcome in outcomes) == 3


async def test_correct_logins_are_not_limited(offices: Offices, email: str) -> None:
    people = await offices.open(replace(CONFIG, logins_per_minute_max=2))
    await signed_up(people, email)

    for _ in range(5):
        assert await people.log_in(email=email, password=PASSWORD, address=HERE)


async def test_without_redis_every_process_counts_for_itself(postgres: Postgres, email: str) -> None:
    nowhere = open_redis("redis://127.0.0.1:1", links_max=1, timeout_s=0.2)
    people = Accounts(postgres, nowhere, replace(CONFIG, logins_per_minute_max=3))

    assert await tries(people, email, 4) == [BadCredentials] * 3 + [TooManyRequests]

    await people.close()


async def test_too_many_concurrent_passwords_get_retry_after(offices: Offices, email: str) -> None:
    people = await offices.open(replace(CONFIG, passwords_at_once_max=1, passwords_waiting_max=2))
    # So slow that all six are there before the first is checked, however busy the machine is.
    slow = (
        "$argon2id$v=19$m=65536,t=12,p=1$CrRuww4zOuyKokfIc0/qVg$bBsMac0K4aCFoDV34yQcMS96/JtQXTADXPGctXCgl3g"
    )
    await people.add_many([NewAccount(f"{n}{email}", "Ann", password_hash=slow) for n in range(6)])

    outcomes = await asyncio.gather(
        *(people.log_in(email=f"{n}{email}", password="a guess", address=HERE) for n in range(6)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, BadCredentials) for outcome in outcomes) == 3
    assert sum(isinstance(outcome, Busy) for outcome in outcomes) == 3


async def test_guesses_that_fill_the_queue_do_not_stop_people_who_were_here_before(
    offices: Offices, email: str
) -> None:
    people = await offices.open(replace(CONFIG, passwords_at_once_max=1, passwords_waiting_max=0))
    await signed_up(people, email)
    await people.log_in(email=email, password=PASSWORD, address=HERE)
    slow = (
        "$argon2id$v=19$m=65536,t=12,p=1$CrRuww4zOuyKokfIc0/qVg$bBsMac0K4aCFoDV34yQcMS96/JtQXTADXPGctXCgl3g"
    )
    await people.add_many([NewAccount(f"{n}{email}", "Ann", password_hash=slow) for n in range(4)])
    guesses = [
        asyncio.create_task(
            people.log_in(email=f"{n}{email}", password="a guess", address=f"192.0.2.{n + 8}")
        )
        for n in range(4)
    ]

    async def is_full() -> bool:
        """The first to get an answer are those who are refused."""
        return any(guess.done() for guess in guesses)

    await until(is_full)
    known = await people.log_in(email=email, password=PASSWORD, address=HERE)

    assert known.account.email == email
    found = await asyncio.gather(*guesses, return_exceptions=True)
    assert {type(one) for one in found} == {BadCredentials, Busy}


async def test_an_old_hash_is_renewed_while_the_password_is_at_hand(
    people: Accounts, email: str, postgres: Postgres
) -> None:
    weaker = (
        "$argon2id$v=19$m=8192,t=1,p=1$CrRuww4zOuyKokfIc0/qVg$bBsMac0K4aCFoDV34yQcMS96/JtQXTADXPGctXCgl3g"
    )
    await people.add_many([NewAccount(email, "Old", password_hash=weaker)])

    await people.log_in(email=email, password=PASSWORD, address=HERE)

    stored = await postgres.fetchval("SELECT password_hash FROM account WHERE email = $1", email)
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert await people.log_in(email=email, password=PASSWORD, address=HERE)
