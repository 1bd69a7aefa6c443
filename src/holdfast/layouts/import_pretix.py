"""Imports pretix seating plans: zones contain rows, rows contain seats, with relative positions. No I/O.

Follows their published schema (0.0.1), but requires only the fields that we need. Their plans have no aisles
(derived from gaps), no traits (derived from category names) and no standing places (their areas are
drawings).
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import cos, pi, radians, sin

import msgspec
from msgspec import Struct

from holdfast.layouts.body import LayoutProblem, Point, ShapeBody
from holdfast.layouts.from_seat_list import ImportedPlan, ImportedSeat

STAGE = re.compile(r"stage|screen|bühne|buehne|podium|leinwand|scène|escenario|palco|pitch", re.IGNORECASE)
WHEELCHAIR = re.compile(r"wheelchair|rollstuhl|accessible|handicap", re.IGNORECASE)
COMPANION = re.compile(r"companion|begleit", re.IGNORECASE)
RESTRICTED = re.compile(r"restricted|sichtbehindert|limited view", re.IGNORECASE)
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
        label = str(row.row_number).strip() or str(place)
        for seat in row.seats:
            number = str(seat.seat_number).strip()
            # Two blocks of a zone may use the same row numbers; then only the guid distinguishes their seats.
            if not number or numbered[str(row.row_number), str(seat.seat_number)] > 1:
                number = seat.seat_guid.strip() or number
            x = zone.position.x + row.position.x + seat.position.x
            y = zone.position.y + row.position.y + seat.position.y
            yield ImportedSeat(section, label, number, seat.category, (x, y), _trait(seat.category))


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
