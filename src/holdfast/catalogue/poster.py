"""Generates a poster for an event without one: shapes and the title. Deterministic per title. No I/O."""

import math
from html import escape

from holdfast.catalogue.event import Kind
from holdfast.catalogue.poster_art import ART_HEIGHT, ARTS, Palette, SeededRandom

WIDTH, HEIGHT = 400, 600  # the title stands beside the drawing, on plain ground, so that it is readable
LINES_MAX = 3
FONT = "'Archivo Black','Helvetica Neue','Segoe UI',Arial,'Noto Sans',sans-serif"
LETTER_WIDTH = 0.75  # of the font size, for heavy capitals

PALETTES = (
    Palette("#14213D", "#FFF4E0", "#FCA311", "#E5383B", "#5C7AEA"),
    Palette("#F4E9CD", "#1B2A41", "#D1495B", "#EDAE49", "#00798C"),
    Palette("#0B3C49", "#F9F7EF", "#F07167", "#FED9B7", "#00AFB9"),
    Palette("#2B0F34", "#FFEFD6", "#FF5D73", "#FFB627", "#8F5BFF"),
    Palette("#E8F1F2", "#13293D", "#006494", "#F3722C", "#F9C74F"),
    Palette("#1E3D2F", "#F6F3E4", "#F2C14E", "#E4572E", "#7FB685"),
    Palette("#FBE4D8", "#2B124C", "#854F6C", "#DF3B57", "#F5A65B"),
    Palette("#101419", "#F5F5F0", "#3DDC97", "#FF495C", "#256EFF"),
)


def choose_palette(kind: Kind, title: str) -> int:
    """Index of the poster's palette; the event page uses the same colours."""
    return SeededRandom(f"{kind}/{title}").one_of(len(PALETTES))


def render_poster(kind: Kind, title: str, genre: str) -> str:
    """The poster as an SVG document; the drawing is above the title, or below."""
    random = SeededRandom(f"{kind}/{title}")
    palette = PALETTES[random.one_of(len(PALETTES))]
    arts = ARTS[kind]
    art = arts[random.one_of(len(arts))](palette, random)
    is_below = random.one_of(3) == 0
    top = HEIGHT - ART_HEIGHT if is_below else 0
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><rect width="{WIDTH}" height="{HEIGHT}" fill="{palette.ground}"/>'
        f'<svg y="{top}" width="{WIDTH}" height="{ART_HEIGHT}" viewBox="0 0 {WIDTH} {ART_HEIGHT}">{art}</svg>'
        f"{_render_text(title, genre, palette, 0 if is_below else ART_HEIGHT)}</svg>"
    )


def wrap_title(title: str, lines_max: int = LINES_MAX) -> list[str]:
    """Break the title into few lines of similar width."""
    # “A v B”: keeps the “v” on the line of the second team.
    words = title.replace(" v ", " v\N{NO-BREAK SPACE}").split(" ")
    lines_wanted = min(lines_max, len(words), max(1, math.ceil(len(title) / 11)))
    width = max(len(word) for word in words)
    while len(lines := _fill_lines(words, width)) > lines_wanted:
        width += 1
    return lines


def _fill_lines(words: list[str], width: int) -> list[str]:
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _render_text(title: str, under: str, palette: Palette, top: int) -> str:
    """The title in the largest size that fits, and the genre below it."""
    lines = wrap_title(title)
    size = min(64.0, 356 / (max(map(len, lines)) * LETTER_WIDTH), 118 / (len(lines) * 1.02))
    first = top + 24 + size * 0.76
    tall = "".join(
        f'<text x="22" y="{first + place * size * 1.02:.1f}">{escape(line.upper())}</text>'
        for place, line in enumerate(lines)
    )
    foot = top + HEIGHT - ART_HEIGHT - 24
    return (
        f'<g font-family="{FONT}" fill="{palette.text}"><g font-weight="900" font-size="{size:.1f}" '
        f'letter-spacing="-.5">{tall}</g>'
        f'<rect x="22" y="{foot - 10}" width="34" height="7" fill="{palette.first}"/>'
        f'<text x="68" y="{foot}" font-size="21" font-weight="700" letter-spacing="1">'
        f"{escape(under.upper())}</text></g>"
    )
