"""Limits per account, per address and for the house: all processes together, all buckets or none (R32)."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.config import Config
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis import Redis
from holdfast.errors import TooManyRequests
from holdfast.web.guards import RATE_LIMIT
from holdfast.web.rate_limits import BUCKETS_MAX, RateLimits, bucket_key, policies_for

STRICT = Config(
    logins_per_minute_max=3,
    logins_per_account_hour_max=5,
    logins_per_address_minute_max=4,
    logins_house_minute_max=0,
    signups_house_minute_max=0,
    signups_per_address_hour_max=2,
)
_addresses = iter(f"198.51.{a}.{b}" for a in range(100, 200) for b in range(1, 250))


@pytest.fixture(params=["Redis", "no Redis"])
async def limits(request: pytest.FixtureRequest, redis: Redis) -> AsyncIterator[RateLimits]:
    """Counted by Redis, and by the process itself while Redis is away: the same answers."""
    if request.param == "Redis":
        yield RateLimits(redis, STRICT)
    else:
        yield RateLimits(open_redis("redis://127.0.0.1:1", links_max=1, timeout_s=0.2), STRICT)


def an_account() -> str:
    return f"{secrets.token_hex(6)}@example.org"


async def refused_by(limits: RateLimits, what: str, account: str, address: str) -> str:
    """The policy that refuses; empty: none does."""
    try:
        await limits.take(what, account=account, address=address)
    except TooManyRequests as refusal:
        return str(refusal.details["policy"])
    return ""


async def test_an_account_has_so_many_tries_per_address_and_in_all(limits: RateLimits) -> None:
    account, here, there = an_account(), next(_addresses), next(_addresses)

    found = [await refused_by(limits, "login", account, here) for _ in range(4)]
    found += [await refused_by(limits, "login", account, there) for _ in range(3)]

    assert found == ["", "", "", "login", "", "", "login-account"]


async def test_an_address_has_so_many_tries_for_all_accounts(limits: RateLimits) -> None:
    address = next(_addresses)

    found = [await refused_by(limits, "login", an_account(), address) for _ in range(6)]

    assert found == ["", "", "", "", "login-address", "login-address"]


async def test_what_one_bucket_refuses_is_taken_from_no_other(limits: RateLimits) -> None:
    """Refused tries at a full address must not lock the accounts that they name."""
    account, busy = an_account(), next(_addresses)
    for _ in range(4):
        await limits.take("login", account=an_account(), address=busy)
    for _ in range(9):
        assert await refused_by(limits, "login", account, busy) == "login-address"

    assert [await refused_by(limits, "login", account, next(_addresses)) for _ in range(5)] == [""] * 5


async def test_a_right_password_is_given_back(limits: RateLimits) -> None:
    account, address = an_account(), next(_addresses)
    for _ in range(8):
        await limits.give_back(await limits.take("login", account=account, address=address))

    assert await refused_by(limits, "login", account, address) == ""


class TestKnownAddresses:
    """Where the right password came from before."""

    async def test_guesses_from_elsewhere_do_not_lock_them_out(self, redis: Redis) -> None:
        limits = RateLimits(redis, STRICT)
        account, home, cafe = an_account(), next(_addresses), next(_addresses)
        await limits.give_back(await limits.take("login", account=account, address=home))
        for _ in range(STRICT.logins_per_account_hour_max):
            await refused_by(limits, "login", account, next(_addresses))

        found = [await refused_by(limits, "login", account, address) for address in (cafe, home, home)]

        assert found == ["login-account", "", ""]

    async def test_nor_do_guesses_at_other_accounts_from_the_same_network(self, redis: Redis) -> None:
        limits = RateLimits(redis, STRICT)
        account, home = an_account(), next(_addresses)
        await limits.give_back(await limits.take("login", account=account, address=home))
        for _ in range(STRICT.logins_per_address_minute_max):
            await refused_by(limits, "login", an_account(), home)

        found = [await refused_by(limits, "login", one, home) for one in (an_account(), account)]

        assert found == ["login-address", ""]

    async def test_nor_does_a_house_that_is_full_of_guesses(self, redis: Redis) -> None:
        limits = RateLimits(redis, replace(STRICT, logins_house_minute_max=2))
        account, home = an_account(), next(_addresses)
        await redis.call("DEL", bucket_key("login-house"))
        await limits.give_back(await limits.take("login", account=account, address=home))
        for _ in range(2):
            await limits.take("login", account=an_account(), address=next(_addresses))

        found = [
            await refused_by(limits, "login", *who) for who in ((account, home), (account, next(_addresses)))
        ]

        assert found == ["", "login-house"]

    async def test_they_guess_no_faster_themselves(self, redis: Redis) -> None:
        limits = RateLimits(redis, replace(STRICT, logins_per_minute_max=0))
        account, home = an_account(), next(_addresses)
        await limits.give_back(await limits.take("login", account=account, address=home))

        found = [await refused_by(limits, "login", account, home) for _ in range(7)]

        assert found == [""] * STRICT.logins_per_account_hour_max + ["login-known"] * 2

    async def test_a_wrong_password_makes_none_known(self, redis: Redis) -> None:
        limits = RateLimits(redis, STRICT)
        account, home = an_account(), next(_addresses)

        taken = [await limits.take("login", account=account, address=home) for _ in range(2)]
        await limits.give_back(taken[0])
        after = await limits.take("login", account=account, address=home)

        assert [one.is_known for one in (*taken, after)] == [False, False, True]

    async def test_it_can_be_switched_off(self, redis: Redis) -> None:
        limits = RateLimits(redis, replace(STRICT, login_known_d=0))
        account, home = an_account(), next(_addresses)
        await limits.give_back(await limits.take("login", account=account, address=home))

        assert not (await limits.take("login", account=account, address=home)).is_known


async def test_neighbours_of_an_ipv6_line_are_one_address(limits: RateLimits) -> None:
    net = secrets.token_hex(2)
    found = [await refused_by(limits, "sign-up", "", f"2001:db8:{net}:1::{n}") for n in range(1, 4)]

    assert found == ["", "", "sign-up-address"]


async def test_a_client_without_an_address_has_no_bucket_for_it(limits: RateLimits) -> None:
    assert [await refused_by(limits, "sign-up", "", "") for _ in range(5)] == [""] * 5


async def test_many_at_once_in_two_processes_are_limited_as_one_after_the_other(redis: Redis) -> None:
    both, address = [RateLimits(redis, STRICT) for _ in range(2)], next(_addresses)

    found = await asyncio.gather(
        *(refused_by(both[n % 2], "login", an_account(), address) for n in range(30))
    )

    assert found.count("") == STRICT.logins_per_address_minute_max


async def test_the_house_has_a_limit_of_its_own(redis: Redis) -> None:
    """With a window and a quota that no other test has: its bucket is the house's."""
    limits = RateLimits(redis, replace(STRICT, resets_house_minute_max=3))
    await redis.call("DEL", bucket_key("reset-house"))

    found = [await refused_by(limits, "reset", an_account(), next(_addresses)) for _ in range(5)]

    assert found == ["", "", "", "reset-house", "reset-house"]


async def test_the_response_says_what_is_left(redis: Redis) -> None:
    limits, address = RateLimits(redis, STRICT), next(_addresses)

    await limits.take("sign-up", address=address)

    assert RATE_LIMIT.get() == [
        (b"ratelimit-policy", b'"sign-up-address";q=2;w=3600'),
        (b"ratelimit", b'"sign-up-address";r=1;t=1800'),
    ]
    RATE_LIMIT.set(None)


def test_every_action_fits_one_script() -> None:
    beside = [[p for p in policies if p.counts != "known"] for policies in policies_for(Config()).values()]

    assert max(map(len, beside)) <= BUCKETS_MAX
