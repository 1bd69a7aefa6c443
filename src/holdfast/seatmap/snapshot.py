"""The whole map of a show at one version, and the forms it is sent in. No I/O (R6, R7).

A byte a seat, in the order of the layout: A available, H held, B booked, X blocked. The text form is those
states; the compact form is the version (8 bytes, big-endian), the number of seats (4 bytes) and two bits a
seat, first seat in the lowest bits.
"""

import struct
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from sys import byteorder
from typing import Any

import msgspec

from holdfast.layouts import Layout, Prefer, compute_seat_costs

CODES = b"AHBX"
PACKED_AT_ONCE_MAX = 50_000  # bytes of a layout's page: about two milliseconds
GZIP = 31  # zlib's name for the wrapper that HTTP calls gzip
TO_BITS = bytes.maketrans(CODES, bytes(range(4)))


Groups = list[tuple[int, ...]]


@dataclass(frozen=True)
class Offered:
    """Alternatives that were found for losers, with the version of the map they were found in."""

    since_s: float  # monotonic
    groups: dict[tuple[int, ...], tuple[int, Groups]] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    show_id: int
    version: int
    states: bytes
    layout: Layout = field(repr=False)
    # In a rush a map differs from the last one in a few seats: what was found for it is mostly still free.
    offered: Offered = field(default_factory=lambda: Offered(0.0), repr=False, compare=False)

    @property
    def weight(self) -> int:
        """About how many bytes it takes with all its forms: the states, the text, the compact ones."""
        return 3 * len(self.states) + 2_000

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
        # As one large number: the four seats of a group are shifted onto one byte, all groups at once.
        bits = int.from_bytes(padded, "little")
        bits |= bits >> 6 | bits >> 12 | bits >> 18
        packed = bits.to_bytes(len(padded), "little")[::4]
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
        # States and masks as large numbers: one AND per category instead of a step of Python per seat. Seats
        # of other categories become zeros, which are not counted.
        states, size = int.from_bytes(self.states, "little"), len(self.states)
        for category, mask in zip(self.layout.categories, self.layout.category_masks, strict=True):
            mine = (states & mask).to_bytes(size, "little")
            counts = {chr(code): mine.count(code) for code in CODES}
            table.append({"category": category.name, **counts})
        return table


def unpack(compact: bytes) -> tuple[int, bytes]:
    """(version, states) of the compact form: what a reader does."""
    version, count = struct.unpack(">QI", compact[:12])
    states = bytes(CODES[byte >> shift & 3] for byte in compact[12:] for shift in (0, 2, 4, 6))
    return version, states[:count]


def build_plans(layout: Layout) -> dict[str, bytes]:
    """What is stored beside a map so that hold.lua can choose seats: traits, categories, seat orders."""
    fields = {"categories": layout.category_of, "traits": layout.traits}
    for prefer in (Prefer.BEST, Prefer.FRONT, Prefer.CENTRE):  # by the aisle: the order of best
        fields[f"runs:{prefer}"], fields[f"costs:{prefer}"] = packed_plan(layout, prefer)
    return fields


def packed_plan(layout: Layout, prefer: Prefer) -> tuple[bytes, bytes]:
    """(runs, costs): a run is its lowest cost, length and start; a cost two bytes a seat. Little-endian."""
    made = compute_seat_costs(layout, prefer)
    runs = b"".join(struct.pack("<HHI", cost, length, start) for cost, start, length in made.runs)
    costs = made.costs[:]
    if byteorder == "big":
        costs.byteswap()
    return runs, costs.tobytes()


def packed_page(layout: Layout) -> bytes:
    """What a browser needs to draw the hall, gzipped once: it never changes."""
    if "packed_page" not in layout.derived:
        layout.derived["packed_page"] = packed(layout.page(), level=9)
    page: bytes = layout.derived["packed_page"]
    return page


def ready_page(layout: Layout) -> bytes | None:
    """The packed page if it has been packed before, or is small enough to be packed at once."""
    is_quick = "packed_page" in layout.derived or len(layout.page()) < PACKED_AT_ONCE_MAX
    return packed_page(layout) if is_quick else None


def packed(body: bytes, level: int = 5) -> bytes:
    gzip = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    return gzip.compress(body) + gzip.flush()
