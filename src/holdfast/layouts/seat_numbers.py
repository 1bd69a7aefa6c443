"""Which seat has which index, and what it is called. No I/O.

Sections in the order they are written, their rows in order, a row's seats from left to right, then the
standing areas. What a growth brought comes behind everything that was there before it, whatever row it is in.
"""

from array import array
from collections.abc import Iterator

from holdfast.layouts.body import SEATS_MAX, AreaBody, LayoutBody, LayoutProblem, Point, SectionBody
from holdfast.layouts.seating import Area, Run, SeatedRow, Stretch, category_index, place_rows


class NumberedSeats:
    """Collects seats in the order of their numbers: each growth behind the one before it."""

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
            raise LayoutProblem("two categories have the same name; call each by its own")
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
        # A millimetre is enough, and keeps the last digits of sines out of what is compared.
        self.x.extend(round(x, 3) for x, _ in points)
        self.y.extend(round(y, 3) for _, y in points)


_Piece = tuple[SeatedRow, int, int]  # a row's seats from one position up to another
_Growth = dict[str, int]


def _stretches(body: LayoutBody, growth_of: _Growth) -> Iterator[tuple[int, list[str], _Piece]]:
    """Rows, broken at aisles and where seats were added later."""
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
