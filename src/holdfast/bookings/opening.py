"""Making a hold durable: the row that PostgreSQL is to write, and its possible outcomes. No I/O."""

from typing import Literal

from msgspec import Struct

from holdfast.bookings.booking import Booking, BookingState
from holdfast.claim import Action, Claim, Settlement


class Opening(Struct, frozen=True, gc=False):
    """Seats that a buyer has claimed, with everything that a booking's row needs."""

    show_id: int
    owner_id: int
    request_id: str
    body_hash: int
    claim_id: str
    note: str
    ttl_ms: int
    claimed_at_s: float  # monotonic; the time since then is taken off the row's time to live
    revision: int
    currency: str
    seats: tuple[int, ...]
    prices: tuple[int, ...]
    ledger_only: bool = False  # Redis was unreachable: the sale must be marked
    map_epoch: int = 0  # of the Redis map that the seats were claimed in
    is_repeat: bool = False  # an earlier try with the same claim id made the claim

    @property
    def claim(self) -> Claim:
        return Claim(self.claim_id, self.owner_id, self.seats)


class Rival(Struct, frozen=True, gc=False):
    """The booking that has a requested seat, as far as the map needs to know."""

    seat: int
    claim: Claim
    state: BookingState
    left_ms: int


class AlreadyOpened(Struct, frozen=True, gc=False):
    """This request was answered before, with this booking."""

    booking: Booking


class SeatsLost(Struct, frozen=True, gc=False):
    """Other bookings have seats of this opening. Empty: they came free in the meantime."""

    rivals: tuple[Rival, ...]

    def corrections(self) -> list[Settlement]:
        """The rivals as PostgreSQL has them, each once, for a map that did not have them."""
        actions: dict[BookingState, Action] = {
            BookingState.CONFIRMED: "commit",
            BookingState.BLOCKED: "block",
        }
        by_claim = {rival.claim: rival for rival in self.rivals}
        return [
            Settlement(actions.get(rival.state, "adopt"), claim, max(1, rival.left_ms))
            for claim, rival in by_claim.items()
        ]


# limit       the owner would have more seats than allowed
# closed      the sale is not open
# stale       the revision is outdated: load the show again
# unmarked    ledger_only, but the sale is not marked yet
# key_reused  the same Idempotency-Key with another body
# repriced    the seats cost another amount than the client expects (decided without PostgreSQL)
Reason = Literal["limit", "closed", "stale", "unmarked", "key_reused", "repriced"]


class OpeningRefused(Struct, frozen=True, gc=False):
    reason: Reason


OpeningOutcome = Booking | AlreadyOpened | SeatsLost | OpeningRefused  # Booking: opened, and durable
