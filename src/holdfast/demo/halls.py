"""Halls to try things in: a cinema, a studio, a concert hall, a club and a stadium.

Metres, with the stage or screen at the top. Rows have even stretches between aisles, so that pairs fill them.

The stadium has exactly 50 000 seats: three tiers of blocks around a pitch. Stands are straight along
the sides of the pitch, and their corners are arcs. Every row of a block is one stretch of an even number of
seats.

           NW    N    NE         blocks are named by their stand, clockwise: N1, N2, … in the lower tier,
           W   pitch   E         N101 … in the club tier, N201 … in the upper one
           SW    S    SE
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import cos, radians, sin

import msgspec

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

BLUE, ORANGE, GREEN, PINK = COLOURS[:4]
ROW_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # I and O look like numbers
SEAT, DEPTH = 0.55, 0.95


@dataclass(frozen=True, slots=True)
class Ring:
    """Part of a ring: the radius of its inner side, how wide it is and where its middle is, in degrees."""

    radius: float
    width: float
    middle: float
    centre: Point = (0.0, 0.0)

    def outline(self, depth: float) -> list[Point]:
        angles = [self.middle + self.width * (step / 12 - 0.5) for step in range(13)]
        inner = [self._at(self.radius, angle) for angle in angles]
        return inner + [self._at(self.radius + depth, angle) for angle in reversed(angles)]

    def _at(self, radius: float, degrees: float) -> Point:
        x, y = self.centre
        return round(x + radius * cos(radians(degrees)), 2), round(y + radius * sin(radians(degrees)), 2)


def village_cinema(name: str = "Village cinema") -> LayoutBody:
    """204 seats: thirteen rows, two aisles, wheelchair spaces in front, armchairs behind."""
    front = [
        RowBody("A", "1-2", at=(-5.5, 0.0), pitch=1.0, wheelchair="1", companion="2"),
        RowBody("A", "3-10", at=(0.0, 0.0), align="centre"),
        RowBody("A", "11-12", at=(4.5, 0.0), pitch=1.0, wheelchair="12", companion="11"),
    ]
    aisles, middle = "4, 12", (0.0, 1.05)
    return LayoutBody(
        name=name,
        focal=(0.0, 7.0),
        focal_name="best view",
        front=(0.0, -3.0),
        categories=[CategoryBody("Standard", BLUE), CategoryBody("Premium", ORANGE)],
        sections=[
            SectionBody(
                "Stalls",
                [
                    *front,
                    RowBody("B-C", "1-16", middle, "centre", aisles=aisles, restricted="1, 16"),
                    RowBody("D-H", "1-16", (0.0, 2.95), "centre", aisles=aisles),
                    RowBody(
                        "J-N", "1-16", (0.0, 7.95), "centre", aisles=aisles, category="Premium", depth=1.1
                    ),
                ],
                category="Standard",
            )
        ],
        shapes=[ShapeBody([(-5.5, -3.2), (5.5, -3.2), (5.2, -2.9), (-5.2, -2.9)], "Screen", "#404040")],
    )


def studio(name: str = "Studio") -> LayoutBody:
    """The seats of the cinema before a low stage, for chamber music."""
    stage = ShapeBody([(-5.0, -3.6), (5.0, -3.6), (5.0, -1.6), (-5.0, -1.6)], "Stage", "#C9B79C")
    return msgspec.structs.replace(village_cinema(name), shapes=[stage])


def concert_hall(name: str = "Concert hall") -> LayoutBody:
    """About 2 000 seats on arcs around the stage, on three levels and behind it; standing in the gallery."""
    return LayoutBody(
        name=name,
        focal=(0.0, 14.0),
        categories=[
            CategoryBody("Front stalls", ORANGE),
            CategoryBody("Stalls", BLUE),
            CategoryBody("Circle", GREEN),
            CategoryBody("Balcony and choir", PINK),
            CategoryBody("Standing", "#56B4E9"),
        ],
        sections=[
            _arcs("Stalls", 18, wedges=3, ring=Ring(20.0, 62, 90), category="Stalls"),
            _arcs("Circle", 8, wedges=4, ring=Ring(39.5, 64, 90), category="Circle"),
            _arcs("Balcony", 5, wedges=4, ring=Ring(49.5, 56, 90), category="Balcony and choir"),
            _arcs("Choir", 4, wedges=2, ring=Ring(8.5, 88, 270, (0.0, 12.0)), category="Balcony and choir"),
        ],
        areas=[AreaBody("Gallery", 80, Ring(55.5, 44, 90).outline(2.0), "Standing")],
        shapes=[ShapeBody(Ring(5.0, 60, 90).outline(13.2), "Stage", "#C9B79C")],
    )


def club(name: str = "Club") -> LayoutBody:
    """430 places, all standing."""
    return LayoutBody(
        name=name,
        focal=(0.0, -1.0),
        categories=[CategoryBody("Floor", BLUE), CategoryBody("Mezzanine", ORANGE)],
        areas=[
            AreaBody("Floor", 350, [(-7, 0.8), (7, 0.8), (7, 13), (-3, 13), (-3, 11), (-7, 11)], "Floor"),
            AreaBody("Mezzanine", 80, [(-7, 14), (7, 14), (7, 17), (-7, 17)], "Mezzanine"),
        ],
        shapes=[
            ShapeBody([(-5, -3), (5, -3), (5, 0), (-5, 0)], "Stage", "#C9B79C"),
            ShapeBody([(-7, 11.3), (-3.4, 11.3), (-3.4, 13), (-7, 13)], "Bar", "#BFBFBF"),
        ],
    )


def _arcs(name: str, rows: int, *, wedges: int, ring: Ring, category: str) -> SectionBody:
    """A section of curved rows, cut into wedges by aisles that point to the stage."""
    found, wide = [], ring.width / wedges
    for place in range(rows):
        radius, first = round(ring.radius + place * DEPTH, 2), 1
        for wedge in range(wedges):
            count = even_seats(radius * radians(wide))
            curve = CurveBody(ring.centre, radius, ring.middle + ring.width / 2 - wide * (wedge + 0.5))
            row = RowBody(ROW_LETTERS[place], f"{first}-{first + count - 1}", align="centre", curve=curve)
            if name == "Stalls":
                row = _stalls_row(row, place, rows, range(first, first + count))
            found.append(row)
            first += count
        if name == "Balcony" and place == rows - 1:
            found[-wedges] = msgspec.structs.replace(found[-wedges], restricted="1-4")
            found[-1] = msgspec.structs.replace(found[-1], restricted=f"{first - 4}-{first - 1}")
    outline = replace(ring, radius=ring.radius - 0.5).outline(rows * DEPTH)
    return SectionBody(name, found, category=category, outline=outline)


def _stalls_row(row: RowBody, place: int, rows: int, seats: range) -> RowBody:
    """The better seats are in front; at the back, by the aisles, there is room for wheelchairs."""
    first, last = seats[0], seats[-1]
    if place < 7:
        return msgspec.structs.replace(row, category="Front stalls")
    if place < rows - 1:
        return row
    return msgspec.structs.replace(row, wheelchair=f"{first}, {last}", companion=f"{first + 1}, {last - 1}")


def even_seats(length: float, pitch: float = SEAT, aisle: float = 1.2) -> int:
    """How many seats, an even number, fit between two aisles."""
    return 2 * int((length - aisle) / pitch / 2)


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
