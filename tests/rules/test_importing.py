"""Layouts from files: our JSON, tables and pretix plans; and the errors for invalid files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.demo.halls import club, concert_hall, stadium
from holdfast.layouts.body import LayoutBody
from holdfast.layouts.import_checks import find_overlaps
from holdfast.layouts.import_file import parse_layout_file
from holdfast.layouts.layout import Layout, LayoutProblem, Run
from holdfast.layouts.sketch import sketch

LAYOUTS = Path(__file__).parent / "layouts"


def imported(name: str) -> Layout:
    return Layout.build(parse_layout_file(name, (LAYOUTS / name).read_bytes()))


def test_the_native_format_is_read_unchanged() -> None:
    layout = imported("theatre.json")
    assert (layout.name, layout.seat_count) == ("Little theatre", 46)


def test_a_table_with_places_is_put_in_the_order_in_which_seats_stand() -> None:
    layout = imported("placed.csv")
    assert layout.name == "placed"
    assert layout.labels == ("A-5", "A-3", "A-1", "A-2", "A-4", "A-6", "B-1")
    assert layout.runs == (Run(0, 4), Run(4, 2), Run(6, 1)), "the gap between 2 and 4 is an aisle"
    assert [category.name for category in layout.categories] == ["Gold", "Silver"]
    assert layout.category_of == bytes([0, 0, 0, 0, 1, 1, 1])
    assert layout.traits == b"wnnnnrn"
    assert layout.x[0] == pytest.approx(-1.2)
    assert layout.focal[1] < 0, "in front of the first row"


def test_a_table_without_places_is_set_out_row_behind_row() -> None:
    layout = imported("plain.csv")
    assert layout.labels[:4] == ("A-1", "A-2", "A-3", "B-1")
    assert layout.runs == (Run(0, 2), Run(2, 1), Run(3, 1))
    assert layout.y[0] == layout.y[1] < layout.y[3]
    assert [(area.name, area.capacity) for area in layout.areas] == [("Floor", 40)]
    assert [category.name for category in layout.categories] == ["Standard"]


def test_a_pretix_plan_keeps_zones_rows_colours_and_gaps() -> None:
    layout = imported("pretix.json")
    assert layout.name == "Gymnasium"
    assert layout.labels == ("1-1", "1-2", "1-3", "1-4", "2-p-2-1", "2-p-2-1b"), (
        "alike numbers give way to guids"
    )
    assert layout.runs == (Run(0, 2), Run(2, 2), Run(4, 2))
    assert (layout.x[3], layout.y[3]) == (180, 90), "zone, row and seat positions add up"
    assert (layout.x[4], layout.y[4]) == (100, 110)
    assert layout.traits == b"nnnwnn"
    assert layout.categories[0].colour == "#112233"
    assert layout.categories[1].colour != "teal", "a colour we cannot be sure of is replaced"
    assert layout.focal == (140, 60), "the middle of what is called the stage"
    assert layout.body.shapes[0].text == "Stage"


def test_unknown_fields_of_pretix_are_ignored() -> None:
    text = (LAYOUTS / "pretix.json").read_text().replace('"row_number": "1",', '"row_number": 1, "glow": {},')
    assert Layout.build(parse_layout_file("x.json", text.encode())).labels == imported("pretix.json").labels


@pytest.mark.parametrize("signature", [b"\xef\xbb\xbf", b"  \n"])
@pytest.mark.parametrize("name", ["theatre.json", "pretix.json", "placed.csv"])
def test_a_byte_order_mark_or_leading_space_is_ignored(name: str, signature: bytes) -> None:
    if signature.strip() or name.endswith("json"):
        data = signature + (LAYOUTS / name).read_bytes()
        assert Layout.build(parse_layout_file(name, data)).labels == imported(name).labels


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("{", "line 1: this is not JSON"),
        ('{"name": "x",\n\n"focal" [0, 0]}', "line 3: this is not JSON"),
        ("[" * 100_000, "docs/layouts.md"),
        ('{"zones": ' + "[" * 100_000, "docs/layouts.md"),
        ("[]", "layout"),
        ('{"name": "x"}', "focal"),
        ('{"zones": 1, "categories": []}', "$.zones"),
        ('{"zones": [], "categories": []}', "no seats"),
        ("seat,colour\n1,red", "no columns row and number"),
        ("row,number,weight\n", "unknown column “weight”"),
        ("row,number\nA,\n", "line 2: no row or no number"),
        ("row,number\nA,1\nA,1\n", "line 3: row A has a seat 1 already"),
        ("row,number,x,y\nA,1,0,0\nA,2,,\n", "line 3: give x and y for every seat"),
        ("row,number,x,y\nA,1,0,zero\n", "line 2: x “0”, y “zero”"),
        ("row,number,x,y\nA,1,0,inf\n", "line 2: x and y are metres"),
        ("row,number,trait\nA,1,tall\n", "line 2: unknown trait “tall”"),
        ("row,number,aisle\nA,1,maybe\n", "line 2: aisle is “maybe”"),
        ("section,capacity\nFloor,many\n", "line 2: capacity “many”"),
        ("row,number,capacity\nA,1,5\n", "line 2: a seat and a capacity"),
        ("row,number,category,colour\nA,1,Gold,golden\n", "colour"),
        ("row,number\n" + "A" * 61 + ",1\n", "line 2"),
        ('row,number\nA,"1\n', "line 2"),
        ("row,number\n", "no seats"),
    ],
)
def test_a_problem_in_a_file_is_described_in_one_line_with_its_place(text: str, says: str) -> None:
    with pytest.raises(LayoutProblem) as problem:
        Layout.build(parse_layout_file("hall.csv", text.encode()))
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("seats", ["1 to 4", "A B C", "1-4, 5 6"])
def test_seats_that_would_be_one_seat_with_a_space_in_its_name_are_refused(seats: str) -> None:
    """One seat called "1 to 4" would be found on the day of the sale."""
    text = (LAYOUTS / "theatre.json").read_text().replace('"9-1 odd, 2-10 even"', f'"{seats}"')
    assert seats in text

    with pytest.raises(LayoutProblem, match=r"section \w+, row A: seats “.*” would be one seat; write"):
        parse_layout_file("x.json", text.encode())


def test_seats_on_the_same_spot_are_noticed() -> None:
    table = "row,number,x,y\nA,1,0,0\nA,2,1,0\nB,1,0,0.01\nB,2,1,0\nC,1,5,5\n"

    assert find_overlaps(Layout.build(parse_layout_file("x.csv", table.encode()))) == [
        "A-1 and B-1 are at the same place",
        "A-2 and B-2 are at the same place",
    ]
    assert find_overlaps(imported("theatre.json")) == []


def test_a_hall_can_be_looked_at_as_letters() -> None:
    rows = [{"label": "A, B", "seats": "1-6", "at": [0, 1], "align": "centre", "pitch": 1, "depth": 1}]
    body = {
        "name": "Two rows",
        "focal": [0, 0],
        "categories": [{"name": "Gold", "colour": "#E69F00"}, {"name": "Floor", "colour": "#0072B2"}],
        "sections": [{"name": "Stalls", "rows": rows, "category": "Gold"}],
        "areas": [
            {
                "name": "Back",
                "capacity": 40,
                "outline": [[-3, 3.5], [3, 3.5], [3, 5.5], [-3, 5.5]],
                "category": "Floor",
            }
        ],
    }

    picture = sketch(Layout.build(parse_layout_file("two.json", json.dumps(body).encode())))

    assert "".join(picture[0]).strip() == "*"
    assert "\n".join(picture).count("A") == 12
    assert len([line for line in picture if line.replace(" ", "") == "AAAAAA"]) == 2
    assert "bbbbbbbbbbbb" in picture[-2]
    assert sketch(Layout.build(parse_layout_file("one.csv", b"row,number\nA,1\n")))


@pytest.mark.parametrize("hall", [stadium, concert_hall, club])
def test_the_picture_of_any_hall_fits_a_terminal(hall: Callable[[], LayoutBody]) -> None:
    picture = sketch(Layout.build(hall()))

    assert len(picture) <= 30
    assert max(len(line) for line in picture) <= 78


def test_labels_of_pretix_rows_and_seats_are_used_unless_they_only_say_row_or_seat() -> None:
    text = (LAYOUTS / "pretix.json").read_text()
    row = '{"row_number": "1",'
    plain = text.replace(row, row + '"row_label": "Reihe %s", "seat_label": "Platz %s",')
    boxes = text.replace(row, row + '"row_label": "Loge %s", "seat_label": "%s links",')

    assert Layout.build(parse_layout_file("x.json", plain.encode())).labels[0] == "1-1"
    assert Layout.build(parse_layout_file("x.json", boxes.encode())).labels[0] == "Loge 1-1 links"


def test_a_table_in_another_encoding_is_refused_with_its_line() -> None:
    with pytest.raises(LayoutProblem, match="line 2: this is not UTF-8"):
        parse_layout_file("hall.csv", "row,number,category\nA,1,Königsloge\n".encode("latin-1"))


def test_a_pretix_seat_of_no_known_category_is_named() -> None:
    text = (LAYOUTS / "pretix.json").read_text().replace('"category": "Wheelchair"', '"category": "VIP"')
    with pytest.raises(LayoutProblem, match="zone Parkett, row 1, seat 4: category 'VIP'"):
        parse_layout_file("x.json", text.encode())


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_bytes_end_in_anything_but_a_layout_or_a_problem(data: bytes) -> None:
    for start in (b"", b"row,number,x,y\n", b"{", b'{"zones":'):
        try:
            outcome = Layout.build(parse_layout_file("any", start + data)).hash
        except LayoutProblem as problem:
            outcome = str(problem)
        assert outcome
