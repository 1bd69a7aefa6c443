"""The booking states are the same in the table, in the ledger's trigger, and in the audit."""

import re
from importlib import resources
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bookings import (
    SEAT_STATE_CODES,
    BookingMove,
    BookingState,
    NoSuchBooking,
    WrongMove,
    from_public_id,
    from_reference,
    public_id,
    reference,
)
from holdfast.bookings.booking import MOVES, TAKES_SEATS, after
from holdfast.claim import Claim

PAIR = re.compile(r"\('(\w+)', '(\w+)'\)")
ids = st.integers(0, 2**48 - 1)


@pytest.mark.parametrize("state, move", list(product(BookingState, BookingMove)))
def test_only_the_drawn_moves_exist(state: BookingState, move: BookingMove) -> None:
    if (state, move) in MOVES:
        assert after(state, move) is MOVES[state, move]
    else:
        with pytest.raises(WrongMove) as refused:
            after(state, move)
        assert refused.value.details == {"state": state, "move": move}


@pytest.mark.parametrize(
    "package, file, start",
    [
        ("holdfast.bookings", "functions.sql", "CREATE OR REPLACE FUNCTION booking_moves_as_drawn"),
        ("holdfast.audit", "queries.sql", "-- name: moves_follow_the_state_machine"),
    ],
)
def test_the_ledger_and_the_audit_have_the_same_drawing(package: str, file: str, start: str) -> None:
    text = (resources.files(package) / file).read_text()
    there = text[text.index(start) :]
    pairs = {
        (BookingState(before), BookingState(then)) for before, then in PAIR.findall(there[: there.index(";")])
    }

    assert pairs == {(before, then) for (before, _), then in MOVES.items()}


def test_every_state_is_reached_and_the_last_ones_are_final() -> None:
    beginnings = {BookingState.HELD, BookingState.BLOCKED}
    final = {BookingState.CANCELLED, BookingState.FAILED, BookingState.REFUNDED}

    assert beginnings | set(MOVES.values()) == set(BookingState)
    assert not final & {state for state, _ in MOVES}


def test_a_booking_that_takes_seats_has_a_letter_on_the_map() -> None:
    assert set(SEAT_STATE_CODES) == TAKES_SEATS


@given(show_id=ids, number=ids)
def test_a_public_id_leads_back_to_its_booking(show_id: int, number: int) -> None:
    text = public_id(show_id, number)

    assert from_public_id(text) == (show_id, number)
    assert re.fullmatch(r"[a-z2-7]{20}", text)


@given(first=st.tuples(ids, ids), second=st.tuples(ids, ids))
def test_two_bookings_have_two_public_ids(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert (public_id(*first) == public_id(*second)) == (first == second)


def test_neighbours_look_unlike() -> None:
    """An id reveals neither how many bookings there are nor the id of the next one."""
    texts = [public_id(7, number) for number in range(1000)]

    assert len({text[:6] for text in texts}) > 990


@pytest.mark.parametrize(
    "text", ["", "a", "nonsense", "!" * 20, "a" * 19, "a" * 21, "ß" * 20, "1" * 20, "A" * 20]
)
def test_a_malformed_id_is_an_unknown_booking(text: str) -> None:
    with pytest.raises(NoSuchBooking):
        from_public_id(text)


@given(show_id=ids, number=ids)
def test_a_booking_has_one_public_id_and_no_other(show_id: int, number: int) -> None:
    """The last character has spare bits: another character in its place must not be a second id."""
    text = public_id(show_id, number)
    others = [text[:-1] + letter for letter in "abcdefghijklmnopqrstuvwxyz234567" if letter != text[-1]]

    for other in others:
        try:
            assert from_public_id(other) != (show_id, number)
        except NoSuchBooking:
            continue


@given(show_id=ids, number=ids)
def test_a_reference_leads_back_to_its_booking(show_id: int, number: int) -> None:
    assert number in from_reference(show_id, reference(show_id, number))


@pytest.mark.parametrize("text", ["", "ABCDEFG", "ABCDEFGHI", "ABCDEFG1", "ABCDEFGß", "Ann Kumar"])
def test_other_words_are_not_a_reference(text: str) -> None:
    assert from_reference(7, text) == []


def test_references_of_a_show_are_all_different() -> None:
    references = {reference(7, number) for number in range(20_000)}

    assert len(references) == 20_000
    assert all(re.fullmatch(r"[A-Z2-7]{8}", text) for text in references)


@given(
    st.text("0123456789abcdef", min_size=16, max_size=16),
    st.integers(1, 2**62),
    st.lists(st.integers(0, 60_000), min_size=1, max_size=10, unique=True),
)
def test_a_claim_is_its_own_name(claim_id: str, owner: int, units: list[int]) -> None:
    claim = Claim(claim_id, owner, tuple(units))

    assert Claim.parse(str(claim)) == claim
