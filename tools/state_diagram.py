"""Draw a state diagram of Mermaid as SVG. No I/O.

    ┌─ HELD ──────┐ pay ────────────┐     one box per state, sources first
    │             │ expire ───────┐ │     a line per target on the right of the box, with its labels
    └─────────────┘               │ │
    ┌─ PAYING ────┐◄──────────────┼─┘     one wire per target, into the first line of its box
    └─────────────┘               │

Wires never run through a box or a label, and it fits on a phone. Colours are
those of the page.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

MOVE = re.compile(r"\s+(\w+) --> (\w+): (.+)")
LINE, GAP, TRACK, PAD = 22, 14, 14, 10  # pixels
LETTER = 8.4  # width of one, of the font below


@dataclass(frozen=True, slots=True)
class Wire:
    target: str
    ends: tuple[int, ...]  # heights: where it enters its box, and where moves join it

    @property
    def span(self) -> tuple[int, int]:
        return min(self.ends), max(self.ends)


def parse_moves(source: str) -> dict[str, dict[str, list[str]]]:
    """State → next state → labels; states that nothing follows are last."""
    first, *lines = source.strip().splitlines()
    assert first == "stateDiagram-v2", f"{first}: only state diagrams are drawn"
    moves: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        found = MOVE.fullmatch(line)
        assert found, f"not a move: {line}"
        moves.setdefault(found[1], {}).setdefault(found[2], []).append(found[3])
    ends = [after for following in moves.values() for after in following]
    return moves | {name: {} for name in ends if name not in moves}


def draw_states(source: str) -> str:
    moves = parse_moves(source)
    labels = [", ".join(words) for following in moves.values() for words in following.values()]
    right = int(max(map(len, moves)) * LETTER) + 2 * PAD
    start = right + int(max(map(len, labels)) * LETTER) + 3 * PAD
    tops, height = stack(moves)
    wires = place_wires(moves, tops)
    width = start + (max(wires.values(), default=0) + 1) * TRACK
    parts = [
        *draw_boxes(moves, tops, right),
        *(part for wire, track in wires.items() for part in draw_wire(wire, right, start + track * TRACK)),
    ]
    for name, following in moves.items():
        for number, (after, words) in enumerate(following.items(), 1):
            track = next(track for wire, track in wires.items() if wire.target == after)
            parts += draw_move(", ".join(words), right, tops[name] + number * LINE, start + track * TRACK)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n' + "\n".join(parts) + "\n</svg>"


def stack(moves: dict[str, dict[str, list[str]]]) -> tuple[dict[str, int], int]:
    """The middle of the first line of each box, and the height of all."""
    tops, y = {}, 1
    for name, following in moves.items():
        tops[name] = y + LINE // 2
        y += LINE * (1 + len(following)) + GAP
    return tops, y - GAP + 1


def place_wires(moves: dict[str, dict[str, list[str]]], tops: dict[str, int]) -> dict[Wire, int]:
    """A track for each wire, so that no two on the same track overlap; short ones are near the boxes."""
    ends: dict[str, list[int]] = {}
    for name, following in moves.items():
        for number, after in enumerate(following, 1):
            ends.setdefault(after, [tops[after]]).append(tops[name] + number * LINE)
    tracks: list[list[Wire]] = []
    for wire in sorted(
        (Wire(name, tuple(heights)) for name, heights in ends.items()),
        key=lambda wire: wire.span[1] - wire.span[0],
    ):
        free = (track for track in tracks if not any(is_overlapping(wire, other) for other in track))
        track = next(free, None)
        if track is None:
            tracks.append(track := [])
        track.append(wire)
    return {wire: number for number, track in enumerate(tracks) for wire in track}


def is_overlapping(one: Wire, other: Wire) -> bool:
    return one.span[0] <= other.span[1] and other.span[0] <= one.span[1]


def draw_boxes(moves: dict[str, dict[str, list[str]]], tops: dict[str, int], right: int) -> Iterator[str]:
    for name, following in moves.items():
        kind = "state" if following else "state end"
        tall, top = LINE * (1 + len(following)), tops[name] - LINE // 2
        yield f'<rect class="{kind}" x="1" y="{top}" width="{right - 1}" height="{tall}" rx="5"/>'
        yield f'<text class="name" x="{PAD}" y="{tops[name] + 5}">{html.escape(name)}</text>'


def draw_wire(wire: Wire, right: int, x: int) -> Iterator[str]:
    low, high = wire.span
    y = wire.ends[0]
    yield f'<path class="wire" d="M{x} {low}V{high}M{x} {y}H{right + 7}"/>'
    yield f'<path class="tip" d="M{right + 1} {y}l8 -4v8z"/>'


def draw_move(label: str, right: int, y: int, x: int) -> Iterator[str]:
    begin = right + int(len(label) * LETTER) + 2 * PAD
    yield f'<text x="{right + PAD}" y="{y + 5}">{html.escape(label)}</text>'
    yield f'<path class="wire" d="M{begin} {y}H{x}"/><circle class="tip" cx="{x}" cy="{y}" r="2.5"/>'
