"""What another layout changes, seat by seat; no sold seat becomes a different one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from holdfast.layouts.body import CategoryBody, RowBody, SectionBody
from holdfast.layouts.diff import UnsafeReason, compare_layouts
from holdfast.layouts.layout import Layout, LayoutBody

CATEGORIES = [CategoryBody("Gold", "#E69F00"), CategoryBody("Silver", "#0072B2")]
ROWS = (
    RowBody("A", "1-4", at=(0.0, 1.0), category="Gold"),
    RowBody("B", "1-4", at=(0.0, 2.0), category="Silver"),
)


def hall(*rows: RowBody, categories: list[CategoryBody] = CATEGORIES, **more: Any) -> Layout:
    body = LayoutBody("Hall", (0.0, 0.0), categories, [SectionBody("Stalls", list(rows or ROWS))], **more)
    return Layout.build(body)


OLD = hall()


def test_the_same_layout_changes_nothing() -> None:
    found = compare_layouts(OLD, hall())

    assert found.is_empty
    assert found.unsafe_reasons(range(8)) == []


def test_a_growth_affects_no_existing_seat() -> None:
    grown = Layout.build(hall(RowBody("Z", "1-2", category="Gold"), *ROWS).body, after=OLD)

    found = compare_layouts(OLD, grown)

    assert [grown.labels[seat] for seat in found.added] == ["Z-1", "Z-2"]
    assert not found.touched
    assert found.unsafe_reasons(range(8)) == []


def test_a_renamed_seat_keeps_its_number() -> None:
    found = compare_layouts(OLD, hall(replace(ROWS[0], seats=["1", "2", "3", "3a"]), ROWS[1]))

    assert (found.renamed, found.added, found.gone, found.renumbered) == ([3], [], [], [])
    assert found.unsafe_reasons({0, 1, 2}) == []
    assert found.unsafe_reasons({3}) == [UnsafeReason.SEATS_IN_USE]


def test_a_seat_of_another_category_is_found() -> None:
    found = compare_layouts(OLD, hall(replace(ROWS[0], categories={"Silver": "1"}), ROWS[1]))

    assert (found.recategorised, found.renamed) == ([0], [])
    assert found.unsafe_reasons({0}) == [UnsafeReason.SEATS_IN_USE]


def test_a_removed_seat_renumbers_the_seats_after_it() -> None:
    """Matched by number, A-4 would become B-1, and so on: every later ticket would be for another seat."""
    found = compare_layouts(OLD, hall(replace(ROWS[0], seats="1-3"), ROWS[1]))

    assert (found.gone, found.renumbered) == ([3], [4, 5, 6, 7])
    assert found.unsafe_reasons(()) == [UnsafeReason.SEATS_GONE, UnsafeReason.RENUMBERED]


def test_rows_in_another_order_are_other_numbers() -> None:
    found = compare_layouts(OLD, hall(*reversed(ROWS)))

    assert found.renumbered == list(range(8))
    assert found.unsafe_reasons(()) == [UnsafeReason.RENUMBERED]


def test_a_withdrawn_seat_is_touched_and_keeps_its_number() -> None:
    found = compare_layouts(OLD, OLD, [5, 5, 2])

    assert found.withdrawn == [2, 5]
    assert found.unsafe_reasons({5}) == [UnsafeReason.SEATS_IN_USE]
    assert found.unsafe_reasons({4}) == []


def test_categories_keep_their_order_and_grow_behind() -> None:
    bronze = CategoryBody("Bronze", "#000000")

    behind = compare_layouts(OLD, hall(categories=[*CATEGORIES, bronze]))
    before = compare_layouts(OLD, hall(categories=[bronze, *CATEGORIES]))

    assert (behind.new_categories, behind.unsafe_reasons(())) == (["Bronze"], [])
    assert before.unsafe_reasons(()) == [UnsafeReason.CATEGORIES_MOVED]


def test_moved_seats_are_counted_and_affect_no_booking() -> None:
    found = compare_layouts(OLD, hall(replace(ROWS[0], at=(3.0, 1.0)), ROWS[1]))

    assert (found.redrawn, found.touched) == (4, frozenset())


names = some.lists(some.sampled_from([str(n) for n in range(1, 9)]), min_size=1, max_size=6, unique=True)
rows = some.builds(
    RowBody, label=some.sampled_from("AB"), seats=names, category=some.sampled_from(["Gold", "Silver"])
)
halls = some.lists(rows, min_size=1, max_size=2, unique_by=lambda row: str(row.label)).map(lambda r: hall(*r))


@given(halls, halls, some.sets(some.integers(0, 11)))
def test_a_safe_change_leaves_every_buyer_their_seat(old: Layout, new: Layout, taken: set[int]) -> None:
    """The promise itself: under a change that is let through, a taken seat has its label and category."""
    taken = {seat for seat in taken if seat < old.seat_count}

    if compare_layouts(old, new).unsafe_reasons(taken):
        return

    assert new.seat_count >= old.seat_count
    for seat in taken:
        assert new.labels[seat] == old.labels[seat]
        assert new.categories[new.category_of[seat]].name == old.categories[old.category_of[seat]].name
