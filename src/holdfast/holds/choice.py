"""Best available: which seats a buyer gets who requests a number of seats. No I/O.

The rule. choose.lua implements the same rule; a property test compares the two.

A window is `count` consecutive seats of one run, all free (code A). It fits the wish if
- every seat is of the category, if one is requested; and
- it has no wheelchair (w) or companion place (c); or, if the wish is `accessible`, it has a wheelchair space.

A run's free seats make maximal stretches. A window in a stretch has `left` free seats before it and `right`
behind it, in that stretch. Of all windows that fit, the best is the lowest by, in this order:

    1  spare        accessible only: (w - 1) + |c - 1|, of the w's and c's in it; for one seat (w - 1) + c.
                    One space, one companion: one person must not take two spaces
    2  single       left == 1 or right == 1: it would leave a single seat behind
    3  restricted   one of its seats has a restricted view (r)
    4  inner        prefer aisle only: it touches neither end of its run
    5  cost         costs[start + (count - 1) // 2] of the plan (costs.py) for the preference
    6  odd          left is odd
    7  start        the lower seat number

Runs are searched in the plan's order, (lowest cost, start). Once a window with no mark against it (1 to 4 all
zero) is found, the search ends at the first run whose lowest cost is above that window's cost.

If there is no window of `count` seats, the wish is refused; or, if it is not `together`, split: take the best
window of the largest size that has any, then go on for the rest, with those seats gone. For an accessible
wish the first group is accessible, and no later one is. Refused if the groups do not add up to `count`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from holdfast.holds.alternatives import stretches_of
from holdfast.layouts import COST_MAX, Layout, Prefer, compute_seat_costs


class BestAvailable(Struct, frozen=True, gc=False):
    """Any `count` seats, the best that fit."""

    count: int
    category: int | None = None
    prefer: Prefer = Prefer.BEST
    accessible: bool = False
    together: bool = True


@dataclass(frozen=True, slots=True)
class SeatChoice:
    seats: tuple[int, ...]
    together: bool
    why: str  # "nearest the stage, side by side, no single seat left"


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """In the order of the rule: the lowest is the best."""

    spare: int
    single: bool
    restricted: bool
    inner: bool
    cost: int
    odd: bool
    start: int

    @property
    def is_spotless(self) -> bool:
        return not (self.spare or self.single or self.restricted or self.inner)


def find_best(layout: Layout, states: bytes, wish: BestAvailable) -> SeatChoice | None:
    found = _best_window(layout, states, wish)
    if found is not None:
        seats = tuple(range(found.start, found.start + wish.count))
        return SeatChoice(seats, True, explain_choice(layout, wish, seats, leaves_single=found.single))
    return None if wish.together else _split(layout, states, wish)


def _split(layout: Layout, states: bytes, wish: BestAvailable) -> SeatChoice | None:
    remaining, seats, rest, size = bytearray(states), list[int](), wish, wish.count - 1
    single = False
    while rest.count and size:
        found = _best_window(layout, bytes(remaining), replace(rest, count=size))
        if found is None:
            size -= 1
            continue
        remaining[found.start : found.start + size] = b"H" * size
        seats += range(found.start, found.start + size)
        single = single or found.single
        if rest.count == size:
            chosen = tuple(sorted(seats))
            return SeatChoice(chosen, False, explain_choice(layout, wish, chosen, leaves_single=single))
        left = rest.count - size
        # Wheelchair spaces come in ones and twos: what follows the first group may be larger than it.
        size = left if rest.accessible else min(size, left)
        rest = replace(rest, count=left, accessible=False)
    return None


def _best_window(layout: Layout, states: bytes, wish: BestAvailable) -> Window | None:
    the_plan = compute_seat_costs(layout, wish.prefer)
    wanted, lowest, cost_max = b"A" * wish.count, None, COST_MAX
    for run_cost, start, length in the_plan.runs:
        if run_cost > cost_max:
            break
        if length >= wish.count and states.find(wanted, start, start + length) >= 0:
            run = range(start, start + length)
            found = min(_windows(layout, states, wish, run, cost_max), default=None)
            if found is not None and (lowest is None or found < lowest):
                lowest = found
                cost_max = lowest.cost if lowest.is_spotless else COST_MAX
    return lowest


def _windows(
    layout: Layout, states: bytes, wish: BestAvailable, run: range, cost_max: int
) -> Iterator[Window]:
    """Windows of a run that fit. Once a spotless one is known, dearer ones are not worth a second look."""
    count, last, costs = wish.count, len(run) - wish.count, compute_seat_costs(layout, wish.prefer).costs
    for stretch in stretches_of(count).finditer(states[run.start : run.stop]):
        for offset in range(stretch.start(), stretch.end() - count + 1):
            start, left, right = run.start + offset, offset - stretch.start(), stretch.end() - offset - count
            cost = costs[start + (count - 1) // 2]
            if cost <= cost_max and _fits(layout, wish, start):
                yield Window(
                    spare=_spare(layout, wish, start),
                    single=left == 1 or right == 1,
                    restricted=layout.traits.find(b"r", start, start + count) >= 0,
                    inner=wish.prefer is Prefer.AISLE and offset not in (0, last),
                    cost=cost,
                    odd=left % 2 == 1,
                    start=start,
                )


def _fits(layout: Layout, wish: BestAvailable, start: int) -> bool:
    end = start + wish.count
    if wish.category is not None and layout.category_of.count(wish.category, start, end) < wish.count:
        return False
    has_space = layout.traits.find(b"w", start, end) >= 0
    return has_space if wish.accessible else not has_space and layout.traits.find(b"c", start, end) < 0


def _spare(layout: Layout, wish: BestAvailable, start: int) -> int:
    if not wish.accessible:
        return 0
    spaces = layout.traits.count(b"w", start, start + wish.count)
    companions = layout.traits.count(b"c", start, start + wish.count)
    return spaces - 1 + abs(companions - (1 if wish.count > 1 else 0))


def explain_choice(
    layout: Layout, wish: BestAvailable, seats: Sequence[int], leaves_single: bool | None = None
) -> str:
    """Why these seats, for the buyer. leaves_single is None if it is not known."""
    groups = len(list(_groups(layout, seats)))
    reasons = [_preference(layout, wish, seats)]
    if groups > 1:
        reasons.append(f"in {groups} groups, as no {wish.count} are left side by side")
    elif len(seats) > 1:
        reasons.append("side by side")
    if any(layout.traits[seat] == ord("w") for seat in seats):
        reasons.append("with a wheelchair space")
    if any(layout.traits[seat] == ord("r") for seat in seats):
        reasons.append("with a restricted view, as all others are taken")
    if leaves_single is not None:
        reasons.append("a single seat left, as it had to be" if leaves_single else "no single seat left")
    return ", ".join(reasons)


def _preference(layout: Layout, wish: BestAvailable, seats: Sequence[int]) -> str:
    match wish.prefer:
        case Prefer.FRONT:
            return "nearest the front"
        case Prefer.CENTRE:
            return "nearest the centre"
        case Prefer.AISLE if any(_is_by_an_aisle(layout, seat) for seat in seats):
            return "by the aisle"
    return f"nearest the {layout.focal_name}"


def _is_by_an_aisle(layout: Layout, seat: int) -> bool:
    run = layout.run_at(seat)
    return run is not None and seat in (run.start, run.start + run.length - 1)


def _groups(layout: Layout, seats: Sequence[int]) -> Iterator[list[int]]:
    """Seats that are side by side, together."""
    ordered = sorted(seats)
    for _, group in groupby(enumerate(ordered), key=lambda each: (each[1] - each[0], layout.run_at(each[1]))):
        yield [seat for _, seat in group]
