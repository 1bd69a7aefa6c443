"""Single seats that a choice leaves behind, and where it would leave none. No I/O.

    A A A A A    five free seats in a row
    A H H A A    the first seat is now single, and hard to sell

A single is a free seat with no free neighbour in its run: a taken seat, an aisle and the end of a row are all
walls. Only singles that the choice makes count. Only the state codes matter: a free seat is free
whatever its category or trait, so the map, best available and this rule see the same row.

Rule for hand-picked seats, run by run (orphan.lua decides by the same):
- They are fine if they make no single; if a wheelchair or companion place is among them; or if no other place
  in that run would be better.
- Better is a stretch of as many seats in that run, all free, without wheelchair or companion places, that
  makes no single. Of several, the one that starts nearest to the first picked seat; of two, the left one.
"""

from collections.abc import Sequence

from holdfast.holds.request import Orphan
from holdfast.layouts import Layout, Run

FREE = ord("A")


def find_orphans(run_states: bytes, picked: Sequence[int]) -> tuple[int, ...]:
    """Offsets in a run that become single when the picked ones go."""
    after = bytearray(run_states)
    for offset in picked:
        after[offset] = ord("H")
    beside = {offset + step for offset in picked for step in (-1, 1)}
    return tuple(
        offset
        for offset in sorted(beside)
        if _is_single(after, offset) and not _is_single(run_states, offset)
    )


def check_orphans(layout: Layout, states: bytes, seats: Sequence[int]) -> Orphan | None:
    """Better seats than these hand-picked ones, or None if they are fine. All of them are free."""
    by_run: dict[Run | None, list[int]] = {}
    for seat in sorted(seats):
        by_run.setdefault(layout.run_at(seat), []).append(seat)
    better: list[int] = []
    improved = False
    for run, picked in by_run.items():
        instead = None if run is None else _better(layout, states, run, picked)
        improved = improved or instead is not None
        better += instead or picked
    return Orphan(tuple(sorted(better))) if improved else None


def _better(layout: Layout, states: bytes, run: Run, picked: Sequence[int]) -> list[int] | None:
    """Better seats in the run, or None if the picked ones are fine."""
    run_states = states[run.start : run.start + run.length]
    if has_special(layout, picked) or not find_orphans(run_states, [seat - run.start for seat in picked]):
        return None
    count, wanted = len(picked), b"A" * len(picked)
    starts = range(run.length - count + 1)
    for start in sorted(starts, key=lambda start: abs(start - (picked[0] - run.start))):
        window = range(start, start + count)
        seats = [run.start + offset for offset in window]
        free = run_states.startswith(wanted, start)
        if free and not has_special(layout, seats) and not find_orphans(run_states, window):
            return seats
    return None


def has_special(layout: Layout, seats: Sequence[int]) -> bool:
    """Whether there is a wheelchair or companion place among them."""
    return any(layout.traits[seat] in b"wc" for seat in seats)


def _is_single(run_states: bytes | bytearray, offset: int) -> bool:
    if not 0 <= offset < len(run_states) or run_states[offset] != FREE:
        return False
    return (offset == 0 or run_states[offset - 1] != FREE) and (
        offset + 1 == len(run_states) or run_states[offset + 1] != FREE
    )
