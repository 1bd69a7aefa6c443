"""What people in a storm ask for."""

import json
import random

from holdfast.layouts import Layout
from tests.support.crowd import Wish


def neighbours(show_id: int, layout: Layout, how_many: int, *, sizes: tuple[int, ...] = (2,)) -> list[Wish]:
    """Seats side by side, by name, anywhere in the hall."""
    chance = random.Random(show_id)
    wishes: list[Wish] = []
    while len(wishes) < how_many:
        run, size = chance.choice(layout.runs), chance.choice(sizes)
        if run.length >= size:
            first = run.start + chance.randrange(run.length - size + 1)
            wishes.append(Wish(show_id, json.dumps({"seats": layout.labels[first : first + size]})))
    return wishes


def every_seat(show_id: int, layout: Layout) -> list[Wish]:
    """One at a time: the last single seat finds a buyer, too."""
    return [Wish(show_id, json.dumps({"seats": [label]})) for label in layout.labels]


def best(show_id: int, count: int) -> Wish:
    return Wish(show_id, json.dumps({"best": {"count": count}}))


def places(show_id: int, area: str, count: int) -> Wish:
    return Wish(show_id, json.dumps({"places": {"area": area, "count": count}}))
