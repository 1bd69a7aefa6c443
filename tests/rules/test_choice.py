"""Best available, held to an oracle that tries everything; single seats; alternatives."""

from dataclasses import dataclass
from functools import cache
from math import dist

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.demo.halls import concert_hall, village_cinema
from holdfast.holds.alternatives import alternatives, find_alternatives, places
from holdfast.holds.choice import BestAvailable, explain_choice, find_best
from holdfast.holds.orphans import check_orphans, find_orphans
from holdfast.holds.request import Orphan
from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import AreaBody, CategoryBody, RowBody, SectionBody
from holdfast.layouts.costs import Prefer, compute_seat_costs
from holdfast.seatmap import Snapshot
from tests.support.shows import a_layout

FEW = settings(max_examples=40)
FLOOR = AreaBody("Floor", 6, [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], "1")


@dataclass(frozen=True)
class Case:
    layout: Layout
    states: bytes


@cache
def hall(*rows: str, floor: bool = False) -> Layout:
    """A letter a seat: its trait, as a capital if it is of category 1 and not 0; | is an aisle."""
    written = []
    for place, row in enumerate(rows):
        seats = row.replace("|", "")
        numbers = [str(number) for number in range(1, len(seats) + 1)]
        aisles = [str(len(row[:at].replace("|", ""))) for at, letter in enumerate(row) if letter == "|"]
        numbered = list(zip(numbers, seats, strict=True))
        of = {trait: [number for number, seat in numbered if seat.lower() == trait] for trait in "wcr"}
        second = [number for number, seat in numbered if seat.isupper()]
        written.append(
            RowBody(
                str(place + 1),
                numbers,
                at=(0.0, float(place)),
                align="centre",
                aisles=aisles or None,
                category="0",
                categories={"1": second} if second else {},
                wheelchair=of["w"] or None,
                companion=of["c"] or None,
                restricted=of["r"] or None,
            )
        )
    categories = [CategoryBody("0", "#0072B2"), CategoryBody("1", "#E69F00")]
    areas = [FLOOR] if floor else []
    return Layout.build(LayoutBody("Hall", (0.0, -1.0), categories, [SectionBody("S", written)], areas))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    row = st.lists(st.sampled_from("nnnnnNNwcr|"), min_size=1, max_size=9).map("".join)
    rows = draw(st.lists(row.map(lambda text: text.strip("|")).filter(bool), min_size=1, max_size=4))
    layout = hall(*(row.replace("||", "|").replace("||", "|") for row in rows))
    letters = st.sampled_from("AAAAHB")
    states = draw(st.lists(letters, min_size=layout.seat_count, max_size=layout.seat_count))
    return Case(layout, "".join(states).encode())


wants = st.builds(
    BestAvailable,
    count=st.integers(1, 5),
    category=st.sampled_from([None, None, 0, 1]),
    prefer=st.sampled_from(Prefer),
    accessible=st.booleans(),
    together=st.booleans(),
)


def neighbours_free(letters: bytes, at: int) -> bool:
    return b"A" in (letters[max(0, at - 1) : at], letters[at + 1 : at + 2])


def singles(letters: bytes) -> set[int]:
    return {
        at for at, letter in enumerate(letters) if letter == ord("A") and not neighbours_free(letters, at)
    }


def oracle(layout: Layout, states: bytes, want: BestAvailable) -> range | None:
    """Every window of every run, ranked by the seven points of the rule, with none of its short cuts."""
    costs, ranked = compute_seat_costs(layout, want.prefer).costs, []
    for start, length in layout.runs:
        letters = states[start : start + length]
        for offset in range(length - want.count + 1):
            seats = range(start + offset, start + offset + want.count)
            traits = [chr(layout.traits[seat]) for seat in seats]
            if any(states[seat] != ord("A") for seat in seats):
                continue
            if want.category is not None and any(layout.category_of[seat] != want.category for seat in seats):
                continue
            if ("w" not in traits) if want.accessible else {"w", "c"} & {*traits}:
                continue
            after = letters[:offset] + b"H" * want.count + letters[offset + want.count :]
            left = len(letters[:offset]) - len(letters[:offset].rstrip(b"A"))
            spare = traits.count("w") - 1 + abs(traits.count("c") - (want.count > 1))
            inner = want.prefer is Prefer.AISLE and offset != 0 and offset + want.count != length
            rank = (
                spare if want.accessible else 0,
                bool(singles(after) - singles(letters)),
                "r" in traits,
                inner,
                costs[seats[(want.count - 1) // 2]],
                left % 2,
                seats[0],
            )
            ranked.append((rank, seats))
    return min(ranked)[1] if ranked else None


@given(cases(), wants)
@example(Case(hall("nnnn"), b"AAAA"), BestAvailable(2, prefer=Prefer.AISLE))
@example(Case(hall("nwcn"), b"AAAA"), BestAvailable(2, accessible=True))
def test_the_choice_is_the_one_the_rule_names(case: Case, want: BestAvailable) -> None:
    choice = find_best(case.layout, case.states, want)
    window = oracle(case.layout, case.states, want)
    if window is not None:
        assert choice is not None
        assert (choice.seats, choice.together) == (tuple(window), True)
    elif want.together:
        assert choice is None


@FEW
@given(cases(), wants)
def test_a_choice_is_free_of_the_category_and_as_large_as_requested(case: Case, want: BestAvailable) -> None:
    choice = find_best(case.layout, case.states, want)
    if choice is None:
        return
    assert len({*choice.seats}) == want.count
    assert choice.seats == tuple(sorted(choice.seats))
    assert {case.states[seat] for seat in choice.seats} == {ord("A")}
    if want.category is not None:
        assert {case.layout.category_of[seat] for seat in choice.seats} == {want.category}
    traits = {chr(case.layout.traits[seat]) for seat in choice.seats}
    assert ("w" in traits) if want.accessible else not traits & {"w", "c"}
    assert ("restricted" in choice.why) == ("r" in traits)


@FEW
@given(cases(), st.integers(1, 6), st.sampled_from([None, 0, 1]))
def test_a_group_is_split_into_as_few_as_there_can_be(case: Case, count: int, category: int | None) -> None:
    layout, states = case.layout, case.states
    lengths: list[int] = []
    for start, length in layout.runs:
        fits = [
            states[seat] == ord("A")
            and layout.traits[seat] in b"nr"
            and category in (None, layout.category_of[seat])
            for seat in range(start, start + length)
        ]
        lengths += [len(part) for part in "".join("A" if fit else " " for fit in fits).split()]
    choice = find_best(layout, states, BestAvailable(count, category, together=False))
    if sum(lengths) < count:
        assert choice is None
        return
    assert choice is not None
    fewest = next(k for k in range(1, count + 1) if sum(sorted(lengths, reverse=True)[:k]) >= count)
    assert choice.together == (fewest == 1)
    if fewest > 1:
        assert f"in {fewest} groups" in choice.why


def test_an_accessible_group_that_must_split_keeps_one_space_and_as_many_beside_it() -> None:
    layout = hall("wc|nnnn", "nnnn|cw")
    choice = find_best(layout, b"A" * 12, BestAvailable(5, accessible=True, together=False))
    assert choice is not None
    assert [chr(layout.traits[seat]) for seat in choice.seats] == list("wcnnn")
    assert find_best(layout, b"A" * 12, BestAvailable(5, accessible=True)) is None


def test_wheelchair_spaces_are_given_on_request_only() -> None:
    assert find_best(hall("wccw"), b"AAAA", BestAvailable(1, together=False)) is None
    choice = find_best(hall("nwcn"), b"AAAA", BestAvailable(2, accessible=True))
    assert choice is not None
    assert choice.seats == (1, 2), "the companion's seat, not a plain one"
    assert "with a wheelchair space" in choice.why


def test_pairs_fill_rows_of_even_length_to_the_last_seat() -> None:
    layout = hall("nnnnnn|nnnnnnnnnn", "nnnnnnnnnnnnnnnn", "nnnn|nnnnnnnn|nnnn")
    states = bytearray(b"A" * layout.seat_count)
    for _ in range(layout.seat_count // 2):
        choice = find_best(layout, bytes(states), BestAvailable(2))
        assert choice is not None
        for seat in choice.seats:
            states[seat] = ord("H")
    assert states == b"H" * layout.seat_count


def test_a_full_hall_offers_no_seats() -> None:
    layout = Layout.build(concert_hall())
    assert find_best(layout, b"B" * layout.seat_count, BestAvailable(1, together=False)) is None
    assert alternatives(layout, b"B" * layout.seat_count, (5, 6)) == []


def test_preferences_are_applied() -> None:
    layout = Layout.build(village_cinema())
    free = b"A" * layout.seat_count

    def chosen(prefer: Prefer) -> list[str]:
        choice = find_best(layout, free, BestAvailable(2, prefer=prefer))
        assert choice is not None
        return [layout.labels[seat] for seat in choice.seats]

    assert chosen(Prefer.FRONT)[0].startswith("A-")
    assert chosen(Prefer.BEST) == ["H-7", "H-8"]
    assert chosen(Prefer.AISLE)[0][2:] in ("1", "3", "5", "11", "13", "15")
    assert chosen(Prefer.CENTRE)[0].rpartition("-")[2] in ("6", "7", "8")
    assert explain_choice(layout, BestAvailable(2), (30, 31)) == "nearest the best view, side by side"


def test_a_plan_costs_every_seat_and_orders_every_run() -> None:
    layout = Layout.build(concert_hall())
    for prefer in Prefer:
        the_plan = compute_seat_costs(layout, prefer)
        assert len(the_plan.costs) == layout.seat_count
        assert list(the_plan.runs) == sorted(the_plan.runs)
        assert sorted((start, length) for _, start, length in the_plan.runs) == list(layout.runs)
        assert all(low == min(the_plan.costs[at : at + length]) for low, at, length in the_plan.runs)
        assert (min(the_plan.costs), max(the_plan.costs)) == (0, 65_535)


@FEW
@given(st.text("AH", min_size=1, max_size=9), st.data())
def test_an_orphan_is_a_newly_isolated_free_seat(text: str, data: st.DataObject) -> None:
    letters = text.encode()
    free = [at for at, letter in enumerate(letters) if letter == ord("A")]
    chosen = data.draw(st.sets(st.sampled_from(free)) if free else st.just(set[int]()))
    after = bytes(ord("H") if at in chosen else letter for at, letter in enumerate(letters))
    assert {*find_orphans(letters, sorted(chosen))} == singles(after) - singles(letters)


@pytest.mark.parametrize(
    ("row", "states", "seats", "better"),
    [
        ("nnnn", "AAAA", (0, 1), None),
        ("nnnn", "AAAA", (1, 2), (0, 1)),
        ("nnnnn", "AAAAA", (1, 2), (0, 1)),
        ("nnnnn", "AAAAA", (2, 3), (3, 4)),
        ("nnn", "AAA", (0, 1), None),
        ("nnnn", "AAAA", (0, 2), (0, 1)),
        ("wnnn", "AAAA", (2,), (3,)),
        ("wnnn", "AAAA", (0, 1, 2), None),
        ("nnn|nnnn", "AAAAAAA", (1, 2, 4, 5), (1, 2, 3, 4)),
        ("nNnn", "AAAA", (1,), (0,)),
        ("nnnnnn", "HAAAHA", (2,), (1,)),
    ],
)
def test_a_hand_picked_choice_is_fine_unless_a_better_one_leaves_no_single(
    row: str, states: str, seats: tuple[int, ...], better: tuple[int, ...] | None
) -> None:
    expected = None if better is None else Orphan(better)
    assert check_orphans(hall(row), states.encode(), seats) == expected


@FEW
@given(cases(), st.data())
def test_a_better_choice_is_free_and_leaves_no_single_seat(case: Case, data: st.DataObject) -> None:
    free = [seat for seat in range(case.layout.seat_count) if case.states[seat] == ord("A")]
    if not free:
        return
    seats = data.draw(st.sets(st.sampled_from(free), min_size=1, max_size=4).map(sorted).map(tuple))
    verdict = check_orphans(case.layout, case.states, seats)
    if isinstance(verdict, Orphan):
        assert len({*verdict.better}) == len(seats)
        assert {*verdict.better} <= {*free}
        assert check_orphans(case.layout, case.states, verdict.better) is None


@FEW
@given(cases(), st.integers(1, 3), st.data())
def test_alternatives_are_free_groups_that_share_no_seat(case: Case, count: int, data: st.DataObject) -> None:
    layout, states = case.layout, case.states
    first = data.draw(st.integers(0, layout.seat_count - 1))
    requested = tuple(range(first, min(first + count, layout.seat_count)))
    found = alternatives(layout, states, requested)
    seats = [seat for group in found for seat in group]
    assert len(found) <= 3
    assert len({*seats}) == len(seats)
    assert all(
        len(group) == len(requested) and {states[seat] for seat in group} == {ord("A")} for group in found
    )
    accessible = any(layout.traits[seat] == ord("w") for seat in requested)
    together = find_best(layout, states, BestAvailable(len(requested), accessible=accessible))
    assert bool(found) or together is None, "what best available would find, an alternative finds"


def test_alternatives_are_near_and_of_the_same_category_first() -> None:
    layout = hall("nnnnnn", "NNNNNN", "nnnnnn")
    states = b"HHHHHH" + b"AAAAAA" + b"AAAAAA"
    found = alternatives(layout, states, (2, 3))
    assert [layout.category_of[group[0]] for group in found] == [0, 0, 0]
    assert found[0] == (14, 15)
    assert alternatives(layout, b"HHAAHH" + b"H" * 12, (1, 2)) == [(2, 3)]


@FEW
@given(st.integers(1, 6), st.data())
def test_in_long_rows_the_nearest_group_is_the_one_that_trying_everything_finds(
    count: int, data: st.DataObject
) -> None:
    row, rows = 120, 6
    layout = a_layout(row * rows, row=row)
    taken = data.draw(st.lists(st.tuples(st.integers(0, row * rows - 1), st.integers(1, 40)), max_size=8))
    states = bytearray(b"A" * layout.seat_count)
    for first, length in taken:
        states[first : first + length] = b"H" * len(states[first : first + length])
    first = data.draw(
        st.integers(0, layout.seat_count - count).filter(lambda seat: seat % row <= row - count)
    )
    requested = tuple(range(first, first + count))
    for seat in requested:
        states[seat] = ord("H")

    found = alternatives(layout, bytes(states), requested)

    best = _nearest_of_all(layout, bytes(states), requested, row)
    assert best is None or found[0] == best


def _nearest_of_all(
    layout: Layout, states: bytes, requested: tuple[int, ...], row: int
) -> tuple[int, ...] | None:
    """Leaves no single seat if possible, then nearest, then first."""
    count = len(requested)
    x = sum(layout.x[seat] for seat in requested) / count
    y = sum(layout.y[seat] for seat in requested) / count
    keys = []
    for start in range(layout.seat_count):
        end = start + count
        if start // row != (end - 1) // row or {*states[start:end]} != {ord("A")}:
            continue
        before, after = states[start - start % row : start], states[end : start - start % row + row]
        left = len(before) - len(before.rstrip(b"A"))
        right = len(after) - len(after.lstrip(b"A"))
        middle = start + count // 2
        keys.append((1 in (left, right), dist((x, y), (layout.x[middle], layout.y[middle])), start))
    return tuple(range(min(keys)[2], min(keys)[2] + count)) if keys else None


def test_when_nothing_together_is_left_the_nearest_single_seats_are_offered() -> None:
    assert alternatives(hall("nnnnnnn"), b"AHHAHHA", (1, 2)) == [(0, 3)]
    assert alternatives(hall("nnnnnnn"), b"AHHHHHH", (1, 2)) == []


def test_a_wheelchair_space_is_replaced_by_one() -> None:
    layout = hall("wcnn", "nnnn", "nnwc")
    assert alternatives(layout, b"HAAAAAAAAAAA", (0, 1)) == [(10, 11)]


def test_standing_places_are_assigned_in_order() -> None:
    layout = hall("nn", floor=True)
    area, states = layout.areas[0], b"AA" + b"HABAAA"
    assert places(area, states, 3) == (3, 5, 6)
    assert places(area, states, 5) is None
    assert alternatives(layout, states, (2, 3)) == [(3, 5)]
    assert find_best(layout, b"HH" + b"A" * 6, BestAvailable(1, together=False)) is None, (
        "best available is about seats"
    )
    assert alternatives(layout, b"HH" + b"A" * 6, (0, 1)) == []


def test_a_group_that_was_lost_and_came_free_again_has_no_alternatives() -> None:
    layout = a_layout(10)

    assert find_alternatives(Snapshot(1, 1, b"A" * 10, layout), (), ()) == []
