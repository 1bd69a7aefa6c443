"""A stadium of exactly 50 000 seats: three tiers of blocks around a pitch.

Stands are straight along the sides of the pitch, and their corners are arcs. Every row of a block is one
stretch of an even number of seats.

           NW    N    NE         blocks are named by their stand, clockwise: N1, N2, … in the lower tier,
           W   pitch   E         N101 … in the club tier, N201 … in the upper one
           SW    S    SE
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import radians

import msgspec

from holdfast.demo.halls import ROW_LETTERS, even_seats
from holdfast.layouts.body import (
    COLOURS,
    AreaBody,
    CategoryBody,
    CurveBody,
    LayoutBody,
    Point,
    RowBody,
    SectionBody,
    ShapeBody,
)

SEATS = 50_000
SEAT, ROW = 0.5, 0.8
CORNER_X, CORNER_Y = 46.0, 26.0  # the corners' centres; between them, stands are straight


@dataclass(frozen=True, slots=True)
class Tier:
    first: int  # number of its first block in a stand
    rows: int
    radius: float  # of the first row in the corners; as far in front of the sides
    corner_blocks: int


LOWER = Tier(1, 22, 14.0, 3)
CLUB = Tier(101, 9, 33.5, 3)
UPPER = Tier(201, 24, 42.0, 4)
TIERS = (LOWER, CLUB, UPPER)

# Stand, how it is turned, length, distance of its row at radius 0 from the middle of the pitch, blocks.
SIDES = {
    "N": (180.0, 2 * CORNER_X, CORNER_Y, 8),
    "E": (-90.0, 2 * CORNER_Y, CORNER_X, 4),
    "S": (0.0, 2 * CORNER_X, CORNER_Y, 8),
    "W": (90.0, 2 * CORNER_Y, CORNER_X, 4),
}
CORNERS: dict[str, tuple[Point, float]] = {  # centre, and the angle at which it begins, going clockwise
    "NE": ((CORNER_X, -CORNER_Y), 270.0),
    "SE": ((CORNER_X, CORNER_Y), 0.0),
    "SW": ((-CORNER_X, CORNER_Y), 90.0),
    "NW": ((-CORNER_X, -CORNER_Y), 180.0),
}


def stadium(name: str = "Stadium", *, terrace: bool = False) -> LayoutBody:
    """50 000 seats. With a terrace: people stand behind the eastern goal, and there are wheelchair spaces."""
    sections = [section for tier in TIERS for section in _tier(tier)]
    sections = _trimmed(sections, sum(_seats(section) for section in sections) - SEATS)
    areas: list[AreaBody] = []
    if terrace:
        sections = [_with_spaces(section) for section in sections if section.name not in _behind_the_goal()]
        areas = [_terrace()]
    return LayoutBody(
        name=name,
        focal=(0.0, 0.0),
        focal_name="pitch",
        categories=[
            CategoryBody("Club", COLOURS[3]),
            CategoryBody("Category 1", COLOURS[1]),
            CategoryBody("Category 2", COLOURS[0]),
            CategoryBody("Category 3", COLOURS[2]),
        ],
        sections=sections,
        areas=areas,
        shapes=[ShapeBody([(-52.5, -34), (52.5, -34), (52.5, 34), (-52.5, 34)], "Pitch", "#A8D5A2")],
    )


def _tier(tier: Tier) -> Iterator[SectionBody]:
    """Clockwise from the north."""
    for side, corner in zip(SIDES, CORNERS, strict=True):
        yield from _side(tier, side)
        yield from _corner(tier, corner)


def _side(tier: Tier, side: str) -> Iterator[SectionBody]:
    turn, length, distance, blocks = SIDES[side]
    block = length / blocks
    count = even_seats(block, SEAT)
    for place in range(blocks):
        # The audience sees its blocks from left to right; from above, clockwise goes the other way.
        x = length / 2 - block * (place + 0.5)
        rows = ", ".join(ROW_LETTERS[: tier.rows])
        row = RowBody(rows, f"1-{count}", (x, distance + tier.radius), "centre", pitch=SEAT, depth=ROW)
        yield SectionBody(f"{side}{tier.first + place}", [row], category=_category(tier, side), turn=turn)


def _corner(tier: Tier, corner: str) -> Iterator[SectionBody]:
    centre, begin = CORNERS[corner]
    wedge = 90.0 / tier.corner_blocks
    for place in range(tier.corner_blocks):
        angle = begin + wedge * (place + 0.5)
        rows = []
        for behind in range(tier.rows):
            radius = tier.radius + behind * ROW
            curve = CurveBody(centre, round(radius, 2), angle)
            count = even_seats(radius * radians(wedge), SEAT)
            # The back of the lower tier is under the club's overhang: a high ball is out of sight.
            hidden = f"1-{count}" if tier is LOWER and behind == tier.rows - 1 else None
            label = ROW_LETTERS[behind]
            rows.append(
                RowBody(label, f"1-{count}", align="centre", curve=curve, pitch=SEAT, restricted=hidden)
            )
        yield SectionBody(f"{corner}{tier.first + place}", rows, category=_category(tier, corner))


def _category(tier: Tier, stand: str) -> str:
    if tier is CLUB:
        return "Club"
    better = (tier is LOWER) + (stand in "NS")
    return ("Category 3", "Category 2", "Category 1")[better]


def _seats(section: SectionBody) -> int:
    return sum(_count(row) * (str(row.label).count(",") + 1) for row in section.rows)


def _count(row: RowBody) -> int:
    return int(str(row.seats).removeprefix("1-"))


def _trimmed(sections: list[SectionBody], excess: int) -> list[SectionBody]:
    """Two seats less in a back row here and there, where the cameras and the floodlights stand."""
    found = list(sections)
    corners = [place for place, section in enumerate(found) if section.name[:2] in CORNERS]
    upper = [place for place in corners if int(found[place].name[2:]) >= UPPER.first]
    assert 0 <= excess <= 2 * len(upper) * UPPER.rows, "the tiers are to have slightly more seats than wanted"
    for cut in range(excess // 2):
        place, behind = upper[cut % len(upper)], -1 - cut // len(upper)
        rows = list(found[place].rows)
        rows[behind] = msgspec.structs.replace(rows[behind], seats=f"1-{_count(rows[behind]) - 2}")
        found[place] = msgspec.structs.replace(found[place], rows=rows)
    return found


def _behind_the_goal() -> set[str]:
    return {f"E{place}" for place in range(1, SIDES["E"][3] + 1)}


def _terrace() -> AreaBody:
    near, far = CORNER_X + LOWER.radius - ROW, CORNER_X + LOWER.radius + LOWER.rows * ROW
    side = CORNER_Y - 0.6
    return AreaBody(
        "East terrace", 3_000, [(near, -side), (far, -side), (far, side), (near, side)], "Category 3"
    )


def _with_spaces(section: SectionBody) -> SectionBody:
    """The front row of the middle of the southern stand, with a space and a companion seat at either end."""
    if section.name not in ("S3", "S4", "S5", "S6"):
        return section
    block = section.rows[0]
    last = _count(block)
    front = msgspec.structs.replace(block, label="A", wheelchair=f"1, {last}", companion=f"2, {last - 1}")
    others = msgspec.structs.replace(
        block, label=str(block.label).removeprefix("A, "), at=(block.at[0], block.at[1] + ROW)
    )
    return msgspec.structs.replace(section, rows=[front, others])
