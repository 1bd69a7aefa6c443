"""Drawings of state diagrams: every move is drawn, and no wire runs over another."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.state_diagram import draw_states, is_overlapping, parse_moves, place_wires, stack

STATES = st.sampled_from(["HELD", "PAYING", "PAID", "LATE", "GONE"])
MOVES = st.lists(st.tuples(STATES, STATES, st.sampled_from(["yes", "no", "a < b"])), min_size=1, unique=True)


def a_diagram(moves: list[tuple[str, str, str]]) -> str:
    return "stateDiagram-v2\n" + "".join(f"    {before} --> {after}: {how}\n" for before, after, how in moves)


def test_states_that_nothing_follows_are_last_and_labels_of_one_target_are_together() -> None:
    moves = [("A", "Z", "end"), ("A", "B", "yes"), ("A", "B", "unknown"), ("B", "A", "no")]

    assert parse_moves(a_diagram(moves)) == {
        "A": {"Z": ["end"], "B": ["yes", "unknown"]},
        "B": {"A": ["no"]},
        "Z": {},
    }


@given(MOVES)
def test_wires_on_one_track_do_not_overlap(moves: list[tuple[str, str, str]]) -> None:
    parsed = parse_moves(a_diagram(moves))
    wires = place_wires(parsed, stack(parsed)[0])

    assert {wire.target for wire in wires} == {after for _, after, _ in moves}
    for (one, track), (other, same) in combinations(wires.items(), 2):
        assert track != same or not is_overlapping(one, other)


@given(MOVES)
def test_every_state_and_every_move_is_drawn(moves: list[tuple[str, str, str]]) -> None:
    drawing = draw_states(a_diagram(moves))

    names = re.findall(r'<text class="name"[^>]*>(\w+)</text>', drawing)
    assert sorted(names) == sorted({name for before, after, _ in moves for name in (before, after)})
    assert drawing.count("<circle") == len({(before, after) for before, after, _ in moves})
    assert "a < b" not in drawing


@pytest.mark.parametrize("source", ["flowchart LR\n  a --> b: c", "stateDiagram-v2\n    a --> b"])
def test_other_diagrams_are_refused(source: str) -> None:
    with pytest.raises(AssertionError, match=r"only state diagrams|not a move"):
        draw_states(source)
