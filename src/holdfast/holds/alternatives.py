"""Alternatives for a buyer whose seats are taken: as many seats, near the requested ones. No I/O.

Quick when it matters, which is when a show is nearly gone: free stretches are found by searching the string
of states outwards from the requested seat, and the search stops after a few rows with a result.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import dist

from holdfast.layouts import Area, Layout, Run
from holdfast.seatmap import Snapshot

RUNS_ENOUGH = 16  # looked at before we are content with what we have found: about eight rows either way
RUNS_MAX = 200  # looked at when nothing suits

Candidate = tuple[bool, bool, float, int]  # of another category, leaves a single, how far, first seat


def alternatives(
    layout: Layout, states: bytes, seats: Sequence[int], limit: int = 3
) -> list[tuple[int, ...]]:
    """Up to `limit` groups that share no seat: same category first, then no single left, then nearness."""
    count, first = len(seats), min(seats)
    if (area := layout.area_at(first)) is not None:
        instead = places(area, states, count)
        return [instead] if instead else []
    candidates = sorted(_candidates(layout, states, seats, limit))
    found: list[tuple[int, ...]] = []
    for *_, start in candidates:
        group = tuple(range(start, start + count))
        if len(found) < limit and all(set(group).isdisjoint(other) for other in found):
            found.append(group)
    return found or _scattered(layout, states, first, count)


def places(area: Area, states: bytes, count: int) -> tuple[int, ...] | None:
    """The first free places of a standing area, or None if there are not so many."""
    free = re.finditer(b"A", states[area.start : area.start + area.capacity])
    found = tuple(area.start + place.start() for place in islice(free, count))
    return found if len(found) == count else None


@lru_cache(maxsize=16)
def stretches_of(count: int) -> re.Pattern[bytes]:
    """Finds every free stretch of at least `count` seats in a run's states."""
    return re.compile(b"A{%d,}" % count)


def _candidates(layout: Layout, states: bytes, seats: Sequence[int], limit: int) -> Iterator[Candidate]:
    accessible = any(layout.traits[seat] == ord("w") for seat in seats)
    runs = _with_wheelchair_spaces(layout) if accessible else _outward(layout, states, min(seats), len(seats))
    suitable = 0
    for looked, run in enumerate(islice(runs, RUNS_MAX), 1):
        found = list(_in_run(layout, states, run, seats))
        yield from found
        suitable += any(not other_category for other_category, *_ in found)
        if looked >= RUNS_ENOUGH and suitable >= limit and not accessible:
            return


def _in_run(layout: Layout, states: bytes, run: Run, seats: Sequence[int]) -> Iterator[Candidate]:
    count, category = len(seats), layout.category_of[min(seats)]
    requested = _middle(layout, seats)
    needs_space = any(layout.traits[seat] == ord("w") for seat in seats)
    for stretch in stretches_of(count).finditer(states[run.start : run.start + run.length]):
        for offset in _offsets(layout, run, stretch.span(), seats, requested):
            start = run.start + offset
            traits = layout.traits[start : start + count]
            if b"w" not in traits if needs_space else (b"w" in traits or b"c" in traits):
                continue
            differs = layout.category_of.count(category, start, start + count) < count
            single = 1 in (offset - stretch.start(), stretch.end() - count - offset)
            middle = start + count // 2
            yield differs, single, dist(requested, (layout.x[middle], layout.y[middle])), start


def _offsets(
    layout: Layout, run: Run, stretch: tuple[int, int], seats: Sequence[int], requested: tuple[float, float]
) -> Sequence[int]:
    """Where in a free stretch a group may begin: everywhere, or near the requested seats if it is long.

    Of a row of a hundred equal seats only those around the nearest one can win. A row is straight or a gentle
    curve, so the nearest is found by halving.
    """
    count, (first, end) = len(seats), stretch
    last = end - count
    start, length = run.start + first, end - first
    category, traits = layout.category_of[start], layout.traits[start : start + length]
    is_uniform = layout.category_of.count(category, start, start + length) == length
    near = 2 * count + 2  # room for three groups beside each other, and for one that leaves no single
    if length <= 3 * near or not is_uniform or b"w" in traits or b"c" in traits:
        return range(first, last + 1)

    def distance(offset: int) -> float:
        middle = run.start + offset + count // 2
        return dist(requested, (layout.x[middle], layout.y[middle]))

    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if distance(middle) <= distance(middle + 1):
            high = middle
        else:
            low = middle + 1
    around = range(max(first, low - near), min(last, low + near) + 1)
    return sorted({first, last, *around})


def _outward(layout: Layout, states: bytes, seat: int, count: int) -> Iterator[Run]:
    """Runs with a free stretch, from the seat's own outwards by number: left and right in turn."""
    run = layout.run_at(seat)
    assert run is not None
    directions = [_behind(layout, states, run.start, count), _ahead(layout, states, run.start, count)]
    while directions:
        direction = directions.pop()
        if (found := next(direction, None)) is not None:
            directions.insert(0, direction)
            yield found


def _ahead(layout: Layout, states: bytes, seat: int, count: int) -> Iterator[Run]:
    wanted, at = b"A" * count, seat
    while (hit := states.find(wanted, at)) >= 0:
        start, length = _whole(layout, hit)
        at = start + length
        if hit + count <= at and layout.run_at(hit):
            yield Run(start, length)


def _behind(layout: Layout, states: bytes, seat: int, count: int) -> Iterator[Run]:
    wanted, at = b"A" * count, seat
    while (hit := states.rfind(wanted, 0, at)) >= 0:
        start, length = _whole(layout, hit)
        is_inside = hit + count <= start + length
        if is_inside and layout.run_at(hit):
            yield Run(start, length)
        # A stretch that reaches into the next run says nothing of the seats before it: look there again.
        at = start if is_inside else start + length


def _whole(layout: Layout, seat: int) -> tuple[int, int]:
    """Start and length of the run or the standing area that a seat is in."""
    if (area := layout.area_at(seat)) is not None:
        return area.start, area.capacity
    run = layout.run_at(seat)
    assert run is not None, "a seat is in a run or in an area"
    return run


def _with_wheelchair_spaces(layout: Layout) -> Iterator[Run]:
    seat = layout.traits.find(b"w")
    while seat >= 0 and (run := layout.run_at(seat)) is not None:
        yield run
        seat = layout.traits.find(b"w", run.start + run.length)


def _scattered(layout: Layout, states: bytes, seat: int, count: int) -> list[tuple[int, ...]]:
    """Nothing together is left anywhere: the nearest free seats, if there are as many."""
    singles = (run for run in islice(_outward(layout, states, seat, 1), RUNS_MAX))
    free = [
        place
        for run in singles
        for place in range(run.start, run.start + run.length)
        if states[place] == ord("A") and layout.traits[place] not in b"wc"
    ]
    nearest = sorted(free, key=lambda place: (abs(place - seat), place))[:count]
    return [tuple(sorted(nearest))] if len(nearest) == count else []


def _middle(layout: Layout, seats: Sequence[int]) -> tuple[float, float]:
    count = len(seats)
    return sum(layout.x[seat] for seat in seats) / count, sum(layout.y[seat] for seat in seats) / count


FREE = ord("A")
REMEMBERED_MAX = 5_000  # questions about a show
NO_VERSION = -1  # of no map


def find_alternatives(
    snapshot: Snapshot, seats: tuple[int, ...], taken: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """Of this map; `taken` was refused a moment ago, and is never offered, even if the map is older.

    What was found for an earlier map, at most a second ago, is offered again if all of it is still free. With
    1 000 buyers on 200 seats a sale takes a quarter less processor time (the lab, two pairs of runs,
    November 2026).
    """
    if not seats or snapshot.free < len(seats):  # none: what was lost to a rival came free in the meantime
        return []
    states, key = snapshot.states, seats
    if any(states[seat] == FREE for seat in taken if seat < len(states)):
        states, key = _without(states, taken), (*seats, -1, *taken)
    remembered = snapshot.offered.groups
    version, found = remembered.get(key, (NO_VERSION, []))
    if version == snapshot.version or (found and _are_free(states, found)):
        return found
    found = alternatives(snapshot.layout, states, seats)
    if len(remembered) >= REMEMBERED_MAX:
        remembered.clear()
    remembered[key] = (snapshot.version, found)
    return found


def _are_free(states: bytes, groups: Sequence[tuple[int, ...]]) -> bool:
    return all(states[seat] == FREE for group in groups for seat in group)


def _without(states: bytes, taken: Sequence[int]) -> bytes:
    changed = bytearray(states)
    for seat in taken:
        changed[seat : seat + 1] = b"H"
    return bytes(changed[: len(states)])
