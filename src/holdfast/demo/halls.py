"""Halls to try things in: a cinema, a concert hall and a club. The stadium has a file of its own.

Metres, with the stage or screen at the top. Rows have even stretches between aisles, so that pairs fill them.
"""

from math import cos, pi, radians, sin

from holdfast.catalogue.layout_body import (
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
SEAT = 0.55
CENTRE: Point = (0.0, 0.0)


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
        focal=(0.0, -3.0),
        focal_name="screen",
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
    """About 2 000 seats on arcs around the stage, on three levels and behind it, and a gallery to stand in."""
    return LayoutBody(
        name=name,
        focal=(0.0, 5.0),
        categories=[
            CategoryBody("Front stalls", ORANGE),
            CategoryBody("Stalls", BLUE),
            CategoryBody("Circle", GREEN),
            CategoryBody("Balcony and choir", PINK),
            CategoryBody("Standing", "#56B4E9"),
        ],
        sections=[
            _arcs("Stalls", 20, radius=12.0, width=72, wedges=3, category="Stalls"),
            _arcs("Circle", 8, radius=34.0, width=76, wedges=4, category="Circle"),
            _arcs("Balcony", 6, radius=45.0, width=66, wedges=4, category="Balcony and choir"),
            _arcs("Choir", 4, radius=8.5, width=80, wedges=2, category="Balcony and choir", middle=270.0),
        ],
        areas=[AreaBody("Gallery", 80, _sector(52.0, 54.5, 60, 120), "Standing")],
        shapes=[ShapeBody(_sector(1.0, 7.5, 270, 271) + _stage(), "Stage", "#C9B79C")],
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


def _arcs(
    name: str, rows: int, *, radius: float, width: float, wedges: int, category: str, middle: float = 90.0
) -> SectionBody:
    """A section of curved rows, cut into wedges by aisles that point to the stage."""
    depth, found = 0.95, []
    for place in range(rows):
        arc, first = radius + place * depth, 1
        for wedge in range(wedges):
            count = even_seats(arc * radians(width) / wedges)
            angle = middle + width / 2 - width / wedges * (wedge + 0.5)
            found.append(
                _wedge(name, place, rows, range(first, first + count), CurveBody(CENTRE, arc, angle))
            )
            first += count
    outline = _sector(radius - 0.5, radius + rows * depth - 0.4, middle - width / 2, middle + width / 2)
    return SectionBody(name, found, category=category, outline=outline)


def _wedge(name: str, place: int, rows: int, seats: range, curve: CurveBody) -> RowBody:
    """One row of a wedge. The stalls have their better seats in front and wheelchair spaces at the back."""
    is_stalls, is_last = name == "Stalls", place == rows - 1
    spaces = is_stalls and is_last and seats.start > 1
    hidden = name == "Balcony" and is_last and curve.angle not in range(80, 100) and seats.start == 1
    return RowBody(
        ROW_LETTERS[place],
        f"{seats.start}-{seats.stop - 1}",
        align="centre",
        curve=curve,
        category="Front stalls" if is_stalls and place < 7 else None,
        wheelchair=f"{seats.start}" if spaces else None,
        companion=f"{seats.start + 1}" if spaces else None,
        restricted=f"{seats.start}-{seats.start + 3}" if hidden else None,
    )


def even_seats(length: float, pitch: float = SEAT, aisle: float = 1.2) -> int:
    """How many seats, an even number, fit between two aisles."""
    return 2 * int((length - aisle) / pitch / 2)


def _sector(inner: float, outer: float, start: float, end: float) -> list[Point]:
    """A piece of a ring around the centre, from one angle to another."""
    angles = [start + (end - start) * step / 12 for step in range(13)]
    return [_on_circle(inner, angle) for angle in angles] + [
        _on_circle(outer, angle) for angle in angles[::-1]
    ]


def _stage() -> list[Point]:
    return [(8.5 * cos(pi * step / 12), 8.0 * sin(pi * step / 12)) for step in range(13)]


def _on_circle(radius: float, degrees: float) -> Point:
    return round(radius * cos(radians(degrees)), 2), round(radius * sin(radians(degrees)), 2)
