"""A poster for an event that has none: bold shapes and its title. The same title, the same poster.

film      sun over ridges · a beam of light · falling tiles
concert   bars · a record · waves
match     the pitch · two sides · a flight of the ball
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import product

from holdfast.catalogue.event import Kind

WIDTH, HEIGHT = 400, 600
ART_HEIGHT = 408  # the title is below, on plain ground, so that it can be read on every poster
LINES_MAX = 3
FONT = "'Archivo Black','Helvetica Neue','Segoe UI',Arial,'Noto Sans',sans-serif"
LETTER_WIDTH = 0.75  # of the font size, for heavy capitals

Art = Callable[["Ink", "Dice"], str]


@dataclass(frozen=True, slots=True)
class Ink:
    ground: str
    text: str
    first: str
    second: str
    third: str


INKS = (
    Ink("#14213D", "#FFF4E0", "#FCA311", "#E5383B", "#5C7AEA"),
    Ink("#F4E9CD", "#1B2A41", "#D1495B", "#EDAE49", "#00798C"),
    Ink("#0B3C49", "#F9F7EF", "#F07167", "#FED9B7", "#00AFB9"),
    Ink("#2B0F34", "#FFEFD6", "#FF5D73", "#FFB627", "#8F5BFF"),
    Ink("#E8F1F2", "#13293D", "#006494", "#F3722C", "#F9C74F"),
    Ink("#1E3D2F", "#F6F3E4", "#F2C14E", "#E4572E", "#7FB685"),
    Ink("#FBE4D8", "#2B124C", "#854F6C", "#DF3B57", "#F5A65B"),
    Ink("#101419", "#F5F5F0", "#3DDC97", "#FF495C", "#256EFF"),
)


class Dice:
    """Numbers that look thrown, and are the same for the same name."""

    def __init__(self, name: str) -> None:
        self._thrown = iter(hashlib.shake_256(name.encode()).digest(512))

    def number(self, low: int, high: int) -> int:
        return low + next(self._thrown) * (high - low) // 255

    def one_of(self, size: int) -> int:
        return next(self._thrown) % size


def poster(kind: Kind, title: str, genre: str, language: str) -> str:
    """The poster as an SVG document."""
    dice = Dice(f"{kind}/{title}")
    ink = INKS[dice.one_of(len(INKS))]
    arts = ARTS[kind]
    art = arts[dice.one_of(len(arts))](ink, dice)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><rect width="{WIDTH}" height="{HEIGHT}" fill="{ink.ground}"/>'
        f'<svg width="{WIDTH}" height="{ART_HEIGHT}" viewBox="0 0 {WIDTH} {ART_HEIGHT}">{art}</svg>'
        f"{_words(title, ' · '.join(filter(None, (genre, language))), ink)}</svg>"
    )


def wrapped(title: str, lines_max: int = LINES_MAX) -> list[str]:
    """The title on as few lines as look good; of all ways to break it, the narrowest."""
    # Two sides of a match: “v” goes with the second.
    words = title.replace(" v ", " v\N{NO-BREAK SPACE}").split(" ")
    wanted = min(lines_max, len(words), max(1, math.ceil(len(title) / 11)))
    width = max(len(word) for word in words)
    while len(lines := _filled(words, width)) > wanted:
        width += 1
    return lines


def _filled(words: list[str], width: int) -> list[str]:
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _words(title: str, under: str, ink: Ink) -> str:
    lines = wrapped(title)
    size = min(58.0, 356 / (max(map(len, lines)) * LETTER_WIDTH), 112 / (len(lines) * 1.02))
    top = ART_HEIGHT + 26 + size * 0.74
    tall = "".join(
        f'<text x="24" y="{top + place * size * 1.02:.1f}">{escape(line.upper())}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<g font-family="{FONT}" fill="{ink.text}"><g font-weight="900" font-size="{size:.1f}" '
        f'letter-spacing="-.5">{tall}</g><rect x="24" y="556" width="28" height="5" fill="{ink.first}"/>'
        f'<text x="62" y="563" font-size="13" font-weight="600" letter-spacing="1.5">'
        f"{escape(under.upper())}</text></g>"
    )


def _ridges(ink: Ink, dice: Dice) -> str:
    x, y, radius = dice.number(120, 280), dice.number(120, 190), dice.number(70, 110)
    drawn = _circle(x, y, radius, ink.first)
    for place, colour in enumerate((ink.third, ink.second, ink.text)):
        height = 230 + place * 62
        points = [(step * 50, height + dice.number(-46, 46)) for step in range(9)]
        bends = " ".join(f"S{px - 22},{py} {px},{py}" for px, py in points[1:])
        drawn += f'<path d="M0,{points[0][1]} {bends} V408 H0Z" fill="{colour}"/>'
    return drawn


def _beam(ink: Ink, dice: Dice) -> str:
    x, y = dice.number(40, 110), dice.number(50, 110)
    rays = ""
    for place in range(7):
        near, far = place * 62 - 20, place * 62 + 14
        colour = (ink.first, ink.second)[place % 2]
        rays += f'<path d="M{x},{y} L{near + 60},440 L{far + 74},440Z" fill="{colour}"/>'
    moon = _circle(dice.number(270, 330), dice.number(80, 150), dice.number(40, 62), ink.third)
    return moon + rays + _circle(x, y, 34, ink.text) + _circle(x, y, 15, ink.ground)


def _tiles(ink: Ink, dice: Dice) -> str:
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


def _bars(ink: Ink, dice: Dice) -> str:
    drawn = _circle(200, 204, dice.number(130, 165), ink.third)
    for place in range(11):
        height = dice.number(60, 330)
        colour = (ink.first, ink.second, ink.text)[dice.one_of(3)]
        x, y = 22 + place * 33, 204 - height / 2
        drawn += f'<rect x="{x}" y="{y}" width="22" height="{height}" rx="11" fill="{colour}"/>'
    return drawn


def _record(ink: Ink, dice: Dice) -> str:
    x, y = dice.number(150, 250), dice.number(186, 214)
    ring = f'fill="none" stroke="{ink.ground}" stroke-width="2" opacity=".45"'
    rings = "".join(f'<circle cx="{x}" cy="{y}" r="{r}" {ring}/>' for r in range(84, 174, 11))
    arm = f'd="M372,26 L{x + 96},{y - 40}" stroke="{ink.third}" stroke-width="14" stroke-linecap="round"'
    stripe = f'y="{dice.number(40, 300)}" width="400" height="{dice.number(40, 90)}" fill="{ink.second}"'
    disc = _circle(x, y, 178, ink.text) + rings + _circle(x, y, 66, ink.first) + _circle(x, y, 12, ink.ground)
    return f"<rect {stripe}/>{disc}<path {arm}/>{_circle(372, 26, 20, ink.third)}"


def _waves(ink: Ink, dice: Dice) -> str:
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


def _pitch(ink: Ink, dice: Dice) -> str:
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


def _sides(ink: Ink, dice: Dice) -> str:
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


def _flight(ink: Ink, dice: Dice) -> str:
    drawn, colours = "", (ink.third, ink.second, ink.first)
    for place in range(9):
        radius = 430 - place * 44
        drawn += _circle(20, 430, radius, colours[place % 3] if place % 2 == 0 else ink.ground)
    angle = math.radians(dice.number(28, 62))
    x, y = 20 + 364 * math.cos(angle), 430 - 364 * math.sin(angle)
    return drawn + _circle(x, y, 46, ink.text) + _star(x, y, 26, ink.ground)


def _circle(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius}" fill="{colour}"/>'


def _star(x: float, y: float, radius: float, colour: str) -> str:
    points = [
        (x + r * math.sin(n * math.pi / 5), y - r * math.cos(n * math.pi / 5))
        for n, r in enumerate((radius, radius * 0.42) * 5)
    ]
    return f'<polygon points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in points)}" fill="{colour}"/>'


ARTS: dict[Kind, tuple[Art, ...]] = {
    Kind.FILM: (_ridges, _beam, _tiles),
    Kind.CONCERT: (_bars, _record, _waves),
    Kind.MATCH: (_pitch, _sides, _flight),
}
