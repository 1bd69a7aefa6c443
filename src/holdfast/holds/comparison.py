"""Differences between a show's map and its bookings in PostgreSQL. No I/O.

The map may know of claims that are not yet rows (for a moment), and may keep a claim a little longer than its
row. Everything else that differs for longer than a moment is a fault, and is fixed by a rebuild of the map.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.bookings import SEAT_STATE_CODES, BookingState, LiveBooking
from holdfast.claim import Claim, PoolMap

AVAILABLE, HELD = ord("A"), ord("H")


@dataclass(frozen=True, slots=True)
class MapDifference:
    kind: str  # claim without a row · row without a claim · booked seat not shown · seat shown taken
    seat: int
    claim: str

    def __str__(self) -> str:
        return f"{self.kind}: seat {self.seat} ({self.claim})"


def differences(pool: PoolMap, live: Iterable[LiveBooking]) -> list[MapDifference]:
    claims = set(pool.claims or ())  # those without a row remain
    found: list[MapDifference] = []
    covered: set[int] = set()  # seats whose state some claim or row explains
    for booking in live:
        name = str(booking.claim)
        is_claim = booking.state in (BookingState.HELD, BookingState.PAYING)
        if (
            booking.has_lapsed or booking.state not in SEAT_STATE_CODES
        ):  # the latter: the ledger contradicts itself
            claims.discard(name)
            covered.update(booking.claim.units)
            continue
        if is_claim and name not in claims:
            found.append(MapDifference("row without a claim", booking.claim.units[0], name))
        claims.discard(name)
        for seat in booking.claim.units:
            covered.add(seat)
            # By slice: a map from before the layout grew has no byte there.
            if pool.units[seat : seat + 1] != bytes([SEAT_STATE_CODES[booking.state]]):
                found.append(MapDifference("booked seat not shown", seat, name))
    # Left over: claims of processes that died before the row, or whose row is being written right now.
    for name in claims:
        claim = Claim.parse(name)
        found.append(MapDifference("claim without a row", claim.units[0], name))
        covered.update(claim.units)
    found += [
        MapDifference("seat shown taken", seat, chr(code))
        for seat, code in enumerate(pool.units)
        if code != AVAILABLE and seat not in covered
    ]
    return found
