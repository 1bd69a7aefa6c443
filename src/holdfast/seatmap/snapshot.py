"""The whole map of a show at one version, and the forms it is sent in. No I/O (R6, R7).

A byte a seat, in the order of the layout: A available, H held, B booked, X blocked. The text form is those
states; the compact form is the version (8 bytes, big-endian), the number of seats (4 bytes) and two bits a
seat, first seat in the lowest bits.
"""

import struct
import zlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from sys import byteorder
from typing import Any

import msgspec

from holdfast.layouts import Layout, Prefer, compute_seat_costs

CODES = b"AHBX"
PAGES_MAX = 64  # layouts; a stadium's page is 12 kB
GZIP = 31  # zlib's name for the wrapper that HTTP calls gzip
MASKS_MAX = 1024  # layouts, times their categories
TO_BITS = bytes.maketrans(CODES, bytes(range(4)))


@dataclass(frozen=True)
class Snapshot:
    show_id: int
    version: int
    states: bytes
    layout: Layout = field(repr=False)

    @cached_property
    def counts(self) -> dict[str, int]:
        return {chr(code): self.states.count(code) for code in CODES}

    @cached_property
    def free(self) -> int:
        return self.states.count(b"A")

    @cached_property
    def text(self) -> bytes:
        """The JSON everybody gets, encoded once."""
        page = {
            "show_id": self.show_id,
            "version": self.version,
            "layout": self.layout.hash,
            "counts": self.counts_by_category(),
            "states": self.states.decode("ascii"),
        }
        return msgspec.json.encode(page)

    @cached_property
    def compact(self) -> bytes:
        padded = self.states.translate(TO_BITS) + bytes(-len(self.states) % 4)
        packed = bytes(
            a | b << 2 | c << 4 | d << 6
            for a, b, c, d in zip(padded[::4], padded[1::4], padded[2::4], padded[3::4], strict=True)
        )
        return struct.pack(">QI", self.version, len(self.states)) + packed

    @cached_property
    def compact_packed(self) -> bytes:
        """The compact form, gzipped: once a version, however many ask."""
        return packed(self.compact)

    @cached_property
    def answers(self) -> dict[str, Any]:
        """What routes have made of its forms: the same for every request of this version."""
        return {}

    def counts_by_category(self) -> list[dict[str, object]]:
        """available, held, booked and blocked seats of each category, by counting one string a category."""
        table: list[dict[str, object]] = []
        for index, category in enumerate(self.layout.categories):
            # One pass in C: seats of other categories become a code that is not counted.
            mine = bytes(map(_pick, self.states, _mask(self.layout.category_of, index)))
            counts = {chr(code): mine.count(code) for code in CODES}
            table.append({"category": category.name, **counts})
        return table

    @cached_property
    def alternatives(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """What was offered to losers of this very map: the same question, the same answer."""
        return {}


def unpack(compact: bytes) -> tuple[int, bytes]:
    """(version, states) of the compact form: what a reader does."""
    version, count = struct.unpack(">QI", compact[:12])
    states = bytes(CODES[byte >> shift & 3] for byte in compact[12:] for shift in (0, 2, 4, 6))
    return version, states[:count]


def _pick(code: int, mine: int) -> int:
    return code & mine


@lru_cache(maxsize=MASKS_MAX)
def _mask(category_of: bytes, category: int) -> bytes:
    return category_of.translate(bytes(255 if value == category else 0 for value in range(256)))


def packed_plan(layout: Layout, prefer: Prefer) -> tuple[bytes, bytes]:
    """(runs, costs): a run is its lowest cost, length and start; a cost two bytes a seat. Little-endian."""
    made = compute_seat_costs(layout, prefer)
    runs = b"".join(struct.pack("<HHI", cost, length, start) for cost, start, length in made.runs)
    costs = made.costs[:]
    if byteorder == "big":
        costs.byteswap()
    return runs, costs.tobytes()


@lru_cache(maxsize=PAGES_MAX)
def packed_page(layout: Layout) -> bytes:
    """What a browser needs to draw the hall, gzipped once: it never changes."""
    return packed(layout.page(), level=9)


def packed(body: bytes, level: int = 5) -> bytes:
    gzip = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    return gzip.compress(body) + gzip.flush()
