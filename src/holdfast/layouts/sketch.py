"""A hall as a small picture of letters, to see on a terminal whether a file was read correctly."""

from collections.abc import Iterable, Iterator
from itertools import cycle
from string import ascii_uppercase

from holdfast.layouts.body import Point
from holdfast.layouts.layout import Layout

COLUMNS_MAX, LINES_MAX = 78, 30
COLUMNS_PER_LINE = 2  # a line of a terminal is about twice as high as a letter is wide
COLUMNS_PER_METRE_MAX = 2.2  # of a small hall: a line for each row
FOCAL = "*"


def category_letters() -> Iterator[str]:
    """For the categories in their order; after Z they begin again."""
    return cycle(ascii_uppercase)


def sketch(layout: Layout) -> list[str]:
    """A letter for seats of its category, small letters for standing areas, a star for the stage."""
    outlines = [area.outline for area in layout.body.areas]
    standing = {seat for area in layout.areas for seat in range(area.start, area.start + area.capacity)}
    seats = [seat for seat in range(layout.seat_count) if seat not in standing]
    places = [(layout.x[seat], layout.y[seat]) for seat in seats]
    corners = [*places, *(point for outline in outlines for point in outline), layout.focal]
    left, top, scale = _scale(corners)
    letters = [letter for letter, _ in zip(category_letters(), layout.categories, strict=False)]

    def cell(x: float, y: float) -> tuple[int, int]:
        return round((y - top) * scale / COLUMNS_PER_LINE), round((x - left) * scale)

    drawn: dict[tuple[int, int], str] = {}
    for area, outline in zip(layout.areas, outlines, strict=True):
        letter = letters[layout.category_of[area.start]].lower()
        drawn |= dict.fromkeys(_cells_within([cell(x, y) for x, y in outline]), letter)
    for seat, (x, y) in zip(seats, places, strict=True):
        drawn[cell(x, y)] = letters[layout.category_of[seat]]
    drawn.setdefault(cell(*layout.focal), FOCAL)  # of a cinema it is the best seat
    lines = [
        [" "] * (1 + max(column for _, column in drawn)) for _ in range(1 + max(line for line, _ in drawn))
    ]
    for (line, column), letter in drawn.items():
        lines[line][column] = letter
    return ["".join(line).rstrip() for line in lines]


def _scale(points: Iterable[Point]) -> tuple[float, float, float]:
    """Left, top, and columns per metre, so that all of them fit."""
    xs, ys = zip(*points, strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    fits = [COLUMNS_PER_METRE_MAX]
    fits += [(COLUMNS_MAX - 1) / wide] if wide else []
    fits += [(LINES_MAX - 1) * COLUMNS_PER_LINE / high] if high else []
    return min(xs), min(ys), min(fits)


def _cells_within(outline: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    lines, columns = zip(*outline, strict=True)
    for line in range(min(lines), max(lines) + 1):
        for column in range(min(columns), max(columns) + 1):
            if (line, column) in outline or _is_within(line, column, outline):
                yield line, column


def _is_within(line: int, column: int, outline: list[tuple[int, int]]) -> bool:
    """Whether a ray to the right crosses the outline an odd number of times."""
    is_within = False
    for (a_line, a_column), (b_line, b_column) in zip(outline, [*outline[1:], outline[0]], strict=True):
        if (a_line > line) != (b_line > line):
            crossing = a_column + (line - a_line) * (b_column - a_column) / (b_line - a_line)
            is_within ^= column <= crossing
    return is_within
