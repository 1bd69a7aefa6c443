"""Alternatives that are remembered: a map that changed a little is not searched again for every loser."""

from dataclasses import replace

from holdfast.holds.alternatives import alternatives, find_alternatives
from holdfast.seatmap import Snapshot
from tests.support.shows import a_layout


def test_groups_that_are_still_free_are_offered_again() -> None:
    first = Snapshot(1, 1, b"HHAAAAAAAA", a_layout(10))
    later = replace(first, version=2, states=b"HHAAAAAABB")

    assert find_alternatives(later, (0, 1), (0, 1)) is find_alternatives(first, (0, 1), (0, 1))


def test_a_group_with_a_seat_that_was_taken_meanwhile_is_not() -> None:
    first = Snapshot(1, 1, b"HHAAAAAAAA", a_layout(10))
    later = replace(first, version=2, states=b"HHHAAAAAAA")

    before = find_alternatives(first, (0, 1), (0, 1))
    found = find_alternatives(later, (0, 1), (0, 1))

    assert 2 in {seat for group in before for seat in group}
    assert found == alternatives(later.layout, later.states, (0, 1))
    assert 2 not in {seat for group in found for seat in group}


def test_nothing_is_not_remembered_for_a_later_map() -> None:
    first = Snapshot(1, 1, b"HHHHHHHHHA", a_layout(10))
    later = replace(first, version=2, states=b"HHHHHHHHAA")

    assert find_alternatives(replace(first, states=b"H" * 10), (0, 1), (0, 1)) == []
    assert find_alternatives(first, (0, 1), (0, 1)) == []
    assert find_alternatives(later, (0, 1), (0, 1)) == [(8, 9)]


def test_seats_that_were_refused_a_moment_ago_are_not_offered() -> None:
    """The map of this process may be older than the refusal."""
    snapshot = Snapshot(1, 1, b"AAAAAAAAAA", a_layout(10))

    found = find_alternatives(snapshot, (4, 5), (4,))

    assert 4 not in {seat for group in found for seat in group}
