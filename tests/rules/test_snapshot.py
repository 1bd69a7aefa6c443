"""The map of a show in the forms it is sent in, held against the slow way of counting."""

import time
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import CategoryBody, RowBody, SectionBody
from holdfast.seatmap.snapshot import Snapshot, unpack

CATEGORIES = ("Gold", "Silver", "Bronze")


def a_layout(seats: int) -> Layout:
    """One row; every third seat of another category, and one category without a seat."""
    numbers = [str(number) for number in range(1, seats + 1)]
    silver = numbers[1::3]
    row = RowBody(label="A", seats=numbers, category="Gold", categories={"Silver": silver} if silver else {})
    body = LayoutBody(
        name="Hall",
        focal=(0.0, 0.0),
        categories=[CategoryBody(name=name, colour="#0072B2") for name in CATEGORIES],
        sections=[SectionBody(name="Stalls", rows=[row])],
    )
    return Layout.build(body)


LAYOUTS = {seats: a_layout(seats) for seats in (*range(1, 14), 40, 101)}
maps = st.sampled_from(sorted(LAYOUTS)).flatmap(lambda seats: st.text("AHBX", min_size=seats, max_size=seats))
versions = st.integers(0, 2**62)


def a_snapshot(states: str, version: int = 7_000_000_001) -> Snapshot:
    return Snapshot(9, version, states.encode(), LAYOUTS[len(states)])


def slow_counts(snapshot: Snapshot) -> list[dict[str, object]]:
    layout = snapshot.layout
    return [
        {
            "category": name,
            **{
                letter: sum(
                    1
                    for seat, state in enumerate(snapshot.states.decode())
                    if state == letter and layout.category_of[seat] == index
                )
                for letter in "AHBX"
            },
        }
        for index, name in enumerate(CATEGORIES)
    ]


@given(states=maps)
def test_counts_by_category_equal_counting_one_by_one(states: str) -> None:
    snapshot = a_snapshot(states)

    assert snapshot.counts_by_category() == slow_counts(snapshot)


@given(states=maps)
def test_counts_add_up_to_the_seats(states: str) -> None:
    snapshot = a_snapshot(states)

    assert sum(snapshot.counts.values()) == len(states)
    assert snapshot.free == states.count("A") == snapshot.counts["A"]


@given(states=maps, version=versions)
def test_the_text_says_everything(states: str, version: int) -> None:
    snapshot = a_snapshot(states, version)

    page = msgspec.json.decode(snapshot.text)

    assert page == {
        "show_id": 9,
        "version": version,
        "layout": snapshot.layout.hash,
        "counts": slow_counts(snapshot),
        "states": states,
    }


@given(states=maps, version=versions)
def test_the_compact_form_unpacks_to_the_same_map(states: str, version: int) -> None:
    snapshot = a_snapshot(states, version)

    assert unpack(snapshot.compact) == (version, states.encode())
    assert len(snapshot.compact) == 12 + (len(states) + 3) // 4


def test_the_compact_form_is_as_documented() -> None:
    """Version and number of seats, big-endian; then two bits a seat, the first seat in the lowest bits."""
    compact = a_snapshot("AHBXH", version=258).compact

    assert compact == bytes(6) + b"\x01\x02" + b"\x00\x00\x00\x05" + bytes([0b11_10_01_00, 0b01])


@pytest.mark.parametrize("seats", [1, 13, 101])
def test_a_map_of_one_letter_counts_that_letter_alone(seats: int) -> None:
    assert a_snapshot("B" * seats).counts == {"A": 0, "H": 0, "B": seats, "X": 0}


def test_a_stadium_is_written_without_a_step_of_python_per_seat() -> None:
    """Each version is written once on the loop: it takes less time than a single pass over the seats."""
    row = RowBody(label="A", seats="1-500", category="Gold")
    rows = [msgspec.structs.replace(row, label=f"R{number}") for number in range(100)]
    body = msgspec.structs.replace(
        LAYOUTS[1].source(), name="Stadium", sections=[SectionBody(name="Stands", rows=rows)]
    )
    layout = Layout.build(body)
    states = b"AHBXA" * (layout.seat_count // 5)

    written = min(_cpu_s(lambda: Snapshot(9, 1, states, layout).text) for _ in range(5))
    packed = min(_cpu_s(lambda: Snapshot(9, 1, states, layout).compact) for _ in range(5))
    one_pass = min(_cpu_s(lambda: bytes(map(max, states, layout.traits))) for _ in range(5))

    assert written < one_pass
    assert packed < one_pass / 4


def _cpu_s(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before
