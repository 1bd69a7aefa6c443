"""Drawings for posters: bold shapes in few colours. The same seed gives the same drawing. No I/O.

film      sun over ridges · a beam of light · falling tiles · windows · an orbit · a stair · a door · sails
concert   bars · a record · waves · keys · a grid of dots · arches
match     the pitch · two sides · a flight of the ball · floodlights · a shirt · the crowd
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from holdfast.catalogue.event import Kind

ART_HEIGHT = 408

Art = Callable[["Palette", "SeededRandom"], str]


@dataclass(frozen=True, slots=True)
class Palette:
    ground: str
    text: str
    first: str
    second: str
    third: str


class SeededRandom:
    """Pseudo-random numbers that depend only on the name."""

    def __init__(self, name: str) -> None:
        self._bytes = iter(hashlib.shake_256(name.encode()).digest(512))

    def number(self, low: int, high: int) -> int:
        return low + next(self._bytes) * (high - low) // 255

    def one_of(self, size: int) -> int:
        return next(self._bytes) % size


def _ridges(ink: Palette, dice: SeededRandom) -> str:
    x, y, radius = dice.number(120, 280), dice.number(120, 190), dice.number(70, 110)
    drawn = _circle(x, y, radius, ink.first)
    for place, colour in enumerate((ink.third, ink.second, ink.text)):
        height = 230 + place * 62
        points = [(step * 50, height + dice.number(-46, 46)) for step in range(9)]
        bends = " ".join(f"S{px - 22},{py} {px},{py}" for px, py in points[1:])
        drawn += f'<path d="M0,{points[0][1]} {bends} V408 H0Z" fill="{colour}"/>'
    return drawn


def _beam(ink: Palette, dice: SeededRandom) -> str:
    x, y = dice.number(40, 110), dice.number(50, 110)
    rays = ""
    for place in range(7):
        near, far = place * 62 - 20, place * 62 + 14
        colour = (ink.first, ink.second)[place % 2]
        rays += f'<path d="M{x},{y} L{near + 60},440 L{far + 74},440Z" fill="{colour}"/>'
    moon = _circle(dice.number(270, 330), dice.number(80, 150), dice.number(40, 62), ink.third)
    return moon + rays + _circle(x, y, 34, ink.text) + _circle(x, y, 15, ink.ground)


def _tiles(ink: Palette, dice: SeededRandom) -> str:
    drawn = ""
    colours = (ink.first, ink.second, ink.third, ink.text, ink.ground)
    shapes = ("M0,0 H100 A100,102 0 0 1 0,102Z", "M0,0 H100 L0,102Z", "M0,51 A50,51 0 0 1 100,51Z")
    for x, y in product(range(0, 400, 100), range(0, 408, 102)):
        colour = colours[dice.one_of(5)]
        over = colours[(colours.index(colour) + 1 + dice.one_of(4)) % 5]
        turn, shape = dice.one_of(4) * 90, shapes[dice.one_of(3)]
        drawn += f'<rect x="{x}" y="{y}" width="101" height="103" fill="{colour}"/>'
        drawn += f'<path d="{shape}" fill="{over}" transform="translate({x},{y}) rotate({turn} 50 51)"/>'
    return drawn


def _bars(ink: Palette, dice: SeededRandom) -> str:
    drawn = _circle(200, 204, dice.number(130, 165), ink.third)
    for place in range(11):
        height = dice.number(60, 330)
        colour = (ink.first, ink.second, ink.text)[dice.one_of(3)]
        x, y = 22 + place * 33, 204 - height / 2
        drawn += f'<rect x="{x}" y="{y}" width="22" height="{height}" rx="11" fill="{colour}"/>'
    return drawn


def _record(ink: Palette, dice: SeededRandom) -> str:
    x, y = dice.number(150, 250), dice.number(186, 214)
    ring = f'fill="none" stroke="{ink.ground}" stroke-width="2" opacity=".45"'
    rings = "".join(f'<circle cx="{x}" cy="{y}" r="{r}" {ring}/>' for r in range(84, 174, 11))
    arm = f'd="M372,26 L{x + 96},{y - 40}" stroke="{ink.third}" stroke-width="14" stroke-linecap="round"'
    stripe = f'y="{dice.number(40, 300)}" width="400" height="{dice.number(40, 90)}" fill="{ink.second}"'
    disc = _circle(x, y, 178, ink.text) + rings + _circle(x, y, 66, ink.first) + _circle(x, y, 12, ink.ground)
    return f"<rect {stripe}/>{disc}<path {arm}/>{_circle(372, 26, 20, ink.third)}"


def _waves(ink: Palette, dice: SeededRandom) -> str:
    slow, fast = dice.number(2, 4), dice.number(7, 12)
    drawn = _circle(dice.number(110, 290), dice.number(110, 170), dice.number(60, 90), ink.second)
    for row in range(13):
        middle, swing = 60 + row * 28, 6 + 34 * math.exp(-(((row - 6) / 3.4) ** 2))
        points = []
        for x in range(-10, 421, 8):
            centred, along = math.exp(-(((x - 200) / 95) ** 2)), x / 400 * math.tau
            bend = math.sin(along * slow + row) + 0.5 * math.sin(along * fast + row * 2)
            points.append(f"{x},{middle - swing * centred * (1.2 + bend):.1f}")
        drawn += (
            f'<polyline points="{" ".join(points)}" fill="{ink.ground}" fill-opacity=".82" '
            f'stroke="{(ink.first, ink.text)[row % 2]}" stroke-width="4" stroke-linejoin="round"/>'
        )
    return drawn


def _pitch(ink: Palette, dice: SeededRandom) -> str:
    stripes = "".join(
        f'<rect x="{place * 80 - 200}" y="-100" width="40" height="640" fill="{ink.third}" opacity=".55"/>'
        for place in range(10)
    )
    line = f'fill="none" stroke="{ink.text}" stroke-width="7"'
    marks = (
        f'<circle cx="200" cy="204" r="92" {line}/><path d="M-200,204 H600" {line}/>'
        f'<path d="M80,-60 V76 H320 V-60 M80,470 V332 H320 V470" {line}/>'
    )
    turn = dice.number(-38, -14) if dice.one_of(2) else dice.number(14, 38)
    ball = _circle(dice.number(120, 280), dice.number(120, 290), 44, ink.first)
    return f'<g transform="rotate({turn} 200 204)">{stripes}{marks}</g>{ball}'


def _sides(ink: Palette, dice: SeededRandom) -> str:
    lean = dice.number(60, 150)
    left = f'<path d="M0,0 H{200 + lean} L{200 - lean},408 H0Z" fill="{ink.first}"/>'
    right = f'<path d="M400,0 H{200 + lean} L{200 - lean},408 H400Z" fill="{ink.third}"/>'
    shield = "M-62,-78 H62 V6 C62,60 20,84 0,96 C-20,84 -62,60 -62,6Z"
    first = f'<path d="{shield}" transform="translate(112,150)" fill="{ink.text}"/>'
    second = f'<path d="{shield}" transform="translate(288,262)" fill="{ink.ground}"/>'
    bands = "".join(
        f'<rect x="{-50 + n * 40}" y="-78" width="20" height="96" fill="{ink.second}"/>' for n in range(3)
    )
    star = _star(288, 262, 40, ink.second)
    return left + right + first + f'<g transform="translate(112,150)">{bands}</g>' + second + star


def _flight(ink: Palette, dice: SeededRandom) -> str:
    drawn, colours = "", (ink.third, ink.second, ink.first)
    for place in range(9):
        radius = 430 - place * 44
        drawn += _circle(20, 430, radius, colours[place % 3] if place % 2 == 0 else ink.ground)
    angle = math.radians(dice.number(28, 62))
    x, y = 20 + 364 * math.cos(angle), 430 - 364 * math.sin(angle)
    return drawn + _circle(x, y, 46, ink.text) + _star(x, y, 26, ink.ground)


def _windows(ink: Palette, dice: SeededRandom) -> str:
    """A city at night: blocks of windows, some of them lit."""
    drawn = _circle(dice.number(60, 340), dice.number(60, 120), dice.number(34, 54), ink.second)
    x = -10
    while x < 400:
        width, top = dice.number(60, 110), dice.number(90, 270)
        drawn += f'<rect x="{x}" y="{top}" width="{width}" height="330" fill="{ink.third}"/>'
        shade = f'height="330" fill="{ink.ground}" opacity=".35"'
        drawn += f'<rect x="{x + width - 14}" y="{top}" width="14" {shade}/>'
        for left, up in product(range(x + 10, x + width - 26, 22), range(top + 16, 400, 34)):
            if dice.one_of(5) < 2:
                drawn += f'<rect x="{left}" y="{up}" width="12" height="18" fill="{ink.first}"/>'
        x += width + 6
    return drawn


def _orbit(ink: Palette, dice: SeededRandom) -> str:
    """Planets around a large sun."""
    turn, line = dice.number(-30, 30), f'fill="none" stroke="{ink.text}" stroke-width="3" opacity=".55"'
    drawn = _circle(200, 204, 74, ink.first)
    colours = (ink.second, ink.third, ink.text, ink.second)
    for place, radius in enumerate((112, 150, 190, 232)):
        angle = math.radians(dice.number(0, 359))
        x, y = 200 + radius * math.cos(angle), 204 + radius * 0.62 * math.sin(angle)
        drawn += f'<ellipse cx="200" cy="204" rx="{radius}" ry="{radius * 0.62:.0f}" {line}/>'
        drawn += _circle(x, y, dice.number(10, 26), colours[place])
    return f'<g transform="rotate({turn} 200 204)">{drawn}</g>'


def _stair(ink: Palette, dice: SeededRandom) -> str:
    """Steps towards a light, with a figure on them."""
    steps, lit = 8, dice.one_of(6) + 1
    drawn = _circle(310, 96, dice.number(54, 84), ink.second)
    for place in range(steps):
        x, y = place * 50, 408 - (place + 1) * 44
        colour = (ink.first, ink.third)[place % 2]
        drawn += f'<rect x="{x}" y="{y}" width="50" height="{408 - y}" fill="{colour}"/>'
    x, y = lit * 50 + 25, 408 - (lit + 1) * 44
    body = f'<path d="M{x - 13},{y} V{y - 34} a13,13 0 0 1 26,0 V{y}Z" fill="{ink.text}"/>'
    return drawn + body + _circle(x, y - 58, 11, ink.text)


def _doorway(ink: Palette, dice: SeededRandom) -> str:
    """An open door and the light from it."""
    x, wide = dice.number(80, 240), dice.number(90, 140)
    floor = f'<rect y="300" width="400" height="108" fill="{ink.third}"/>'
    far = x + wide + dice.number(60, 130)
    light = f'<path d="M{x},300 H{x + wide} L{far},408 H{x - 60}Z" fill="{ink.first}"/>'
    door = f'<rect x="{x}" y="70" width="{wide}" height="230" fill="{ink.first}"/>'
    wing = f'<path d="M{x},70 L{x - 62},96 V330 L{x},300Z" fill="{ink.second}"/>'
    figure = f'<path d="M{x + wide / 2 - 17},300 V226 a17,17 0 0 1 34,0 V300Z" fill="{ink.ground}"/>'
    return floor + light + door + wing + figure + _circle(x + wide / 2, 188, 14, ink.ground)


def _sails(ink: Palette, dice: SeededRandom) -> str:
    """Boats on a sea of stripes."""
    drawn = _circle(dice.number(80, 320), dice.number(70, 130), dice.number(40, 60), ink.second)
    for place in range(6):
        y, colour = 262 + place * 26, (ink.third, ink.first)[place % 2]
        drawn += f'<rect y="{y}" width="400" height="26" fill="{colour}"/>'
    for x in (dice.number(60, 150), dice.number(230, 330)):
        high = dice.number(110, 190)
        drawn += f'<path d="M{x},{262 - high} V250 H{x + high * 0.5:.0f}Z" fill="{ink.text}"/>'
        drawn += f'<path d="M{x - 8},{290 - high} V250 H{x - high * 0.4:.0f}Z" fill="{ink.second}"/>'
        drawn += f'<path d="M{x - 70},256 H{x + 84} L{x + 58},290 H{x - 50}Z" fill="{ink.text}"/>'
    return drawn


def _keys(ink: Palette, dice: SeededRandom) -> str:
    """Piano keys."""
    turn = dice.number(-24, 24)
    drawn = _circle(200, 204, 190, ink.third)
    for place in range(9):
        colour = ink.first if dice.one_of(4) == 0 else ink.text
        drawn += f'<rect x="{20 + place * 41}" y="60" width="38" height="290" rx="5" fill="{colour}"/>'
    for place in (0, 1, 3, 4, 5, 7):
        colour = ink.second if dice.one_of(4) == 0 else ink.ground
        drawn += f'<rect x="{46 + place * 41}" y="52" width="26" height="180" rx="5" fill="{colour}"/>'
    return f'<g transform="rotate({turn} 200 204) scale(1.04)">{drawn}</g>'


def _dots(ink: Palette, dice: SeededRandom) -> str:
    """A loudspeaker, printed coarsely."""
    x, y, drawn = dice.number(120, 280), dice.number(130, 270), ""
    for left, up in product(range(20, 400, 36), range(22, 408, 36)):
        away = math.hypot(left - x, up - y)
        radius = max(3.0, 17 - away / 17)
        drawn += _circle(left, up, round(radius, 1), ink.first if away < 90 else ink.second)
    return drawn + _circle(x, y, 52, ink.text) + _circle(x, y, 20, ink.ground)


def _arches(ink: Palette, dice: SeededRandom) -> str:
    """Nested arches."""
    x, colours, drawn = dice.number(150, 250), (ink.first, ink.second, ink.third, ink.text), ""
    for place, radius in enumerate(range(236, 40, -34)):
        colour = colours[place % 4]
        shape = f"M{x - radius},408 V{250} a{radius},{radius} 0 0 1 {2 * radius},0 V408Z"
        drawn += f'<path d="{shape}" fill="{colour}"/>'
    return drawn + f'<path d="M{x - 32},408 V250 a32,32 0 0 1 64,0 V408Z" fill="{ink.ground}"/>'


def _floodlights(ink: Palette, dice: SeededRandom) -> str:
    """Two masts and the green between them."""
    lean = dice.number(20, 60)
    beams = (
        f'<path d="M70,92 L{150 + lean},408 H-40Z" fill="{ink.first}" opacity=".5"/>'
        f'<path d="M330,92 L{250 - lean},408 H440Z" fill="{ink.first}" opacity=".5"/>'
    )
    grass = f'<path d="M0,408 V330 Q200,{dice.number(270, 310)} 400,330 V408Z" fill="{ink.third}"/>'
    masts = ""
    for x in (70, 330):
        masts += f'<rect x="{x - 5}" y="100" width="10" height="260" fill="{ink.text}"/>'
        for left, up in product((-42, -14, 14, 42), (50, 80)):
            masts += _circle(x + left, up, 12, ink.text if (left + up) % 3 else ink.first)
    return beams + grass + masts + _circle(200, 340, 26, ink.second)


def _shirt(ink: Palette, dice: SeededRandom) -> str:
    """A shirt with a number, as it hangs in a dressing room."""
    shape = (
        "M118,66 L160,48 Q200,92 240,48 L282,66 L356,140 L308,190 L284,168 V372 H116 V168 L92,190 L44,140Z"
    )
    number, way = dice.number(2, 23), dice.one_of(2)
    bands = "".join(
        f'<rect x="{-100 + n * 56}" y="-100" width="28" height="700" fill="{ink.second}"/>' for n in range(13)
    )
    turn = 0 if way else 58
    return (
        f'<clipPath id="s"><path d="{shape}"/></clipPath><path d="{shape}" fill="{ink.first}"/>'
        f'<g clip-path="url(#s)"><g transform="rotate({turn} 200 204)">{bands}</g></g>'
        f'<text x="200" y="300" text-anchor="middle" font-family="Arial,sans-serif" font-weight="900" '
        f'font-size="150" fill="{ink.text}" stroke="{ink.ground}" stroke-width="14" paint-order="stroke">'
        f"{number}</text>"
    )


def _crowd(ink: Palette, dice: SeededRandom) -> str:
    """Rows of heads in front of a light."""
    colours, drawn = (ink.first, ink.second, ink.third, ink.text), ""
    drawn += _circle(dice.number(120, 280), 92, 40, ink.text) + _star(200, 40, 0.1, ink.first)
    for row in range(5):
        for place in range(9):
            x = place * 50 + (25 if row % 2 else 0)
            y = 200 + row * 46 + dice.number(-7, 7)
            colour = colours[dice.one_of(4)]
            drawn += f'<path d="M{x - 27},{y + 78} V{y + 40} a27,27 0 0 1 54,0 V{y + 78}Z" fill="{colour}"/>'
            drawn += _circle(x, y, 17, colour)
    return drawn


def _circle(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius}" fill="{colour}"/>'


def _star(x: float, y: float, radius: float, colour: str) -> str:
    points = [
        (x + r * math.sin(n * math.pi / 5), y - r * math.cos(n * math.pi / 5))
        for n, r in enumerate((radius, radius * 0.42) * 5)
    ]
    return f'<polygon points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in points)}" fill="{colour}"/>'


ARTS: dict[Kind, tuple[Art, ...]] = {
    Kind.FILM: (_ridges, _beam, _tiles, _windows, _orbit, _stair, _doorway, _sails),
    Kind.CONCERT: (_bars, _record, _waves, _keys, _dots, _arches),
    Kind.MATCH: (_pitch, _sides, _flight, _floodlights, _shirt, _crowd),
}
