"""Places and numbers the seats of a layout body. No I/O.

x grows to the right and y downwards, as on a screen; angles grow clockwise. The audience of a row that runs
to the right looks up. Turned or curved rows follow the same convention: left to right as the audience sees
it, and the next row of a block behind it.

Indexes: sections in the order they are written, their rows in order, a row's seats from left to right, then
the standing areas. Seats added by a later version of the layout come after all earlier seats, whatever their
row.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import cos, dist, pi, radians, sin
from statistics import median
from typing import NamedTuple

from holdfast.layouts.body import (
    SEATS_MAX,
    AreaBody,
    LayoutBody,
    LayoutProblem,
    Point,
    RowBody,
    Rule,
    SectionBody,
    expand_numbers,
    pick_positions,
)

TRAITS = {"wheelchair": b"w", "companion": b"c", "restricted": b"r"}  # everything else is b"n"
GAP_MAX = 1.6  # of the row's usual pitch: a wider gap is an aisle


class Run(NamedTuple):
    start: int
    length: int


class Category(NamedTuple):
    name: str
    colour: str


class Area(NamedTuple):
    name: str
    start: int
    capacity: int
    category: int

    @property
    def seats(self) -> range:
        return range(self.start, self.start + self.capacity)


class Stretch(NamedTuple):
    """Labels and shape of a run; `Layout.stretches` is parallel to `Layout.runs`."""

    section: int
    row: str
    numbers: tuple[str, ...]
    circle: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class SeatedRow:
    section: int
    label: str
    numbers: list[str]
    points: list[Point]
    breaks: frozenset[int]  # positions after which there is an aisle
    categories: bytes
    traits: bytes
    circle: tuple[float, float, float] | None  # centre x, y and radius of a curved row


def place_rows(body: LayoutBody) -> Iterator[SeatedRow]:
    """Every row of every section, in written order."""
    category_of = {category.name: index for index, category in enumerate(body.categories)}
    for index, section in enumerate(body.sections):
        for row in section.rows:
            try:
                yield from _block(index, section, row, category_of)
            except LayoutProblem as problem:
                raise LayoutProblem(f"section {section.name}, row {_short(row.label)}: {problem}") from None


def category_index(name: str | None, category_of: dict[str, int]) -> int:
    if name is None and len(category_of) == 1:
        return 0
    if name is None:
        raise LayoutProblem("no category; give the row or its section one")
    if name not in category_of:
        raise LayoutProblem(f"category {name} is not among the layout's: {', '.join(category_of)}")
    return category_of[name]


def place_point(section: SectionBody, point: Point) -> Point:
    """Convert a point of a section to hall coordinates."""
    x, y = point
    across, down = cos(radians(section.turn)), sin(radians(section.turn))
    return section.at[0] + x * across - y * down, section.at[1] + x * down + y * across


def find_gaps(points: list[Point]) -> list[int]:
    """Positions after which the next seat is too far away to be a neighbour."""
    steps = [dist(a, b) for a, b in pairwise(points)]
    usual = median(steps) if steps else 0.0
    return [position for position, step in enumerate(steps) if step > GAP_MAX * usual]


def _block(
    index: int, section: SectionBody, row: RowBody, category_of: dict[str, int]
) -> Iterator[SeatedRow]:
    labels, seats = expand_numbers(row.label), expand_numbers(row.seats)
    breaks = frozenset(pick_positions(row.aisles, seats))
    categories = _categories(section, row, seats, category_of)
    traits = _traits(row, seats)
    if row.points and (len(row.points) != len(seats) or len(labels) > 1):
        raise LayoutProblem(
            f"{len(row.points)} points for {len(seats)} seats; give one row one point per seat"
        )
    for behind, label in enumerate(labels):
        points = row.points or list(_points(row, len(seats), breaks, behind * row.depth))
        circle = None
        if row.curve and not row.points:
            circle = (*place_point(section, row.curve.centre), row.curve.radius + behind * row.depth)
        here = [place_point(section, point) for point in points]
        yield SeatedRow(index, label, seats, here, breaks, categories, traits, circle)


def _points(row: RowBody, count: int, breaks: frozenset[int], back: float) -> Iterator[Point]:
    """Positions of the seats; `back` is the distance to the first row of the block."""
    along = [0.0]
    for position in range(count - 1):
        along.append(along[-1] + row.pitch + (row.aisle_width if position in breaks else 0.0))
    shift = {"start": 0.0, "centre": along[-1] / 2, "end": along[-1]}[row.align]
    if row.curve:
        radius = row.curve.radius + back
        if along[-1] > 2 * pi * radius:
            raise LayoutProblem("the row is longer than its circle; raise the radius or lower the pitch")
        for distance in along:
            angle = radians(row.curve.angle) - (distance - shift) / radius
            yield row.curve.centre[0] + radius * cos(angle), row.curve.centre[1] + radius * sin(angle)
        return
    right, down = cos(radians(row.angle)), sin(radians(row.angle))
    for distance in along:
        ahead = distance - shift
        yield row.at[0] + ahead * right - back * down, row.at[1] + ahead * down + back * right


def _categories(section: SectionBody, row: RowBody, seats: list[str], category_of: dict[str, int]) -> bytes:
    # A row needs no category if each of its seats has its own.
    own = {position for rule in row.categories.values() for position in pick_positions(rule, seats)}
    usual = 0 if len(own) == len(seats) else category_index(row.category or section.category, category_of)
    found = bytearray([usual]) * len(seats)
    for name, rule in row.categories.items():
        for position in _each_once(rule, seats, own, "category"):
            found[position] = category_index(name, category_of)
    return bytes(found)


def _traits(row: RowBody, seats: list[str]) -> bytes:
    found = bytearray(b"n" * len(seats))
    rules = {"wheelchair": row.wheelchair, "companion": row.companion, "restricted": row.restricted}
    left = set(range(len(seats)))
    for name, rule in rules.items():
        if rule is not None:
            for position in _each_once(rule, seats, left, "trait"):
                found[position] = TRAITS[name][0]
    return bytes(found)


def _each_once(rule: Rule, seats: list[str], left: set[int], what: str) -> Iterator[int]:
    for position in pick_positions(rule, seats):
        if position not in left:
            raise LayoutProblem(f"seat {seats[position]} has two {what} rules; leave one")
        left.discard(position)
        yield position


def _short(rule: Rule) -> str:
    text = rule if isinstance(rule, str) else ", ".join(rule)
    return text if len(text) <= 24 else f"{text[:24]}…"


class NumberedSeats:
    """Collects seats in index order; each version's additions follow the earlier seats."""

    def __init__(self, body: LayoutBody) -> None:
        self.labels: list[str] = []
        self.category_of = bytearray()
        self.traits = bytearray()
        self.runs: list[Run] = []
        self.stretches: list[Stretch] = []
        self.areas: list[Area] = []
        self.x, self.y = array("f"), array("f")
        self._category_of = {category.name: index for index, category in enumerate(body.categories)}
        if len(self._category_of) < len(body.categories):
            raise LayoutProblem("two categories have the same name; use unique names")
        growth_of = {label: growth for growth, labels in enumerate(body.added, 1) for label in labels}
        pieces: list[tuple[int, list[str], _Piece | AreaBody]] = []
        pieces += _stretches(body, growth_of)
        pieces += _areas(body, growth_of)
        for _, labels, piece in sorted(pieces, key=lambda piece: piece[0]):
            self._add(labels, piece)
        if not self.labels:
            raise LayoutProblem("no seats and no standing places; write at least one section or area")
        self.index_of = self._index_of()
        if unknown := growth_of.keys() - self.index_of.keys():
            raise LayoutProblem(f"added: there is no seat {min(unknown)}; leave it out")

    def _index_of(self) -> dict[str, int]:
        found = {label: index for index, label in enumerate(self.labels)}
        if len(found) < len(self.labels):
            twice = next(label for index, label in enumerate(self.labels) if found[label] != index)
            raise LayoutProblem(f"two seats are called {twice}; give one another section, row or number")
        return found

    def _add(self, labels: list[str], piece: "_Piece | AreaBody") -> None:
        start = len(self.labels)
        self.labels += labels
        if isinstance(piece, AreaBody):
            category = _of_area(piece, self._category_of)
            self.areas.append(Area(piece.name, start, piece.capacity, category))
            self.category_of += bytes([category]) * piece.capacity
            self.traits += b"n" * piece.capacity
            points = [_middle(piece.outline)] * piece.capacity
        else:
            row, first, last = piece
            self.runs.append(Run(start, last - first))
            self.stretches.append(Stretch(row.section, row.label, tuple(row.numbers[first:last]), row.circle))
            self.category_of += row.categories[first:last]
            self.traits += row.traits[first:last]
            points = row.points[first:last]
        # Rounded to a millimetre: the last digits of sines must not make equal layouts differ.
        self.x.extend(round(x, 3) for x, _ in points)
        self.y.extend(round(y, 3) for _, y in points)


_Piece = tuple[SeatedRow, int, int]  # a row's seats from one position up to another
_Growth = dict[str, int]


def _stretches(body: LayoutBody, growth_of: _Growth) -> Iterator[tuple[int, list[str], _Piece]]:
    """Rows, split at aisles and where seats were added later."""
    prefixes = [label_prefix(section, body) for section in body.sections]
    seats = sum(area.capacity for area in body.areas)
    for row in place_rows(body):
        seats += len(row.numbers)
        if seats > SEATS_MAX:
            raise LayoutProblem(f"more than {SEATS_MAX} seats; split the hall in two")
        labels = [f"{prefixes[row.section]}{row.label}-{number}" for number in row.numbers]
        growths = [growth_of.get(label, 0) for label in labels] if growth_of else [0] * len(labels)
        first = 0
        for last in range(1, len(labels) + 1):
            if last == len(labels) or last - 1 in row.breaks or growths[last] != growths[last - 1]:
                yield growths[first], labels[first:last], (row, first, last)
                first = last


def _areas(body: LayoutBody, growth_of: _Growth) -> Iterator[tuple[int, list[str], AreaBody]]:
    if sum(area.capacity for area in body.areas) > SEATS_MAX:
        raise LayoutProblem(f"more than {SEATS_MAX} standing places; split the hall in two")
    for area in body.areas:
        labels = [f"{area.name}-{number}" for number in range(1, area.capacity + 1)]
        yield growth_of.get(labels[0], 0), labels, area


def _of_area(area: AreaBody, category_of: dict[str, int]) -> int:
    try:
        return category_index(area.category, category_of)
    except LayoutProblem as problem:
        raise LayoutProblem(f"area {area.name}: {problem}") from None


def label_prefix(section: SectionBody, body: LayoutBody) -> str:
    own = section.name if len(body.sections) > 1 else ""
    prefix = own if section.prefix is None else section.prefix
    return f"{prefix}-" if prefix else ""


def _middle(points: list[Point]) -> Point:
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
