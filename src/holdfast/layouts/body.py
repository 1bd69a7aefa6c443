"""Our JSON layout format as structs, and the rules that number seats (docs/layouts.md). No I/O.

    LayoutBody ─┬─ categories   price bands, each with a colour
                ├─ sections ─── rows ─── seats, by a numbering rule
                ├─ areas        standing places, interchangeable within an area
                └─ shapes       stage, bar, pitch: drawn, never sold

Short to write by hand: a row is one line, equal rows are one line together. `layout.py` expands it. Fields
are validated while decoding, so a `LayoutBody` from `decode_body()` has finite coordinates, printable names
and no unknown fields.

Numbering rules:

    1-14                   1, 2, … 14
    14-1                   14, 13, … 1                    numbered from the right
    27-1 odd, 2-28 even    27, 25, … 1, 2, 4, … 28        odd on the left, even on the right
    10-100 step 10         10, 20, … 100
    A-H, J, K              A, B, … H, J, K
    1, 1a, 2               just these
    ["1-1", "1-2"]         a list is taken literally

The same syntax selects seats of a row: there, `5-9` is every seat between seats 5 and 9, so it works for odd,
even and lettered numbers alike.
"""

import re
from collections import Counter
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

SEATS_MAX = 60_000

# Distinguishable with colour blindness (Okabe and Ito).
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")

# Not Meta(pattern=…): with msgspec 0.22 a process that has decoded one may crash as it exits (its issue 717)
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")

Coordinate = Annotated[float, Meta(ge=-1_000_000, le=1_000_000)]
Length = Annotated[float, Meta(gt=0, le=1_000_000)]
Degrees = Annotated[float, Meta(ge=-360, le=360)]
Point = tuple[Coordinate, Coordinate]
Name = Annotated[str, Meta(min_length=1, max_length=60)]
Label = Annotated[str, Meta(min_length=1, max_length=200)]
Colour = Annotated[str, Meta(min_length=7, max_length=7)]
RuleText = Annotated[str, Meta(min_length=1, max_length=4000)]
Rule = RuleText | list[Name]  # "1-14", "27-1 odd, 2-28 even", or ["1", "1a", "2"]: numbering.py


class LayoutProblem(ValueError):
    """An invalid layout. The message is one line: where, what, and how to fix it."""


def _check_words(*rules: Rule | None) -> None:
    for rule in rules:
        for text in [rule] if isinstance(rule, str) else rule or ():
            if UNPRINTABLE.search(text):
                raise LayoutProblem(f"{text[:30]!r} has a character that cannot be printed; take it out")


def _check_colour(colour: str) -> None:
    if not COLOUR.fullmatch(colour):
        raise LayoutProblem(f"colour {colour!r} is not one; write #0072B2")


class CategoryBody(Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    colour: Colour

    def __post_init__(self) -> None:
        _check_words(self.name)
        _check_colour(self.colour)


class CurveBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Seats on a circle, facing its centre."""

    centre: Point
    radius: Length  # of the first row; each further row of the block is `depth` further out
    angle: Degrees = 90.0  # where the row is anchored: 0 right of the centre, 90 below it, 180 left of it


class RowBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One row, or a block of equal rows one behind the other."""

    label: Rule  # "C", or a block: "A-H, J, K"
    seats: Rule  # from left to right, as the audience sees it
    at: Point = (0.0, 0.0)  # where the row is anchored, see `align`
    align: Literal["start", "centre", "end"] = "start"  # the part of the row that is at the anchor
    angle: Degrees = 0.0  # the way the row runs: 0 to the right, 90 down
    pitch: Length = 0.55  # from seat to seat
    depth: Length = 0.95  # from row to row of a block
    curve: CurveBody | None = None  # instead of `at` and `angle`
    points: list[Point] = []  # instead of all of these: a place for every seat
    aisles: Rule | None = None  # an aisle after each of these seats
    aisle_width: Length = 1.1  # added to the pitch
    category: Name | None = None
    categories: dict[Name, Rule] = {}  # seats of another category than the row's
    wheelchair: Rule | None = None
    companion: Rule | None = None
    restricted: Rule | None = None

    def __post_init__(self) -> None:
        _check_words(self.label, self.seats, self.category)


class SectionBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: Name
    rows: list[RowBody]
    prefix: Annotated[str, Meta(max_length=60)] | None = None  # of labels; else the name, if there are others
    category: Name | None = None
    at: Point = (0.0, 0.0)  # added to everything within
    turn: Degrees = 0.0  # clockwise, around the section's own 0, 0
    outline: list[Point] = []

    def __post_init__(self) -> None:
        _check_words(self.name, self.prefix)


class AreaBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A standing area: interchangeable places, as many as its capacity."""

    name: Name
    capacity: Annotated[int, Meta(ge=1, le=SEATS_MAX)]
    outline: Annotated[list[Point], Meta(min_length=3)]
    category: Name | None = None

    def __post_init__(self) -> None:
        _check_words(self.name)


class ShapeBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A drawing without seats, for orientation."""

    outline: list[Point]
    text: Annotated[str, Meta(max_length=60)] = ""
    colour: Colour = "#D9D9D9"

    def __post_init__(self) -> None:
        _check_words(self.text)
        _check_colour(self.colour)


class LayoutBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: Name
    focal: Point  # the stage or screen: nearer seats are better
    categories: Annotated[list[CategoryBody], Meta(min_length=1, max_length=32)]
    sections: list[SectionBody] = []
    areas: list[AreaBody] = []
    shapes: list[ShapeBody] = []
    focal_name: Name = "stage"
    front: Point | None = None  # where the front is, if elsewhere: a cinema is best in the middle
    added: list[list[Label]] = []  # labels that each later version added, in order; written by Layout.build

    def __post_init__(self) -> None:
        _check_words(self.name, self.focal_name)


_NEGATIVE_ZERO = re.compile(rb'("(?:[^"\\]|\\.)*")|(?<=[\[:,])-0\.0(?=[,\]}])')


def encode_canonical(body: LayoutBody) -> bytes:
    """The encoding that is hashed.

    PostgreSQL's jsonb preserves neither the order of keys nor the sign of a zero, so neither may affect the
    hash.
    """
    text = msgspec.json.encode(body, order="deterministic")
    return _NEGATIVE_ZERO.sub(lambda found: found[1] or b"0.0", text)


def decode_body(data: bytes) -> LayoutBody:
    """Decode a body from JSON and validate every field."""
    try:
        return msgspec.json.decode(data, type=LayoutBody)
    except msgspec.ValidationError as problem:
        raise LayoutProblem(f"{_format_problem(str(problem))}; docs/layouts.md lists the fields") from None
    except (msgspec.DecodeError, RecursionError) as problem:
        raise LayoutProblem(f"{_locate(problem, data)}; check it with any JSON checker") from None


def _format_problem(problem: str) -> str:
    what, _, path = problem.partition(" - at ")
    return f"{path.strip('`').removeprefix('$.') or 'layout'}: {what}" if path else what


def _locate(problem: Exception, data: bytes) -> str:
    found = re.search(r"\(byte (\d+)\)", str(problem))
    line = data[: int(found[1])].count(b"\n") + 1 if found else data.count(b"\n") + 1
    return f"line {line}: this is not JSON ({problem})"


_NUMBERS = re.compile(r"([0-9]{1,6}) *- *([0-9]{1,6})(?: +(odd|even)| +step +([0-9]{1,4}))?")
_LETTERS = re.compile(r"([A-Z]) *- *([A-Z])|([a-z]) *- *([a-z])")
_NAME_MAX = 60


def expand_numbers(rule: Rule) -> list[str]:
    """All numbers that a rule produces, in its order; duplicates are refused."""
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


def pick_positions(rule: Rule | None, names: list[str]) -> list[int]:
    """Positions in `names` that a rule selects, in the order of the rule; duplicates are refused."""
    if rule is None:
        return []
    position = {name: place for place, name in enumerate(names)}
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
