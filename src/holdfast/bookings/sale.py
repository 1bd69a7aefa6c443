"""A show's sale as the ledger sees it, and the letters of its map. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.bookings.booking import BookingState
from holdfast.claim import Claim

FREE, HELD, BOOKED, BLOCKED = b"AHBX"
LETTER = {
    BookingState.HELD: HELD,
    BookingState.PAYING: HELD,
    BookingState.CONFIRMED: BOOKED,
    BookingState.BLOCKED: BLOCKED,
}

VERSIONS_AN_EPOCH = 10**9  # version = epoch · 10⁹ + n: it never goes back


@dataclass(frozen=True, slots=True)
class Sale:
    epoch: int
    map_stale: bool
    age_ds: int  # tenths of a second since the epoch was raised


@dataclass(frozen=True, slots=True)
class LockedSale:
    """A sale whose row is locked for a rebuild of its map. Durations, because Redis has another clock."""

    epoch: int
    map_stale: bool
    revision: int
    cancelled: bool
    opens_in_ms: int
    closes_in_ms: int


@dataclass(frozen=True, slots=True)
class LiveBooking:
    """What takes seats now, as far as a map needs to know."""

    number: int
    claim: Claim
    state: BookingState
    counts: bool
    left_ms: int

    @property
    def has_lapsed(self) -> bool:
        return self.state is BookingState.HELD and self.left_ms <= 0


def letters(seat_count: int, bookings: Iterable[LiveBooking]) -> bytes:
    """The map as the ledger knows it: lapsed holds are free."""
    states = bytearray(b"A" * seat_count)
    for booking in bookings:
        if not booking.has_lapsed:
            for seat in booking.claim.units:
                states[seat] = LETTER[booking.state]
    return bytes(states)
