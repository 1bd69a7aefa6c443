"""Rules for the numbers of seats and the labels of rows. No I/O.

    1-14                   1, 2, … 14
    14-1                   14, 13, … 1                    numbered from the right
    27-1 odd, 2-28 even    27, 25, … 1, 2, 4, … 28        odd to the left, even to the right
    10-100 step 10         10, 20, … 100
    A-H, J, K              A, B, … H, J, K
    1, 1a, 2               just these
    ["1-1", "1-2"]         a list is taken word for word

The same words pick seats of a row: there, `5-9` is everything that stands from seat 5 to seat 9,
whatever is between them, so it works for odd, even and lettered numbers alike.
"""

import re
from collections import Counter

from holdfast.layouts.body import SEATS_MAX, LayoutProblem, Rule

_NUMBERS = re.compile(r"([0-9]{1,6}) *- *([0-9]{1,6})(?: +(odd|even)| +step +([0-9]{1,4}))?")
_LETTERS = re.compile(r"([A-Z]) *- *([A-Z])|([a-z]) *- *([a-z])")
_NAME_MAX = 60


def expand_numbers(rule: Rule) -> list[str]:
    """Every number that a rule names, in its order, each once."""
    named: list[str] = []
    for piece in [[name] for name in rule] if isinstance(rule, list) else map(_expand, _pieces(rule)):
        named += piece
        if len(named) > SEATS_MAX:
            raise LayoutProblem(f"more than {SEATS_MAX} seats in a row; a layout has at most that many")
    if len(set(named)) < len(named):
        twice = Counter(named).most_common(1)[0][0]
        raise LayoutProblem(f"number {twice} is there twice; number each seat once")
    if not named:
        raise LayoutProblem("no seats; leave the row out, or number its seats")
    return named


def pick_positions(rule: Rule | None, of: list[str]) -> list[int]:
    """Positions in `of` that a rule picks, in the order it names them, each once."""
    if rule is None:
        return []
    position = {name: place for place, name in enumerate(of)}
    if isinstance(rule, list):
        return list(dict.fromkeys(_known(name, position) for name in rule))
    found: dict[int, None] = {}
    for piece in _pieces(rule):
        stretch = _stretch(piece, position)
        if stretch[0] in found:
            raise LayoutProblem(f"“{piece}” is picked twice; once is enough")
        found.update(dict.fromkeys(stretch))
    return list(found)


def _pieces(rule: str) -> list[str]:
    pieces = [" ".join(piece.split()) for piece in rule.split(",")]
    if "" in pieces:
        raise LayoutProblem(f"nothing between two commas in “{rule[:40]}”; take one comma out")
    return pieces


def _expand(piece: str) -> list[str]:
    if found := _NUMBERS.fullmatch(piece):
        first, last, parity, step = int(found[1]), int(found[2]), found[3], int(found[4] or 1)
        if step == 0 or abs(last - first) // step >= SEATS_MAX:
            raise LayoutProblem(f"“{piece}” is not a row of seats; a layout has at most {SEATS_MAX}")
        up = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
        odd = {"odd": (1,), "even": (0,), None: (0, 1)}[parity]
        return [str(number) for number in up if number % 2 in odd]
    if found := _LETTERS.fullmatch(piece):
        first, last = (ord(letter) for letter in found.groups() if letter)
        step = 1 if first <= last else -1
        return [chr(letter) for letter in range(first, last + step, step)]
    if len(piece) > _NAME_MAX:
        raise LayoutProblem(f"“{piece[:40]}…” is too long for a number; {_NAME_MAX} letters at most")
    return [piece]


def _stretch(piece: str, position: dict[str, int]) -> range:
    first, dash, last = piece.partition("-")
    if piece in position or not dash:
        place = _known(piece, position)
        return range(place, place + 1)
    ends = sorted((_known(first.strip(), position), _known(last.strip(), position)))
    return range(ends[0], ends[1] + 1)


def _known(name: str, position: dict[str, int]) -> int:
    if name not in position:
        raise LayoutProblem(f"there is no seat {name} in this row; it has {_summary(list(position))}")
    return position[name]


def _summary(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])} … {names[-1]}"
