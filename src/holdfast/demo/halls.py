"""Halls to try things in: a cinema, a concert hall and a club. The stadium has a file of its own.

Metres, with the stage or screen at the top. Rows have even stretches between aisles, so that pairs fill them.
"""

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
