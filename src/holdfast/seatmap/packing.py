"""The order of a layout's seats, as the bytes that choose.lua reads. No I/O."""

import struct
from sys import byteorder

from holdfast.catalogue import Layout
from holdfast.holds import Prefer, plan


def packed_plan(layout: Layout, prefer: Prefer) -> tuple[bytes, bytes]:
    """(runs, costs): a run is its lowest cost, length and start; a cost two bytes a seat. Little-endian."""
    made = plan(layout, prefer)
    runs = b"".join(struct.pack("<HHI", cost, length, start) for cost, start, length in made.runs)
    costs = made.costs[:]
    if byteorder == "big":
        costs.byteswap()
    return runs, costs.tobytes()
