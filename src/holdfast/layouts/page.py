"""The compact JSON from run_index a browser draws a layout: 50 000 seats in about 100 kB. No I/O.

One entry per run, not per seat. Seats on a line or a circle are described by a few numbers; defaults are left
out. docs/layouts.md explains the format.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from math import atan2, cos, degrees, dist, radians, sin

import msgspec
from msgspec import Struct

from holdfast.layouts.body import LayoutBody, Point
from holdfast.layouts.seating import NumberedSeats, Run, Stretch, label_prefix, place_point

TOLERANCE = 0.02  # in layout units (metres): too small to see


class PageRun(Struct, frozen=True, omit_defaults=True):
    row: str
    count: int
    start: int | None = None  # index of the first seat; absent: the one after the last seat before it
    numbers: tuple[int, int] | list[str] | None = None  # first and step, or every number; absent: 1, 2, 3, …
    category: int | list[tuple[int, int]] | None = (
        None  # absent: the section's; or (category, count) in order
    )
    traits: str | None = None  # one letter per seat; absent: all plain
    line: tuple[float, float, float, float] | None = None  # x, y of the first seat; dx, dy to the next
    arc: tuple[float, float, float, float, float] | None = None  # centre x, y; radius; degrees, step
    points: list[tuple[float, float]] | None = None


class PageSection(Struct, frozen=True):
    name: str
    prefix: str  # label = prefix + row + "-" + number
    category: int
    outline: list[Point]
    runs: list[PageRun]


class PageArea(Struct, frozen=True):
    name: str
    start: int
    capacity: int
    category: int
    outline: list[Point]


class PageShape(Struct, frozen=True):
    outline: list[Point]
    text: str
    colour: str


class PageCategory(Struct, frozen=True):
    name: str
    colour: str


class PageFocal(Struct, frozen=True):
    name: str
    at: Point
    front: Point


class LayoutPage(Struct, frozen=True):
    hash: str
    name: str
    seats: int
    bounds: tuple[float, float, float, float]  # left, top, right, bottom of everything there is to draw
    focal: PageFocal
    categories: list[PageCategory]
    sections: list[PageSection]
    areas: list[PageArea]
    shapes: list[PageShape]


def render_page(content_hash: str, body: LayoutBody, seats: NumberedSeats) -> bytes:
    outline_of = {area.name: _rounded(area.outline) for area in body.areas}
    shapes = [PageShape(_rounded(shape.outline), shape.text, shape.colour) for shape in body.shapes]
    front, seated = body.front or body.focal, zip(seats.x, seats.y, strict=True)
    outlines = [*outline_of.values(), *(shape.outline for shape in shapes)]
    corners = [point for outline in outlines for point in outline]
    return msgspec.json.encode(
        LayoutPage(
            hash=content_hash,
            name=body.name,
            seats=len(seats.labels),
            bounds=_bounds([body.focal, front, *seated, *corners]),
            focal=PageFocal(body.focal_name, body.focal, front),
            categories=[PageCategory(category.name, category.colour) for category in body.categories],
            sections=list(_sections(body, seats)),
            areas=[
                PageArea(area.name, area.start, area.capacity, area.category, outline_of[area.name])
                for area in seats.areas
            ],
            shapes=shapes,
        )
    )


def _bounds(points: list[Point]) -> tuple[float, float, float, float]:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return _cm(min(xs)), _cm(min(ys)), _cm(max(xs)), _cm(max(ys))


def _sections(body: LayoutBody, seats: NumberedSeats) -> Iterator[PageSection]:
    of_section: list[list[int]] = [[] for _ in body.sections]
    for run_index, stretch in enumerate(seats.stretches):
        of_section[stretch.section].append(run_index)
    for section, run_indexes in zip(body.sections, of_section, strict=True):
        indexes = [seat for run_index in run_indexes for seat in _seats(seats.runs[run_index])]
        usual = Counter(seats.category_of[seat] for seat in indexes).most_common(1)
        corners = {seat for run_index in run_indexes for seat in _ends(seats.runs[run_index])}
        outline = [place_point(section, point) for point in section.outline]
        yield PageSection(
            name=section.name,
            prefix=label_prefix(section, body),
            category=usual[0][0] if usual else 0,
            outline=_rounded(outline or _hull([(seats.x[seat], seats.y[seat]) for seat in corners])),
            runs=list(_runs(seats, run_indexes, usual[0][0])) if usual else [],
        )


def _seats(run: Run) -> range:
    return range(run.start, run.start + run.length)


def _ends(run: Run) -> tuple[int, int, int]:
    """Its ends and its middle: enough for an outline, even of a curved run."""
    return run.start, run.start + run.length // 2, run.start + run.length - 1


def _runs(layout: NumberedSeats, run_indexes: list[int], usual: int) -> Iterator[PageRun]:
    expected = None
    for run_index in run_indexes:
        run, stretch = layout.runs[run_index], layout.stretches[run_index]
        seats = slice(run.start, run.start + run.length)
        categories = [(category, len(list(group))) for category, group in groupby(layout.category_of[seats])]
        traits = layout.traits[seats].decode()
        one = categories[0][0] if len(categories) == 1 else None
        points = list(zip(layout.x[seats], layout.y[seats], strict=True))
        line, arc, numbers = _line(points), _arc(points, stretch), _numbers(stretch.numbers)
        yield PageRun(
            row=stretch.row,
            count=run.length,
            start=None if run.start == expected else run.start,
            numbers=None if numbers == (1, 1) else numbers,
            category=categories if one is None else None if one == usual else one,
            traits=traits if traits.strip("n") else None,
            line=line,
            arc=arc if line is None else None,
            points=_rounded(points) if line is None and arc is None else None,
        )
        expected = run.start + run.length


def _numbers(names: tuple[str, ...]) -> tuple[int, int] | list[str]:
    if not all(name.isascii() and name.isdigit() and len(name) < 10 for name in names):
        return list(names)
    first = int(names[0])
    step = int(names[1]) - first if len(names) > 1 else 1
    even = [str(first + step * place) for place in range(len(names))]
    return (first, step) if even == list(names) else list(names)


def _line(points: list[Point]) -> tuple[float, float, float, float] | None:
    (x, y), (end_x, end_y), steps = points[0], points[-1], max(1, len(points) - 1)
    line = (_cm(x), _cm(y), round((end_x - x) / steps, 4) + 0.0, round((end_y - y) / steps, 4) + 0.0)
    drawn = [(line[0] + place * line[2], line[1] + place * line[3]) for place in range(len(points))]
    return line if _close(drawn, points) else None


def _arc(points: list[Point], stretch: Stretch) -> tuple[float, float, float, float, float] | None:
    if stretch.circle is None:
        return None
    x, y, radius = stretch.circle
    angles = [degrees(atan2(point[1] - y, point[0] - x)) for point in points]
    turned = (angles[1] - angles[0] + 180) % 360 - 180 if len(angles) > 1 else 0.0
    arc = (_cm(x), _cm(y), _cm(radius), round(angles[0], 2), round(turned, 4))
    at = [radians(arc[3] + place * arc[4]) for place in range(len(points))]
    drawn = [(arc[0] + arc[2] * cos(angle), arc[1] + arc[2] * sin(angle)) for angle in at]
    return arc if _close(drawn, points, tolerance=4 * TOLERANCE) else None


def _close(drawn: list[Point], points: list[Point], tolerance: float = TOLERANCE) -> bool:
    return all(dist(a, b) <= tolerance for a, b in zip(drawn, points, strict=True))


def _hull(points: list[Point]) -> list[Point]:
    """The tightest convex outline (Andrew's monotone chain)."""
    ordered = sorted(set(points))
    half: list[list[Point]] = []
    for side in (ordered, ordered[::-1]):
        chain: list[Point] = []
        for point in side:
            while len(chain) > 1 and _turns_right(chain[-2], chain[-1], point):
                chain.pop()
            chain.append(point)
        half.append(chain[:-1])
    return half[0] + half[1] or ordered


def _turns_right(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0


def _rounded(points: list[Point]) -> list[Point]:
    return [(_cm(x), _cm(y)) for x, y in points]


def _cm(value: float) -> float:
    return round(value, 2) + 0.0
