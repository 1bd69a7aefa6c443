"""Codes of authenticator apps, recovery codes, and secrets that are sealed."""

import pytest

from holdfast.accounts.second_factor import (
    Seal,
    code_at,
    enrolment_uri,
    find_step,
    is_complete,
    normal_code,
    recovery_code,
)

SECRET = b"12345678901234567890"


@pytest.mark.parametrize(
    ("at_s", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (20000000000, "353130")],
)
def test_codes_are_those_of_rfc_6238(at_s: int, code: str) -> None:
    assert code_at(SECRET, at_s // 30) == code


@pytest.mark.parametrize(("step", "found"), [(98, None), (99, 99), (100, 100), (101, 101), (102, None)])
def test_a_clock_may_be_one_step_off(step: int, found: int | None) -> None:
    assert find_step(SECRET, code_at(SECRET, step), now_step=100, last_step=0) == found


def test_neither_a_used_code_nor_an_older_one_works() -> None:
    assert [find_step(SECRET, code_at(SECRET, step), 100, last_step=100) for step in (99, 100, 101)] == [
        None,
        None,
        101,
    ]


def test_the_uri_names_the_house_and_the_account() -> None:
    uri = enrolment_uri(SECRET, "tickets.example", "ann+1@example.org")
    assert uri == (
        "otpauth://totp/tickets.example%3Aann%2B1@example.org"
        "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=tickets.example"
    )


def test_recovery_codes_are_read_as_people_type_them() -> None:
    code = recovery_code(bytes(range(10)))
    assert code == "AAAQ-EAYE-AUDA-OCAJ"
    assert normal_code(f" {code.lower().replace('-', ' ')}\n") == normal_code(code)


def test_a_sealed_secret_is_opened_by_its_key_for_its_account_only() -> None:
    sealed = Seal("old key").close(SECRET, 7, bytes(12))
    assert SECRET not in sealed
    assert Seal("new key, old key").open(sealed, 7) == SECRET
    assert Seal("new key").open(sealed, 7) is None
    assert Seal("").open(sealed, 7) is None
    assert Seal("old key").open(sealed, 8) is None
    assert (
        Seal("new key").open(Seal("").close(SECRET, 7, bytes(12)), 7) == SECRET
    )  # from before there was a key


def test_a_passkey_is_both_steps() -> None:
    assert [how for how in ("", "password", "link", "password+totp", "passkey") if is_complete(how)] == [
        "password+totp",
        "passkey",
    ]
