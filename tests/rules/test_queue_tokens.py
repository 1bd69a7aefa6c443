"""Signed places and passes of waiting rooms (R27): each is for one person, show, opening and use."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Refusal
from holdfast.tickets.ticket import Ticket, TicketKey, fixed_code
from holdfast.waitingroom import WayIn
from holdfast.waitingroom.signed import (
    PREFIX,
    WAYS,
    QueueClaims,
    TokenKind,
    check_claims,
    read_claims,
    sign_claims,
    signature_input,
)

KEY = TicketKey(1, Ed25519PrivateKey.generate().private_bytes_raw(), b"s" * 32, 0.0)
OTHER_KEY = TicketKey(2, Ed25519PrivateKey.generate().private_bytes_raw(), b"t" * 32, 0.0)
KEYS = {1: KEY.public}
CLAIMS = QueueClaims(TokenKind.ADMISSION, 7, 1, 42, 3, 1_800_000_000, 1_800_000_900)

ids, small = st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)
kinds, ways = st.sampled_from(TokenKind), st.sampled_from(WayIn)
claims = st.builds(QueueClaims, kinds, ids, small, ids, small, ids, ids, ways)


def code_of(text: str, keys: dict[int, bytes] = KEYS) -> str:
    """The code of the refusal."""
    with pytest.raises(Refusal) as refused:
        read_claims(text, keys)
    return refused.value.code


@given(claims)
def test_what_was_signed_is_read(one: QueueClaims) -> None:
    assert read_claims(sign_claims(KEY, one), KEYS) == (1, one)


@given(st.tuples(st.integers(1, 255), claims), st.tuples(st.integers(1, 255), claims))
def test_no_two_tuples_of_fields_share_a_signature_input(
    one: tuple[int, QueueClaims], other: tuple[int, QueueClaims]
) -> None:
    assert (signature_input(*one) == signature_input(*other)) == (one == other)


@given(claims, st.data())
def test_one_field_that_differs_changes_the_signature_input(one: QueueClaims, data: st.DataObject) -> None:
    """Digits that move from one field to the next, for example show 12, opening 3 and show 1, opening 23."""
    name = data.draw(st.sampled_from(["show_id", "opening", "account_id", "number", "from_s", "until_s"]))
    value = data.draw(small.filter(lambda v: v != getattr(one, name)))

    changes: dict[str, Any] = {name: value}
    assert signature_input(1, one) != signature_input(1, replace(one, **changes))


@given(st.data())
def test_a_changed_text_is_refused(data: st.DataObject) -> None:
    text = sign_claims(KEY, CLAIMS)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("ABCxyz019-_.=\n é"))
    changed = text[:at] + letter + text[at + 1 :]

    if changed != text:
        assert code_of(changed) in {"queue_token_invalid", "queue_token_key_unknown"}


@given(st.text(max_size=300))
def test_any_other_text_is_refused(text: str) -> None:
    assert code_of(text) == "queue_token_invalid"


def test_another_spelling_of_the_same_bytes_is_refused() -> None:
    text = sign_claims(KEY, CLAIMS)

    assert code_of(text + "==") == "queue_token_invalid"
    assert code_of(" " + text) == "queue_token_invalid"


def test_every_way_in_has_a_number_that_never_changes() -> None:
    """A pass outlives a deployment: its number must mean the same to the next release."""
    assert dict(enumerate(WAYS)) == {0: "queue", 1: "draw", 2: "late", 3: "arrival"}
    assert set(WAYS) == set(WayIn)
    assert len(WAYS) <= 16


def test_a_pass_from_before_ways_had_names_is_read() -> None:
    plain = signature_input(KEY.key_id, CLAIMS)

    assert plain[0] == TokenKind.ADMISSION
    assert read_claims(sign_claims(KEY, CLAIMS), KEYS)[1].way_in is WayIn.QUEUE


def test_a_way_in_that_this_release_does_not_know_is_refused() -> None:
    plain = signature_input(KEY.key_id, CLAIMS)
    newer = bytes([len(WAYS) << 4 | plain[0]]) + plain[1:]
    text = urlsafe_b64encode(newer + KEY.sign(PREFIX + newer)).decode().rstrip("=")

    assert code_of(text) == "queue_token_invalid"


def test_the_way_in_cannot_be_changed() -> None:
    signed = urlsafe_b64decode(sign_claims(KEY, CLAIMS) + "==")
    other = urlsafe_b64encode(bytes([signed[0] | 1 << 4]) + signed[1:]).decode().rstrip("=")

    assert code_of(other) == "queue_token_invalid"


def test_a_key_that_is_not_ours_or_was_revoked_is_refused() -> None:
    assert code_of(sign_claims(OTHER_KEY, CLAIMS)) == "queue_token_key_unknown"
    assert code_of(sign_claims(KEY, CLAIMS), {}) == "queue_token_key_unknown"


def test_a_key_cannot_sign_under_the_number_of_another() -> None:
    forged = replace(OTHER_KEY, key_id=1)

    assert code_of(sign_claims(forged, CLAIMS)) == "queue_token_invalid"


def test_a_ticket_of_the_same_key_is_not_a_pass() -> None:
    assert code_of(fixed_code(KEY, Ticket(7, 1, 1))) == "queue_token_invalid"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kind": TokenKind.PLACE}, "queue_token_invalid"),
        ({"show_id": 8}, "queue_token_of_other_show"),
        ({"opening": 2}, "queue_token_expired"),
        ({"account_id": 43}, "queue_token_of_other_account"),
    ],
)
def test_a_pass_for_something_else(change: dict[str, Any], code: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_claims(replace(CLAIMS, **change), TokenKind.ADMISSION, show_id=7, opening=1, account_id=42)

    assert refused.value.code == code


def test_a_good_pass() -> None:
    check_claims(CLAIMS, TokenKind.ADMISSION, show_id=7, opening=1, account_id=42)
