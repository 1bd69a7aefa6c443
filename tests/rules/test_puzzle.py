"""The hash puzzle of a hot show: solved or waited for, once, for one show and one range (R32)."""

from hashlib import sha256
from itertools import count

import pytest

from holdfast.web.puzzles import HOT_FOR_S, PUZZLE_LIFE_S, Demand, check_proof, new_puzzle
from tests.support.puzzle_solver import solve

KEY, SUBJECT, NOW_S, BITS, WAIT_S = b"key", "7 range", 1_800_000_000, 8, 15


def solved(puzzle: str) -> str:
    return solve(puzzle, BITS)


def check(proof: str, *, subject: str = SUBJECT, key: bytes = KEY, after_s: int = 1) -> str:
    return check_proof(key, subject, proof, now_s=NOW_S + after_s, bits=BITS, wait_s=WAIT_S)


def test_a_solution_is_good_at_once_and_waiting_later() -> None:
    puzzle = new_puzzle(KEY, SUBJECT, NOW_S)

    assert check(solved(puzzle)) == "solved"
    assert [check(puzzle, after_s=after_s) for after_s in (1, WAIT_S - 1, WAIT_S)] == ["", "", "waited"]


def test_a_wrong_number_is_none() -> None:
    puzzle = new_puzzle(KEY, SUBJECT, NOW_S)
    wrong = next(
        f"{puzzle}.{n}" for n in count() if sha256(f"{puzzle}.{n}".encode()).digest()[0] >> (8 - BITS)
    )

    assert check(wrong, after_s=WAIT_S) == ""


def test_it_is_for_one_show_one_range_one_house_and_a_short_time() -> None:
    proof = solved(new_puzzle(KEY, SUBJECT, NOW_S))

    assert check(proof, subject="8 range") == ""
    assert check(proof, subject="7 other") == ""
    assert check(proof, key=b"other") == ""
    assert check(proof, key=b"") == ""
    assert check(proof, after_s=PUZZLE_LIFE_S) == "solved"
    assert check(proof, after_s=PUZZLE_LIFE_S + 1) == ""
    assert check(proof, after_s=-1) == ""


@pytest.mark.parametrize("proof", ["", ".", "-", "--", "a.b", "1-2-3.4", "ü-x-y.1", "-" * 50 + ".1"])
def test_anything_else_is_none(proof: str) -> None:
    assert check(proof) == ""


def test_a_puzzle_has_no_digits_that_look_like_a_card() -> None:
    assert not any(letter.isdigit() for letter in new_puzzle(KEY, SUBJECT, NOW_S))


def test_a_show_is_hot_from_so_many_tries_a_second_and_for_a_while() -> None:
    now = [100.0]
    demand = Demand(3, monotonic=lambda: now[0])

    assert [demand.note(7) for _ in range(4)] == [False, False, True, True]
    assert not demand.note(8), "another show"
    now[0] += HOT_FOR_S - 1
    assert demand.note(7)
    now[0] += 2
    assert not demand.note(7)


def test_without_a_number_no_show_is_hot() -> None:
    assert not any(Demand(0).note(7) for _ in range(1000))
