"""What a new map is filled with: the bookings of a show, as Redis stores them. No I/O.

Filled a part at a time (`add`), because a sold-out stadium has 25 000 bookings.
"""

from collections.abc import Iterable

from holdfast.bookings import SEAT_STATE_CODES, BookingState, LiveBooking


class MapContents:
    def __init__(self, seat_count: int) -> None:
        self._states = bytearray(b"A" * seat_count)
        self.claims: list[tuple[str, int]] = []  # claim, ms left; -1: it does not end
        self.owners: dict[str, int | str] = {}  # owner -> seats; "#id" -> claim

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
            # By claim id, so that a retry of a request from before the rebuild finds its claim.
            self.owners[f"#{claim.claim_id}"] = name
            if booking.counts:
                owner = str(claim.owner)
                self.owners[owner] = int(self.owners.get(owner, 0)) + len(claim.units)
            # A claim that is being paid for has no end: the payment decides, however long the gateway takes.
            if booking.state is BookingState.PAYING:
                self.claims.append((name, -1))
            elif booking.state is BookingState.HELD:
                self.claims.append((name, booking.left_ms))
