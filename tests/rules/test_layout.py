"""A layout as written becomes numbered seats; and only ever grows."""

from itertools import pairwise
from math import cos, dist, radians, sin
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.demo.halls import club, concert_hall, stadium, village_cinema
from holdfast.layouts.body import (
    AreaBody,
    CategoryBody,
    CurveBody,
    LayoutBody,
    RowBody,
    SectionBody,
    decode_body,
    expand_numbers,
    pick_positions,
)
from holdfast.layouts.layout import SEATS_MAX, Area, Layout, LayoutProblem, Run

LAYOUTS = Path(__file__).parent / "layouts"
FLOOR = AreaBody("Floor", 5, [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
ONE = [CategoryBody("Standard", "#0072B2")]


def theatre() -> LayoutBody:
    return decode_body((LAYOUTS / "theatre.json").read_bytes())


def hall(*rows: RowBody, **more: Any) -> LayoutBody:
    return LayoutBody("Hall", (0.0, -2.0), ONE, [SectionBody("Stalls", list(rows))], **more)


@pytest.fixture(scope="module")
def big() -> Layout:
    return Layout.build(stadium())


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("1-4", "1 2 3 4"),
        ("4-1", "4 3 2 1"),
        ("5-1 odd, 2-6 even", "5 3 1 2 4 6"),
        ("10-30 step 10", "10 20 30"),
        ("1, 1a, 2", "1 1a 2"),
        ("A-C, E", "A B C E"),
        (["1-4", "x"], "1-4 x"),
    ],
)
def test_a_rule_numbers_seats_from_left_to_right(rule: str | list[str], named: str) -> None:
    assert expand_numbers(rule) == named.split()


@pytest.mark.parametrize(
    "rule", ["1-999999", "1,,2", "1-3, 2", "1-9 step 0", ",".join(["1-59999"] * 500), "x" * 70, "2-2 odd"]
)
def test_a_rule_that_makes_no_row_is_refused(rule: str) -> None:
    with pytest.raises(LayoutProblem):
        expand_numbers(rule)


def test_seats_are_picked_as_they_stand_and_not_as_they_count() -> None:
    row = expand_numbers("5-1 odd, 2-6 even")
    assert [row[place] for place in pick_positions("3-2", row)] == ["3", "1", "2"]
    with pytest.raises(LayoutProblem, match="no seat 7"):
        pick_positions("7", row)


def test_a_run_ends_at_every_aisle_and_its_seats_are_consecutive() -> None:
    layout = Layout.build(theatre())
    assert layout.labels[:10] == tuple(f"Stalls-A-{number}" for number in (9, 7, 5, 3, 1, 2, 4, 6, 8, 10))
    assert layout.runs == (Run(0, 5), Run(5, 5), Run(10, 5), Run(15, 5), Run(20, 5), Run(25, 5), Run(30, 4))
    assert layout.areas == (Area("Pit", 34, 12, 0),)
    assert (layout.labels[34], layout.labels[-1]) == ("Pit-1", "Pit-12")
    assert layout.traits[:10] == b"wcnnnnnnnn"
    assert layout.category_of[:10] == bytes([0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    assert layout.traits[10:20] == b"rnnnnnnnnr"


def test_every_label_finds_its_seat_and_every_seat_its_label() -> None:
    layout = Layout.build(theatre())
    assert all(layout.index_of[label] == seat for seat, label in enumerate(layout.labels))
    assert layout.seat(layout.index_of["Circle-A-1a"])[1:4] == ("Circle", "A", "1a")
    assert layout.seat(layout.index_of["Pit-12"])[1:4] == ("Pit", "", "12")
    assert layout.run_at(34) is None
    assert layout.run_at(33) == Run(30, 4)


def test_labels_of_a_lone_section_leave_its_name_out() -> None:
    assert Layout.build(hall(RowBody("J", "12"))).labels == ("J-12",)


def test_the_same_body_has_the_same_hash_however_it_is_spelt() -> None:
    one = b'{"name":"-0.0,","focal":[0,-0.0],"categories":[{"name":"Standard","colour":"#0072B2"}],' + (
        b'"sections":[{"name":"Stalls","rows":[{"label":"A","seats":"1-2","pitch":0.550}]}]}'
    )
    other = b'{"sections":[{"rows":[{"pitch":0.55,"seats":"1-2","label":"A"}],"name":"Stalls"}],' + (
        b'"categories":[{"colour":"#0072B2","name":"Standard"}],"focal":[0.0,0],"name":"-0.0,"}'
    )
    layout = Layout.build(decode_body(one))
    assert layout.hash == Layout.build(decode_body(other)).hash
    assert layout.name == "-0.0,"
    assert layout.hash != Layout.build(decode_body(other.replace(b'"1-2"', b'"1-3"'))).hash


def test_a_stored_body_builds_the_same_layout_again() -> None:
    for body in (theatre(), village_cinema(), concert_hall(), club()):
        layout = Layout.build(body)
        again = Layout.build(decode_body(msgspec.json.encode(layout.source())))
        assert (again.hash, again.labels, again.page()) == (layout.hash, layout.labels, layout.page())


def test_a_straight_row_runs_the_way_it_is_turned_and_the_next_is_behind_it() -> None:
    row = RowBody("A-B", "1-3", at=(1.0, 2.0), pitch=1.0, depth=5.0, aisles="1", aisle_width=2.0)
    layout = Layout.build(hall(row))
    assert [*layout.x] == [1, 4, 5, 1, 4, 5]
    assert [*layout.y] == [2, 2, 2, 7, 7, 7]
    turned = LayoutBody("Hall", (0.0, 0.0), ONE, [SectionBody("S", [row], at=(10.0, 0.0), turn=90.0)])
    layout = Layout.build(turned)
    assert [*layout.x] == [8, 8, 8, 3, 3, 3]
    assert [*layout.y] == [1, 4, 5, 1, 4, 5]


def test_a_curved_row_faces_its_centre_from_left_to_right() -> None:
    row = RowBody("A", "1-3", pitch=1.0, align="centre", curve=CurveBody((0.0, 0.0), 10.0))
    layout = Layout.build(hall(row))
    points = list(zip(layout.x, layout.y, strict=True))
    assert points[1] == (0, 10)
    assert layout.x[0] < 0 < layout.x[2]
    assert all(dist(point, (0, 0)) == pytest.approx(10, abs=1e-3) for point in points)
    assert all(dist(a, b) == pytest.approx(1, abs=1e-3) for a, b in pairwise(points))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (hall(), "no seats"),
        (hall(RowBody("A", "1-2"), RowBody("A", "2-3")), "two seats are called A-2"),
        (hall(RowBody("A", "1-2", category="Gold")), "row A: category Gold is not among"),
        (hall(RowBody("A", "1-2", aisles="9")), "no seat 9 in this row"),
        (hall(RowBody("A", "1-2", wheelchair="1", companion="1")), "two trait rules"),
        (hall(RowBody("A", "1-2", points=[(0.0, 0.0)])), "1 points for 2 seats"),
        (hall(RowBody("A", "1-2", at=(float("inf"), 0.0))), "sections"),
        (hall(RowBody("A", "1-2", at=(float("nan"), 0.0))), "sections"),
        (hall(RowBody("A", "1-2", pitch=-1.0)), "pitch"),
        (hall(RowBody("1-999", "1-999")), "more than 60000"),
        (hall(areas=[msgspec.structs.replace(FLOOR, capacity=SEATS_MAX), FLOOR]), "more than 60000"),
        (hall(areas=[FLOOR, FLOOR]), "two seats are called Floor-1"),
        (hall(RowBody("A", "1-2"), added=[["Z-9"]]), "no seat Z-9"),
    ],
)
def test_a_problem_is_described_in_one_line(body: LayoutBody, says: str) -> None:
    with pytest.raises(LayoutProblem) as problem:
        Layout.build(body)
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        (b'"label": "A", "seats": "9-1', b'"label": "A\\n", "seats": "9-1'),
        (b'"1a"', b'"1\\u0000a"'),
        (b'"text": "Stage"', b'"text": "Sta\\u007fge"'),
        (b"#E69F00", b"#E69F0\\n"),
        (b'"name": "Pit"', b'"name": "\\tPit"'),
    ],
)
def test_unprintable_characters_are_refused(field: bytes, instead: bytes) -> None:
    text = (LAYOUTS / "theatre.json").read_bytes()
    assert field in text
    with pytest.raises(LayoutProblem, match=r"categories|sections|areas|shapes"):
        decode_body(text.replace(field, instead))


def test_two_categories_need_a_word_on_which_one_a_row_has() -> None:
    two = [*ONE, CategoryBody("Gold", "#E69F00")]
    with pytest.raises(LayoutProblem, match="no category"):
        Layout.build(LayoutBody("Hall", (0, 0), two, [SectionBody("S", [RowBody("A", "1")])]))
    row = RowBody("A", "1-2", categories={"Gold": "1", "Standard": "2"})
    assert Layout.build(LayoutBody("Hall", (0, 0), two, [SectionBody("S", [row])])).category_of == b"\1\0"


def test_a_layout_grows_after_its_existing_seats() -> None:
    old = Layout.build(hall(RowBody("A", "1-4"), RowBody("B", "1-2")))
    body = hall(RowBody("A", "0-5"), RowBody("B", "1-2"), RowBody("C", "1-2"))
    body = msgspec.structs.replace(body, sections=[*body.sections, SectionBody("Box", [RowBody("A", "1")])])
    new = Layout.build(body, after=old)
    assert new.grows_from(old)
    assert not old.grows_from(new)
    assert new.labels[6:] == ("A-0", "A-5", "C-1", "C-2", "Box-A-1")
    assert new.runs[:2] == (Run(0, 4), Run(4, 2))
    again = Layout.build(decode_body(msgspec.json.encode(new.source())))
    assert (again.hash, again.labels) == (new.hash, new.labels)
    newest = Layout.build(msgspec.structs.replace(body, areas=[FLOOR]), after=new)
    assert newest.grows_from(new)
    assert newest.labels[len(new.labels) :] == tuple(f"Floor-{place}" for place in range(1, 6))


def test_a_layout_that_loses_or_moves_seats_has_not_grown() -> None:
    old = Layout.build(hall(RowBody("A", "1-4"), RowBody("B", "1-2")))
    with pytest.raises(LayoutProblem, match="seat A-4 is gone"):
        Layout.build(hall(RowBody("A", "1-3"), RowBody("B", "1-2")), after=old)
    with pytest.raises(LayoutProblem, match="another order"):
        Layout.build(hall(RowBody("B", "1-2"), RowBody("A", "1-4")), after=old)
    assert not Layout.build(hall(RowBody("A", "4-1"), RowBody("B", "1-2"))).grows_from(old)


def test_a_standing_area_keeps_its_capacity_while_others_are_added() -> None:
    old = Layout.build(hall(areas=[FLOOR]))
    with pytest.raises(LayoutProblem, match="keep its 5 places"):
        Layout.build(hall(areas=[msgspec.structs.replace(FLOOR, capacity=9)]), after=old)
    more = [msgspec.structs.replace(FLOOR, name="Balcony"), FLOOR]
    new = Layout.build(hall(RowBody("A", "1-2"), areas=more), after=old)
    assert new.grows_from(old)
    assert [area.name for area in new.areas] == ["Floor", "Balcony"]


def drawn(page: Any) -> dict[int, tuple[str, int, str, float, float]]:
    """A page drawn by a front end that follows docs/layouts.md."""
    seats: dict[int, tuple[str, int, str, float, float]] = {}
    for section in page["sections"]:
        seat = 0
        for run in section["runs"]:
            seat = run.get("start", seat)
            named = run.get("numbers", [1, 1])
            category = run.get("category", section["category"])
            each = [category] * run["count"] if isinstance(category, int) else []
            each = each or [which for which, count in category for _ in range(count)]
            for place in range(run["count"]):
                number = named[0] + place * named[1] if isinstance(named[0], int) else named[place]
                label = f"{section['prefix']}{run['row']}-{number}"
                trait = run.get("traits", "n" * run["count"])[place]
                seats[seat] = (label, each[place], trait, *at(run, place))
                seat += 1
    for area in page["areas"]:
        for place in range(area["capacity"]):
            seats[area["start"] + place] = (f"{area['name']}-{place + 1}", area["category"], "n", 0.0, 0.0)
    return seats


def at(run: Any, place: int) -> tuple[float, float]:
    if "line" in run:
        x, y, dx, dy = run["line"]
        return x + place * dx, y + place * dy
    if "arc" in run:
        x, y, radius, angle, step = run["arc"]
        turned = radians(angle + place * step)
        return x + radius * cos(turned), y + radius * sin(turned)
    return run["points"][place][0], run["points"][place][1]


def is_drawn_as_it_is(layout: Layout) -> bool:
    seats = drawn(msgspec.json.decode(layout.page()))
    standing = {seat for area in layout.areas for seat in range(area.start, area.start + area.capacity)}
    assert sorted(seats) == list(range(layout.seat_count))
    for seat, (label, category, trait, x, y) in seats.items():
        assert label == layout.labels[seat]
        assert (category, trait) == (layout.category_of[seat], chr(layout.traits[seat]))
        assert seat in standing or dist((x, y), (layout.x[seat], layout.y[seat])) < 0.1
    return True


def test_a_page_names_and_places_every_seat() -> None:
    points = RowBody("Z", ["1", "2", "3"], points=[(0.0, 0.0), (1.0, 0.5), (2.0, 3.0)])
    grown = Layout.build(hall(RowBody("A", "1-6"), points), after=Layout.build(hall(RowBody("A", "2-5"))))
    assert is_drawn_as_it_is(grown)
    for body in (theatre(), village_cinema(), concert_hall(), club()):
        assert is_drawn_as_it_is(Layout.build(body))


def test_a_stadium_is_drawn_with_few_bytes(big: Layout) -> None:
    assert len(big.page()) < 150_000
    assert is_drawn_as_it_is(big)


def test_the_demo_halls_have_their_stated_sizes(big: Layout) -> None:
    cinema, hall_, standing = (Layout.build(body) for body in (village_cinema(), concert_hall(), club()))
    assert (cinema.seat_count, standing.seat_count, big.seat_count) == (204, 430, 50_000)
    assert 1_900 <= hall_.seat_count <= 2_100
    assert 80 <= len(big.body.sections) <= 120
    assert all(run.length % 2 == 0 for layout in (cinema, hall_, big) for run in layout.runs)
    assert {*big.traits} == {*b"nr"}, "pairs are to sell it out"
    terrace = Layout.build(stadium(terrace=True))
    assert [area.capacity for area in terrace.areas] == [3_000]
    assert b"wc" in terrace.traits


@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.sets(st.integers(1, 12), max_size=3), st.floats(-90, 90)),
        min_size=1,
        max_size=5,
    )
)
def test_runs_cover_every_seat_once_and_neighbours_are_a_pitch_apart(
    rows: list[tuple[int, set[int], float]],
) -> None:
    written = []
    for place, (seats, aisles, angle) in enumerate(rows):
        breaks = [str(number) for number in sorted(aisles) if number <= seats]
        row = RowBody(str(place), f"1-{seats}", at=(0.0, 50.0 * place), angle=angle, aisles=breaks or None)
        written.append(row)
    layout = Layout.build(hall(*written))
    covered = [seat for start, length in layout.runs for seat in range(start, start + length)]
    assert covered == list(range(layout.seat_count))
    for start, length in layout.runs:
        for seat in range(start, start + length - 1):
            a, b = (layout.x[seat], layout.y[seat]), (layout.x[seat + 1], layout.y[seat + 1])
            assert dist(a, b) == pytest.approx(0.55, abs=3e-3)
