"""Imports a layout file: our JSON, pretix's JSON, or a CSV table; the content decides which. No I/O.

An invalid file raises `LayoutProblem`: one line with where, what, and how to fix it. A CSV table has one line
per seat or standing area; its first line names the columns:

row, number            required for a seat
section                default: Stalls
category, colour       default: Standard; a colour is #RRGGBB
x, y                   for all seats of the table, or for none: then rows are placed one behind the other
trait                  wheelchair, companion, restricted
aisle                  yes: there is an aisle after this seat
capacity               a standing area: section is its name, row and number stay empty

In pretix seating plans zones contain rows, and rows contain seats, with relative positions. We follow
their published schema (0.0.1), but requires only the fields that we need. Their plans have no aisles
(derived from gaps), no traits (derived from category names) and no standing places (their areas are
drawings).
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from math import cos, pi, radians, sin, sqrt
from pathlib import PurePath

import msgspec
from msgspec import Struct

from holdfast.layouts.body import (
    SEATS_MAX,
    AreaBody,
    LayoutBody,
    LayoutProblem,
    Point,
    ShapeBody,
    decode_body,
)
from holdfast.layouts.from_seat_list import SECTION_GAP, ImportedPlan, ImportedSeat, build_layout_body
from holdfast.layouts.import_checks import refuse_unclear_seats

STAGE = re.compile(r"stage|screen|bühne|buehne|podium|leinwand|scène|escenario|palco|pitch", re.IGNORECASE)
WHEELCHAIR = re.compile(r"wheelchair|rollstuhl|accessible|handicap", re.IGNORECASE)
COMPANION = re.compile(r"companion|begleit", re.IGNORECASE)
RESTRICTED = re.compile(r"restricted|sichtbehindert|limited view", re.IGNORECASE)
JUST_A_WORD = re.compile(
    r"(?:row|reihe|rang[ée]e|fila|rij|rad|seat|platz|sitz(?:platz)?|si[èe]ge|place|asiento|stoel)\.?:? *%s",
    re.IGNORECASE,
)
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
CORNERS = 24  # of a circle, as a polygon


class Position(Struct, frozen=True):
    x: float = 0.0
    y: float = 0.0


class PretixSeat(Struct):
    seat_number: str | int
    position: Position
    category: str
    seat_guid: str = ""


class PretixRow(Struct):
    seats: list[PretixSeat]
    row_number: str | int = ""
    position: Position = Position()
    row_label: str = ""  # "Reihe %s"
    seat_label: str = ""  # "Platz %s"


class Polygon(Struct):
    points: list[Position]


class Rectangle(Struct):
    width: float
    height: float


class Ellipse(Struct):
    radius: Position


class Circle(Struct):
    radius: float


class Text(Struct):
    text: str = ""


class PretixArea(Struct):
    position: Position = Position()
    rotation: float = 0.0
    color: str = ""
    shape: str = ""
    polygon: Polygon | None = None
    rectangle: Rectangle | None = None
    ellipse: Ellipse | None = None
    circle: Circle | None = None
    text: Text | None = None


class PretixZone(Struct):
    name: str = ""
    position: Position = Position()
    rows: list[PretixRow] = []
    areas: list[PretixArea] = []


class PretixCategory(Struct):
    name: str
    color: str = ""


class PretixPlan(Struct):
    zones: list[PretixZone]
    categories: list[PretixCategory]
    name: str = ""


def parse_pretix(name: str, data: bytes) -> ImportedPlan:
    try:
        plan = msgspec.json.decode(data, type=PretixPlan)
    except msgspec.ValidationError as problem:
        raise LayoutProblem(f"pretix plan: {problem}; export the plan again") from None
    known = {category.name for category in plan.categories}
    names = _names(plan.zones)
    seats = [seat for zone, section in zip(plan.zones, names, strict=True) for seat in _seats(zone, section)]
    for seat in seats:
        if seat.category not in known:
            where = f"zone {seat.section}, row {seat.row}, seat {seat.number}"
            raise LayoutProblem(f"{where}: category {seat.category!r} is not one of the plan's; add it")
    shapes = [shape for zone in plan.zones for shape in _shapes(zone)]
    stage = next((shape for shape in shapes if STAGE.search(shape.text)), None)
    return ImportedPlan(
        name=plan.name or name,
        seats=seats,
        colours={
            category.name: category.color for category in plan.categories if COLOUR.fullmatch(category.color)
        },
        focal=_middle(stage.outline) if stage else None,
        shapes=[shape for shape in shapes if len(shape.outline) > 2],
    )


def _names(zones: list[PretixZone]) -> list[str]:
    """A unique name for every zone; names may be missing or repeated in the file."""
    names: list[str] = []
    for place, zone in enumerate(zones, 1):
        name = zone.name.strip() or f"Zone {place}"
        names.append(name if name not in names else f"{name} {place}")
    return names


def _seats(zone: PretixZone, section: str) -> Iterator[ImportedSeat]:
    numbered = Counter(
        (str(row.row_number), str(seat.seat_number)) for row in zone.rows for seat in row.seats
    )
    for place, row in enumerate(zone.rows, 1):
        label = _named(row.row_label, str(row.row_number).strip() or str(place))
        for seat in row.seats:
            number = str(seat.seat_number).strip()
            # Two blocks of a zone may use the same row numbers; then only the guid distinguishes their seats.
            if not number or numbered[str(row.row_number), str(seat.seat_number)] > 1:
                number = seat.seat_guid.strip() or number
            x = zone.position.x + row.position.x + seat.position.x
            y = zone.position.y + row.position.y + seat.position.y
            number = _named(row.seat_label, number)
            yield ImportedSeat(section, label, number, seat.category, (x, y), _trait(seat.category))


def _named(template: str, number: str) -> str:
    """The number as the plan labels it; words that every page writes by itself are left out."""
    if "%s" not in template or JUST_A_WORD.fullmatch(template.strip()):
        return number
    return template.replace("%s", number).strip()


def _trait(category: str) -> str:
    if COMPANION.search(category):
        return "companion"
    if WHEELCHAIR.search(category):
        return "wheelchair"
    return "restricted" if RESTRICTED.search(category) else ""


def _shapes(zone: PretixZone) -> Iterator[ShapeBody]:
    for area in zone.areas:
        across, down = cos(radians(area.rotation)), sin(radians(area.rotation))
        x0, y0 = zone.position.x + area.position.x, zone.position.y + area.position.y
        corners = _corners(area)
        outline = [(x0 + x * across - y * down, y0 + x * down + y * across) for x, y in corners]
        text = area.text.text.strip()[:60] if area.text else ""
        colour = area.color if COLOUR.fullmatch(area.color) else "#D9D9D9"
        if outline:
            yield ShapeBody(outline, text, colour)


def _corners(area: PretixArea) -> list[Point]:
    if area.shape == "polygon" and area.polygon:
        return [(point.x, point.y) for point in area.polygon.points]
    if area.shape == "rectangle" and area.rectangle:
        width, height = area.rectangle.width, area.rectangle.height
        return [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)]
    if area.shape == "ellipse" and area.ellipse:
        return _ellipse(area.ellipse.radius.x, area.ellipse.radius.y)
    if area.shape == "circle" and area.circle:
        return _ellipse(area.circle.radius, area.circle.radius)
    return [(0.0, 0.0)] if area.text else []


def _ellipse(across: float, down: float) -> list[Point]:
    angles = [2 * pi * corner / CORNERS for corner in range(CORNERS)]
    return [(across * cos(angle), down * sin(angle)) for angle in angles]


def _middle(points: list[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


FILE_BYTES_MAX = 32 * 1024 * 1024  # 60 000 seats of a pretix plan, written out at length, are about 15 MB

__all__ = ["LayoutProblem", "parse_layout_file"]


def parse_layout_file(name: str, data: bytes) -> LayoutBody:
    """`name` is the file name; it names the layout if the file does not."""
    title = PurePath(name).stem.replace("_", " ").strip()[:60] or "Hall"
    if len(data) > FILE_BYTES_MAX:
        raise LayoutProblem(f"{len(data)} bytes are too many; {FILE_BYTES_MAX} at most")
    if not data.strip():
        raise LayoutProblem("the file is empty; docs/layouts.md shows what to put in it")
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return _validate(build_layout_body(parse_csv(title, data)))
    data = data.removeprefix(b"\xef\xbb\xbf")
    if "zones" in _keys(data):
        return _validate(build_layout_body(parse_pretix(title, data)))
    return refuse_unclear_seats(decode_body(data))


def _keys(data: bytes) -> set[str]:
    try:
        return set(msgspec.json.decode(data, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return set()  # decode_body() reports what is wrong, and where


def _validate(body: LayoutBody) -> LayoutBody:
    """Imported bodies are validated like handwritten ones."""
    return decode_body(msgspec.json.encode(body))


COLUMNS = {
    "section": ("section", "block", "zone", "area"),
    "row": ("row",),
    "number": ("number", "seat", "seat_number"),
    "category": ("category", "price_category"),
    "colour": ("colour", "color"),
    "x": ("x",),
    "y": ("y",),
    "trait": ("trait",),
    "aisle": ("aisle", "aisle_after"),
    "capacity": ("capacity", "places"),
}
TRAIT_WORDS = {
    "wheelchair": ("wheelchair", "w", "accessible"),
    "companion": ("companion", "c"),
    "restricted": ("restricted", "restricted view", "r"),
    "": ("", "n", "none", "plain"),
}
YES, NO = ("yes", "y", "true", "1"), ("", "no", "n", "false", "0")

COORDINATE_MAX = 1_000_000
NAME_MAX = 60

Line = tuple[int, dict[str, str]]  # line number; column → text


def parse_csv(name: str, data: bytes) -> ImportedPlan:
    seats: list[ImportedSeat] = []
    standing: list[tuple[str, int, str]] = []
    colours: dict[str, str] = {}
    seen: set[tuple[str, str, str]] = set()
    for number, cells in _lines(data):
        category = cells.get("category") or "Standard"
        if cells.get("colour"):
            colours.setdefault(category, cells["colour"])
        if cells.get("capacity"):
            standing.append((cells.get("section") or "Standing", _capacity(number, cells), category))
            continue
        seat = _seat(number, cells, category)
        if (seat.section, seat.row, seat.number) in seen:
            raise LayoutProblem(f"line {number}: row {seat.row} has a seat {seat.number} already; delete one")
        seen.add((seat.section, seat.row, seat.number))
        seats.append(seat)
        if len(seats) > SEATS_MAX:
            raise LayoutProblem(f"line {number}: more than {SEATS_MAX} seats; split the hall in two")
        if (seat.point is None) != (seats[0].point is None):
            raise LayoutProblem(f"line {number}: give x and y for every seat, or for none")
    return ImportedPlan(name=name, seats=seats, colours=colours, areas=list(_areas(standing)))


def _lines(data: bytes) -> Iterator[Line]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data[: problem.start].count(b"\n") + 1
        raise LayoutProblem(f"line {line}: this is not UTF-8; save the table as CSV UTF-8") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [_column(cell) for cell in next(reader, [])]
        if not {"row", "number"} <= set(columns) and "capacity" not in columns:
            raise LayoutProblem("line 1: no columns row and number; the first line names the columns")
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, dict(zip(columns, (cell.strip() for cell in cells), strict=False))
    except csv.Error as problem:
        raise LayoutProblem(f"line {reader.line_num}: {problem}; check the quotes") from None


def _column(cell: str) -> str:
    column_name = "_".join(cell.strip().lower().split())
    for column, names in COLUMNS.items():
        if column_name in names:
            return column
    raise LayoutProblem(f"line 1: unknown column “{cell.strip()[:30]}”; the columns are {', '.join(COLUMNS)}")


def _seat(line: int, cells: dict[str, str], category: str) -> ImportedSeat:
    row, number = cells.get("row", ""), cells.get("number", "")
    for text in (row, number, category, cells.get("section", "")):
        if len(text) > NAME_MAX or not text.isprintable():
            raise LayoutProblem(f"line {line}: “{text[:30]}”: {NAME_MAX} letters at most, on one line")
    if not row or not number:
        raise LayoutProblem(f"line {line}: no row or no number; a standing area has a capacity instead")
    trait = cells.get("trait", "").lower()
    found = [name for name, words in TRAIT_WORDS.items() if trait in words]
    if not found:
        raise LayoutProblem(f"line {line}: unknown trait “{trait[:30]}”; wheelchair, companion or restricted")
    aisle = cells.get("aisle", "").lower()
    if aisle not in YES + NO:
        raise LayoutProblem(f"line {line}: aisle is “{aisle[:30]}”; write yes, or leave it empty")
    section, point = cells.get("section") or "Stalls", _point(line, cells)
    return ImportedSeat(section, row, number, category, point, found[0], aisle in YES)


def _point(line: int, cells: dict[str, str]) -> Point | None:
    x, y = cells.get("x", ""), cells.get("y", "")
    if not x and not y:
        return None
    try:
        point = float(x), float(y)
    except ValueError:
        raise LayoutProblem(f"line {line}: x “{x[:20]}”, y “{y[:20]}”: write numbers like 3.5") from None
    if not all(abs(value) <= COORDINATE_MAX for value in point):
        raise LayoutProblem(f"line {line}: x and y are metres, {COORDINATE_MAX} at most")
    return point


def _capacity(line: int, cells: dict[str, str]) -> int:
    text = cells["capacity"]
    if cells.get("row") or cells.get("number"):
        raise LayoutProblem(f"line {line}: a seat and a capacity; leave row and number of an area empty")
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= SEATS_MAX):
        raise LayoutProblem(f"line {line}: capacity “{text[:20]}” is not a number from 1 to {SEATS_MAX}")
    return int(text)


def _areas(standing: list[tuple[str, int, str]]) -> Iterator[AreaBody]:
    """Squares side by side in front of the seats, half a square metre per person."""
    left = 0.0
    for name, capacity, category in standing:
        side = round(sqrt(capacity / 2), 2)
        right, top, bottom = left + side, -SECTION_GAP - side, -SECTION_GAP
        yield AreaBody(name, capacity, [(left, top), (right, top), (right, bottom), (left, bottom)], category)
        left = right + SECTION_GAP
