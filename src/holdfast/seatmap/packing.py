"""A layout in fewer bytes: the order of its seats for choose.lua, its page for browsers. No I/O."""

import struct
import zlib
from functools import lru_cache
from sys import byteorder

from holdfast.layouts import Layout, Prefer, compute_seat_costs


def packed_plan(layout: Layout, prefer: Prefer) -> tuple[bytes, bytes]:
    """(runs, costs): a run is its lowest cost, length and start; a cost two bytes a seat. Little-endian."""
    made = compute_seat_costs(layout, prefer)
    runs = b"".join(struct.pack("<HHI", cost, length, start) for cost, start, length in made.runs)
    costs = made.costs[:]
    if byteorder == "big":
        costs.byteswap()
    return runs, costs.tobytes()


PAGES_MAX = 64  # a stadium's is 12 kB
GZIP = 31  # of zlib: the wrapping that HTTP calls gzip


@lru_cache(maxsize=PAGES_MAX)
def packed_page(layout: Layout) -> bytes:
    """What a browser needs to draw the hall, gzipped once: it never changes."""
    return packed(layout.page(), level=9)


def packed(body: bytes, level: int = 5) -> bytes:
    gzip = zlib.compressobj(level, zlib.DEFLATED, GZIP)
    return gzip.compress(body) + gzip.flush()
