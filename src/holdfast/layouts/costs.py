"""How good every seat is, computed once per layout and preference. No I/O.

Both seat searches read these costs: `best` in choice.py and choose.lua in Redis. A cost is 16 bits: 0 is the
best seat, 65535 the worst. Before scaling to 16 bits, a cost is:

    best, aisle   distance to the focal point
    front         distance of the row's nearest seat to the front, plus 1/16 of the seat's own
    centre        distance to the axis (from the front through the middle of all seats), plus 1/16 of the
                  distance to the focal point. With seats all around the front, the axis points down.

Seats 0 and 1 of a run, 2 and 3, and so on, share the mean of the two. Neighbouring windows of two then cost
the same, and the rule in choice.py takes the one with an even number of seats to its left: pairs fill a row
of even length completely instead of leaving a single seat at each end.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import dist, hypot

from holdfast.layouts.layout import Layout


class Prefer(StrEnum):
    BEST = "best"
    FRONT = "front"
    CENTRE = "centre"
    AISLE = "aisle"


COST_MAX = 65_535
TIE_BREAK = 1 / 16


@dataclass(frozen=True, slots=True)
class SeatCosts:
    costs: "array[int]"  # one per seat; COST_MAX for standing places, which are never compared
    runs: tuple[tuple[int, int, int], ...]  # lowest cost, start, length of every run, in this order


def compute_seat_costs(layout: Layout, prefer: Prefer) -> SeatCosts:
    """Computed once, and stored with the layout."""
    if prefer is Prefer.AISLE:
        return compute_seat_costs(layout, Prefer.BEST)
    found: SeatCosts | None = layout.derived.get(prefer)
    if found is None:
        found = layout.derived[prefer] = _compute(layout, prefer)
    return found


def _compute(layout: Layout, prefer: Prefer) -> SeatCosts:
    measure = {Prefer.BEST: _distances, Prefer.FRONT: _from_the_front, Prefer.CENTRE: _from_the_axis}[prefer]
    costs = _scaled(layout, _in_pairs(layout, measure(layout)))
    runs = ((min(costs[start : start + length]), start, length) for start, length in layout.runs)
    return SeatCosts(costs, tuple(sorted(runs)))


def _distances(layout: Layout) -> list[float]:
    return [dist(point, layout.focal) for point in zip(layout.x, layout.y, strict=True)]


def _from_the_front(layout: Layout) -> list[float]:
    far = [dist(point, layout.front) for point in zip(layout.x, layout.y, strict=True)]
    nearest: dict[tuple[int, str], float] = {}
    for row, start, length in _rows(layout):
        nearest[row] = min(nearest.get(row, far[start]), *far[start : start + length], far[start])
    values = list(far)
    for row, start, length in _rows(layout):
        for seat in range(start, start + length):
            values[seat] = nearest[row] + TIE_BREAK * far[seat]
    return values


def _rows(layout: Layout) -> Iterator[tuple[tuple[int, str], int, int]]:
    for run, stretch in zip(layout.runs, layout.stretches, strict=True):
        yield (stretch.section, stretch.row), run.start, run.length


def _from_the_axis(layout: Layout) -> list[float]:
    far = _distances(layout)
    across, down = _axis(layout, max(far))
    x0, y0 = layout.front
    off = [abs((x - x0) * down - (y - y0) * across) for x, y in zip(layout.x, layout.y, strict=True)]
    return [offset + TIE_BREAK * distance for offset, distance in zip(off, far, strict=True)]


def _axis(layout: Layout, farthest: float) -> tuple[float, float]:
    seats = [seat for start, length in layout.runs for seat in range(start, start + length)]
    if not seats:
        return 0.0, 1.0
    across = sum(layout.x[seat] for seat in seats) / len(seats) - layout.front[0]
    down = sum(layout.y[seat] for seat in seats) / len(seats) - layout.front[1]
    length = hypot(across, down)
    return (across / length, down / length) if length > farthest / 10 else (0.0, 1.0)


def _in_pairs(layout: Layout, values: list[float]) -> list[float]:
    for start, length in layout.runs:
        for seat in range(start, start + length - 1, 2):
            values[seat] = values[seat + 1] = (values[seat] + values[seat + 1]) / 2
    return values


def _scaled(layout: Layout, values: list[float]) -> "array[int]":
    seats = [seat for start, length in layout.runs for seat in range(start, start + length)]
    low = min((values[seat] for seat in seats), default=0.0)
    high = max((values[seat] for seat in seats), default=0.0)
    scale = COST_MAX / (high - low) if high > low else 0.0
    costs = array("H", [COST_MAX]) * layout.seat_count
    for seat in seats:
        costs[seat] = round((values[seat] - low) * scale)
    return costs
