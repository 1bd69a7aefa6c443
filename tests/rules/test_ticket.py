"""The code on a ticket: one spelling, one signature, and nothing else is one (R30, T1, attacks 28 and 29)."""

import random
import string
from base64 import b32decode, b32encode
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tickets import BadCode, Ticket, TicketKey, phone_secret, read_code, show_secret
from holdfast.tickets.ticket import (
    EDITION_MAX,
    NUMBER_MAX,
    PREFIX,
    STEP_S,
    Version,
    fixed_code,
    is_live,
    live_code,
    signing_key,
)

MUTANTS = 20_000  # a million in tests/storms/test_door_forgeries.py
ALPHABET = string.ascii_uppercase + "234567"
KEYS = {n: TicketKey(n, bytes([n]) * 32, bytes([n + 100]) * 32, float(n * 1000)) for n in (1, 2, 3)}
PUBLIC = {n: key.public for n, key in KEYS.items()}
TICKET = Ticket(7, 123_456, 1)
CODE = fixed_code(KEYS[1], TICKET)

tickets = st.builds(
    Ticket, st.integers(1, NUMBER_MAX), st.integers(1, NUMBER_MAX), st.integers(1, EDITION_MAX)
)


@given(tickets, st.sampled_from(sorted(KEYS)))
def test_a_signed_code_can_be_read_back(ticket: Ticket, key_id: int) -> None:
    code = read_code(fixed_code(KEYS[key_id], ticket), PUBLIC)

    assert (code.ticket, code.key_id, code.tag) == (ticket, key_id, None)


@given(tickets)
def test_a_live_code_is_read_back_with_its_tag(ticket: Ticket) -> None:
    secret = phone_secret(show_secret(KEYS[2].secret, ticket.show_id), ticket, 1)

    code = read_code(live_code(KEYS[2], ticket, secret, 1_000_000.0), PUBLIC)

    assert code.ticket == ticket
    assert is_live(code, secret, 1_000_000.0)


@given(st.text())
def test_any_text_is_a_code_or_refused(text: str) -> None:
    with pytest.raises(BadCode):
        read_code(text, PUBLIC)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_code_or_refused(raw: bytes) -> None:
    with pytest.raises(BadCode):
        read_code(b32encode(raw).decode().rstrip("="), PUBLIC)


def test_no_mutant_of_a_code_is_taken() -> None:
    """29 of the attacks. Most mutants die on their spelling; every fifth goes as far as the signature."""
    drawn = random.Random(2026)
    live = live_code(KEYS[2], TICKET, bytes(32), 0.0)

    for number in range(MUTANTS):
        original = (CODE, live)[number % 2]
        mutant = mutated(original, drawn, deep=number % 10 < 2)
        try:
            code = read_code(mutant, PUBLIC)
        except BadCode:
            continue
        # The tag of a live code is outside of the signature, and checked by itself.
        assert mutant == original or (original == live and not is_live(code, bytes(32), 0.0)), mutant


def mutated(code: str, drawn: random.Random, *, deep: bool) -> str:
    """Letters changed, dropped, doubled, swapped; or, deep, a byte of the payload or of the signature."""
    if deep:
        raw = bytearray(b32decode(code + "=" * (-len(code) % 8)))
        raw[drawn.randrange(len(raw))] ^= 1 << drawn.randrange(8)
        return b32encode(bytes(raw)).decode().rstrip("=")
    at, letters = drawn.randrange(len(code)), list(code)
    match drawn.randrange(6):
        case 0:
            letters[at] = drawn.choice(string.printable)
        case 1:
            del letters[at]
        case 2:
            letters.insert(at, drawn.choice(ALPHABET))
        case 3:
            letters[at] = letters[at].lower()
        case 4:
            letters = letters[: drawn.randrange(len(letters))]
        case _:
            letters += "=" * drawn.randrange(1, 8)
    return "".join(letters)


def test_spare_bits_and_padding_are_refused() -> None:
    """The same bytes spelt otherwise: 72 bytes leave four bits of the last letter to play with."""
    others = {CODE[:-1] + letter for letter in ALPHABET} - {CODE}
    same_bytes = [one for one in others if b32decode(one + "=" * (-len(one) % 8)) == _raw(CODE)]

    assert same_bytes
    for spelt in (*same_bytes, CODE + "=" * (-len(CODE) % 8), CODE.lower(), f" {CODE}", CODE + "\n"):
        with pytest.raises(BadCode):
            read_code(spelt, PUBLIC)


def test_another_key_id_or_key_is_refused() -> None:
    raw = _raw(CODE)
    swapped = [bytes((raw[0], key_id)) + raw[2:] for key_id in (0, 2, 3, 4, 255)]

    for one in swapped:
        with pytest.raises(BadCode):
            read_code(_text(one), PUBLIC)
    with pytest.raises(BadCode):
        read_code(CODE, {1: KEYS[2].public})


def test_a_live_code_without_its_tag_is_not_a_fixed_one_and_the_other_way_round() -> None:
    live = _raw(live_code(KEYS[1], TICKET, bytes(32), 0.0))
    stripped = live[:-69] + live[-64:]
    fixed = _raw(CODE)

    for one in (
        stripped,
        bytes((Version.FIXED,)) + stripped[1:],
        bytes((Version.LIVE,)) + fixed[1:],
        fixed[:-64] + bytes(5) + fixed[-64:],
    ):
        with pytest.raises(BadCode):
            read_code(_text(one), PUBLIC)


@pytest.mark.parametrize("number", [b"\x87\x00", b"\x80\x80\x00", b"\xff" * 9, b"\xff" * 12, b"\x00"])
def test_a_number_has_one_spelling(number: bytes) -> None:
    payload = bytes((Version.FIXED, 1)) + number + b"\x05\x01"
    signed = payload + KEYS[1].sign(PREFIX + payload)

    with pytest.raises(BadCode):
        read_code(_text(signed), PUBLIC)


def test_nothing_else_we_sign_is_a_ticket() -> None:
    payload = _raw(CODE)[:-64]

    with pytest.raises(BadCode):
        read_code(_text(payload + KEYS[1].sign(payload)), PUBLIC)


def test_an_old_key_s_tickets_stay_good_and_new_ones_carry_the_new_key() -> None:
    """T1 by RD: rotated in the middle."""
    before, after = signing_key(KEYS, 1500.0), signing_key(KEYS, 2500.0)

    assert (before.key_id, after.key_id) == (1, 2)
    for key in (before, after):
        assert read_code(fixed_code(key, TICKET), PUBLIC).key_id == key.key_id


def test_a_clock_behind_all_keys_signs_with_the_oldest() -> None:
    assert signing_key(KEYS, 0.0).key_id == 1


def test_a_picture_of_a_live_code_goes_stale() -> None:
    secret = phone_secret(show_secret(KEYS[1].secret, 7), TICKET, 1)
    code = read_code(live_code(KEYS[1], TICKET, secret, 3000.0), PUBLIC)

    assert [is_live(code, secret, 3000.0 + STEP_S * steps) for steps in (-2, -1, 0, 1, 2)] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_every_show_ticket_edition_and_phone_has_its_own_secret() -> None:
    secrets = {
        phone_secret(show_secret(KEYS[1].secret, show), Ticket(show, serial, edition), binding)
        for show, serial, edition, binding in product((1, 2), repeat=4)
    }

    assert len(secrets) == 16
    assert all(len(secret) == 32 for secret in secrets)


def test_a_code_fits_a_small_qr() -> None:
    """Serials have 48 bits (new_number in bookings/functions.sql)."""
    assert len(fixed_code(KEYS[1], Ticket(2**14 - 1, 2**48 - 1, 3))) <= 122  # version 5, 37 modules, level M
    assert len(fixed_code(KEYS[1], Ticket(10**9, 2**48 - 1, 3))) <= 154  # version 6, 41 modules, level M
    assert set(CODE) <= set(ALPHABET)


def _raw(code: str) -> bytes:
    return b32decode(code + "=" * (-len(code) % 8))


def _text(raw: bytes) -> str:
    return b32encode(raw).decode().rstrip("=")
