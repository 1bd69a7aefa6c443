"""Groups a flat list of imported seats into sections and rows of our layout format. No I/O.

Such lists contain positions but not aisles: two seats of a row are neighbours unless the gap between them is
wider than usual in that row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist

import msgspec

from holdfast.layouts.body import (
    COLOURS,
    AreaBody,
    CategoryBody,
    LayoutBody,
    LayoutProblem,
    Point,
    RowBody,
    SectionBody,
    ShapeBody,
)
from holdfast.layouts.seating import find_gaps

ROW_DEPTH = 0.95  # between rows without positions
SECTION_GAP = 2.0


@dataclass(frozen=True, slots=True)
class ImportedSeat:
    section: str
    row: str
    number: str
    category: str
    point: Point | None
    trait: str = ""  # wheelchair, companion, restricted
    aisle_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPlan:
    name: str
    seats: Sequence[ImportedSeat]
    colours: dict[str, str]  # by category; missing ones get a default colour
    focal: Point | None = None  # None: in front of the first row, in the middle
    areas: Sequence[AreaBody] = ()
    shapes: Sequence[ShapeBody] = ()


def build_layout_body(plan: ImportedPlan) -> LayoutBody:
    """Build the layout body: sections and rows in the order in which they appear."""
    rows: dict[str, dict[str, list[ImportedSeat]]] = {}
    for seat in plan.seats:
        rows.setdefault(seat.section, {}).setdefault(seat.row, []).append(seat)
    sections, down = [], 0.0
    for name, of_section in rows.items():
        sections.append(SectionBody(name, [_row(label, seats) for label, seats in of_section.items()]))
        if any(seat.point is None for seats in of_section.values() for seat in seats):
            sections[-1] = _arrange_rows(sections[-1], down)
            down += len(of_section) * ROW_DEPTH + SECTION_GAP
    if not plan.seats and not plan.areas:
        raise LayoutProblem("there are no seats in it; a plan needs at least one seat or standing area")
    return LayoutBody(
        name=plan.name,
        focal=plan.focal or _default_focal([seat.point for seat in plan.seats if seat.point]),
        categories=_categories(plan),
        sections=sections,
        areas=list(plan.areas),
        shapes=list(plan.shapes),
    )


def _categories(plan: ImportedPlan) -> list[CategoryBody]:
    used = [seat.category for seat in plan.seats] + [area.category or "" for area in plan.areas]
    free = [colour for colour in COLOURS if colour not in plan.colours.values()] or list(COLOURS)
    found: list[CategoryBody] = []
    for name in dict.fromkeys(used):
        found.append(CategoryBody(name, plan.colours.get(name) or free[len(found) % len(free)]))
    return found


def _row(label: str, found: list[ImportedSeat]) -> RowBody:
    seats = _sort_seats(found)
    points = [seat.point for seat in seats if seat.point is not None]
    after = {position for position, seat in enumerate(seats[:-1]) if seat.aisle_after} | set(
        find_gaps(points)
    )
    usual = Counter(seat.category for seat in seats).most_common(1)[0][0]
    others = defaultdict[str, list[str]](list)
    for seat in seats:
        if seat.category != usual:
            others[seat.category].append(seat.number)
    return RowBody(
        label=[label],
        seats=[seat.number for seat in seats],
        points=points,
        aisles=[seats[position].number for position in sorted(after)] or None,
        category=usual,
        categories=dict(others),
        wheelchair=_numbers_with_trait(seats, "wheelchair"),
        companion=_numbers_with_trait(seats, "companion"),
        restricted=_numbers_with_trait(seats, "restricted"),
    )


def _numbers_with_trait(seats: list[ImportedSeat], trait: str) -> list[str] | None:
    return [seat.number for seat in seats if seat.trait == trait] or None


def _sort_seats(seats: list[ImportedSeat]) -> list[ImportedSeat]:
    """Sort by position: files often list 1, 3, 5, 2, 4, 6; the order with the shortest path is the row."""
    if any(seat.point is None for seat in seats):
        return seats
    orders = [seats] + [sorted(seats, key=lambda seat: _along(seat, axis)) for axis in (0, 1)]
    return min(orders, key=_path_length)


def _along(seat: ImportedSeat, axis: int) -> float:
    return seat.point[axis] if seat.point else 0.0


def _path_length(seats: Iterable[ImportedSeat]) -> float:
    return sum(dist(a, b) for a, b in pairwise(seat.point for seat in seats if seat.point))


def _arrange_rows(section: SectionBody, down: float) -> SectionBody:
    """Rows without positions: one behind the other, each centred."""
    rows = [
        msgspec.structs.replace(row, points=[], align="centre", at=(0.0, down + behind * ROW_DEPTH))
        for behind, row in enumerate(section.rows)
    ]
    return msgspec.structs.replace(section, rows=rows)


def _default_focal(points: list[Point]) -> Point:
    if not points:
        return 0.0, -3.0
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return (min(xs) + max(xs)) / 2, min(ys) - 0.1 * (max(ys) - min(ys)) - 0.02 * (max(xs) - min(xs))
