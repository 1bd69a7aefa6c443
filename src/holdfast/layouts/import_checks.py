"""Likely mistakes in a layout that a person wrote. No I/O.

Stored layouts are not checked: what their seats are called never changes.
"""

from collections import defaultdict

from holdfast.layouts.body import LayoutBody, LayoutProblem, expand_numbers
from holdfast.layouts.layout import Layout

SPOT = 0.1  # seats nearer than about this many metres are on the same spot
OVERLAPS_MAX = 20  # listed; two rows on the same spot have one per seat


def refuse_unclear_seats(body: LayoutBody) -> LayoutBody:
    """Refuse “1 to 4” and “A B C”, which would each be one seat of that name."""
    for section in body.sections:
        for row in section.rows:
            if not isinstance(row.seats, str):
                continue
            for name in expand_numbers(row.seats):
                if " " in name:
                    label = row.label if isinstance(row.label, str) else ", ".join(row.label)
                    raise LayoutProblem(
                        f"section {section.name}, row {label}: seats “{name}” would be one seat; write “1-4” "
                        f'or “A, B, C”, or ["{name}"] if that is its name'
                    )
    return body


def find_overlaps(layout: Layout) -> list[str]:
    """Pairs of seats on the same spot: usually two rows without a place of their own."""
    seats_at: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    standing = {place for area in layout.areas for place in range(area.start, area.start + area.capacity)}
    for seat, label in enumerate(layout.labels):
        if seat not in standing:
            seats_at[round(layout.x[seat] / SPOT), round(layout.y[seat] / SPOT)].append(label)
    found = [
        f"{labels[0]} and {labels[1]} are at the same place" for labels in seats_at.values() if labels[1:]
    ]
    return found[:OVERLAPS_MAX]
