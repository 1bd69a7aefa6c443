"""What a new map is filled with: the bookings of a show, as Redis stores them. No I/O.

Filled a part at a time (`add`), because a sold-out stadium has 25 000 bookings.
"""

from collections.abc import Iterable

from holdfast.bookings import SEAT_STATE_CODES, BookingState, LiveBooking


class MapContents:
    def __init__(self, seat_count: int) -> None:
        self._states = bytearray(b"A" * seat_count)
        self.claims: list[tuple[str, int]] = []  # claim, ms left; -1: it does not end
        self.owners: dict[str, int | str] = {}  # counters, as in claim/parties.lua; "#id" -> claim

        self.lapses: list[tuple[str, int, int, int]] = []  # as in claim.Blueprint

    @property
    def states(self) -> bytes:
        """One code per seat. Seats of expired holds are free."""
        return bytes(self._states)

    def add(self, live: Iterable[LiveBooking]) -> None:
        for booking in live:
            if booking.has_lapsed:
                continue
            claim, name, code = booking.claim, str(booking.claim), SEAT_STATE_CODES[booking.state]
            for seat in claim.units:
                self._states[seat] = code
            if booking.number == 0:  # reserved for the waitlist: no claim
                continue
            # By claim id, so that a retry of a request from before the rebuild finds its claim.
            self.owners["#" + claim.claim_id.partition("@")[0]] = name
            if booking.counts:
                self._count(str(claim.owner), len(claim.units))
            if claim.party and booking.state in (BookingState.HELD, BookingState.PAYING):
                self._count(f"@{claim.party}", len(claim.units))
                self._count(f"!{claim.owner}", 1)
            # A claim that is being paid for has no end: the payment decides, however long the gateway takes.
            if booking.state is BookingState.PAYING:
                self.claims.append((name, -1))
            elif booking.state is BookingState.HELD:
                self.claims.append((name, booking.left_ms))

    def _count(self, field: str, by: int) -> None:
        self.owners[field] = int(self.owners.get(field, 0)) + by
