"""Rate limits, password hashing and normalised addresses (R32)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.accounts.account import DUMMY_HASH, HASHER, hash_password, is_dated, matches_hash, normal_email
from holdfast.web.guards import Buckets, Limiter, build_limit_headers, normalise_address


def limiter(per_second: int = 5, addresses_max: int = 1_000) -> Limiter:
    return Limiter(requests_per_second_max=per_second, addresses_max=addresses_max)


def test_a_quota_may_be_used_at_once_and_refills_steadily() -> None:
    tap = limiter(5)

    assert [tap.check("192.0.2.1", 100.0) is None for _ in range(6)] == [True] * 5 + [False]
    assert tap.check("192.0.2.1", 100.1) is not None
    assert tap.check("192.0.2.1", 100.2) is None
    assert tap.check("192.0.2.1", 100.2) is not None


def test_one_address_does_not_use_the_quota_of_another() -> None:
    tap = limiter(1)
    tap.check("192.0.2.1", 100.0)

    assert tap.check("192.0.2.2", 100.0) is None


def test_a_limit_of_zero_disables_the_limit() -> None:
    tap = limiter(0)

    assert all(tap.check("192.0.2.1", 100.0) is None for _ in range(10_000))


def test_the_refusal_names_the_wait_and_the_rule() -> None:
    tap = limiter(2)
    refusal = [tap.check("192.0.2.1", 100.0) for _ in range(3)][-1]

    assert refusal is not None
    assert refusal.details["retry_after_s"] == 1
    assert build_limit_headers(refusal) == {
        "RateLimit-Policy": '"address";q=2;w=1',
        "RateLimit": '"address";r=0;t=1',
    }


ONE_LINE = [
    "2001:db8:1:2::1",
    "2001:db8:1:2::2",
    "2001:db8:1:2:ffff:ffff:ffff:ffff",
    "2001:0db8:0001:0002:0000:0000:0000:0001",
    "2001:DB8:1:2::ABCD",
    "2001:db8:1:2::192.0.2.1",
    "2001:db8:1:2::1%eth0",
]
ONE_HOST = [
    "192.0.2.1",
    "::ffff:192.0.2.1",
    "::FFFF:192.0.2.1",
    "::ffff:c000:201",
    "0:0:0:0:0:ffff:c000:0201",
]


@pytest.mark.parametrize("spellings", [ONE_LINE, ONE_HOST])
def test_however_an_address_is_spelt_it_is_one_bucket(spellings: list[str]) -> None:
    tap = limiter(len(spellings))
    for spelling in spellings:
        assert tap.check(spelling, 100.0) is None

    assert all(tap.check(spelling, 100.0) is not None for spelling in spellings)


def test_the_next_line_has_its_own_bucket() -> None:
    assert normalise_address("2001:db8:1:3::1") != normalise_address("2001:db8:1:2::1")
    assert normalise_address("::ffff:192.0.2.2") != normalise_address("::ffff:192.0.2.1")


@pytest.mark.parametrize("strange", ["", "unix:", "testclient", ":::", "1.2.3", "999.1.1.1"])
def test_an_invalid_address_is_counted_too(strange: str) -> None:
    tap = limiter(1)
    tap.check(strange, 100.0)

    assert tap.check(strange, 100.0) is not None


def test_a_flood_of_addresses_does_not_fill_the_memory() -> None:
    buckets = Buckets(quota=1, window_s=60, keys_max=100)
    for n in range(1_000):
        buckets.take(f"address {n}", 100.0)

    assert len(buckets._full_at) <= 100
    assert buckets.take("address 999", 100.0) > 0


@given(st.integers(1, 20), st.lists(st.floats(0, 2), max_size=100))
def test_in_no_window_more_than_twice_the_quota_get_through(quota: int, pauses: list[float]) -> None:
    buckets, now, taken_at = Buckets(quota=quota, window_s=1, keys_max=10), 50.0, []
    for pause in pauses:
        now += pause
        if buckets.take("ann", now) == 0.0:
            taken_at.append(now)

    for start in taken_at:
        assert sum(start <= at < start + 1 for at in taken_at) <= 2 * quota


@given(st.integers(1, 50), st.integers(1, 60))
def test_waiting_for_retry_after_is_enough(quota: int, window_s: int) -> None:
    buckets = Buckets(quota=quota, window_s=window_s, keys_max=10)
    while not (wait_s := buckets.take("ann", 50.0)):
        pass

    assert buckets.take("ann", 50.0 + wait_s) == 0.0


def test_passwords_are_hashed_with_argon2id_and_owasps_parameters() -> None:
    assert hash_password("correct horse").startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert (HASHER.hash_len, HASHER.salt_len) == (32, 16)
    assert hash_password("correct horse") != hash_password("correct horse")


def test_an_unknown_account_costs_as_much_as_a_known_one() -> None:
    assert not is_dated(DUMMY_HASH)
    assert not matches_hash(DUMMY_HASH, "")


def test_a_password_matches_itself_and_nothing_else() -> None:
    stored = hash_password("correct horse")

    assert matches_hash(stored, "correct horse")
    assert not matches_hash(stored, "Correct horse")
    assert not matches_hash(stored, "correct horse ")
    assert not matches_hash(stored, "correct horse\0")


def test_the_same_password_from_another_keyboard_matches() -> None:
    assert matches_hash(hash_password("cafe\u0301 cr\u00e8me"), "caf\u00e9 cre\u0300me")


def test_a_hash_with_weaker_parameters_is_dated() -> None:
    weaker = "$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$" + DUMMY_HASH.rsplit("$", 1)[1]

    assert is_dated(weaker)


@pytest.mark.parametrize(
    "spelling", ["Ann@Example.ORG", " ann@example.org", "ann@example.org\n", "ANN@EXAMPLE.ORG"]
)
def test_an_address_has_one_spelling(spelling: str) -> None:
    assert normal_email(spelling) == "ann@example.org"
