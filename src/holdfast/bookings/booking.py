"""The life of a booking. No I/O.

    HELD ◄──► PAYING ──► CONFIRMED ──► REFUNDED          BLOCKED ──► CANCELLED
     ├─► CONFIRMED (nothing to pay)                      (seats an organiser withholds)
     ├─► CANCELLED  └─► EXPIRED ──► CONFIRMED (paid late, and every seat was still free)
     └─► EXPIRED          └───────► FAILED (paid late, and it was not: the money goes back)

Rule: everything that decides a transition is in this file. It does no I/O.
docs/flows/booking.md is drawn from MOVES by `make docs`; a trigger in bookings/functions.sql enforces them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from holdfast.bookings.errors import NoSuchBooking, WrongMove
from holdfast.claim import Action, Claim, Settlement


class BookingState(StrEnum):
    HELD = "held"  # seats are ours until expires_at
    PAYING = "paying"  # a charge is under way; seats are ours until it is settled
    CONFIRMED = "confirmed"  # paid for, or nothing to pay
    EXPIRED = "expired"  # time passed without a payment
    CANCELLED = "cancelled"  # the owner released the seats
    FAILED = "failed"  # paid too late; money goes back
    REFUNDED = "refunded"  # was confirmed; money went back
    BLOCKED = "blocked"  # withheld by an organiser


class BookingMove(StrEnum):
    PAY = "pay"
    DECLINE = "decline"
    CONFIRM = "confirm"
    EXPIRE = "expire"
    CANCEL = "cancel"
    FAIL = "fail"
    REFUND = "refund"
    UNBLOCK = "unblock"


MOVES: dict[tuple[BookingState, BookingMove], BookingState] = {
    (BookingState.HELD, BookingMove.PAY): BookingState.PAYING,
    (BookingState.HELD, BookingMove.EXPIRE): BookingState.EXPIRED,
    (BookingState.HELD, BookingMove.CANCEL): BookingState.CANCELLED,
    (BookingState.HELD, BookingMove.CONFIRM): BookingState.CONFIRMED,  # nothing to pay
    (BookingState.PAYING, BookingMove.DECLINE): BookingState.HELD,
    (BookingState.PAYING, BookingMove.CONFIRM): BookingState.CONFIRMED,
    (BookingState.PAYING, BookingMove.EXPIRE): BookingState.EXPIRED,
    (
        BookingState.EXPIRED,
        BookingMove.CONFIRM,
    ): BookingState.CONFIRMED,  # paid late, and every seat was still free
    (BookingState.EXPIRED, BookingMove.FAIL): BookingState.FAILED,
    (BookingState.CONFIRMED, BookingMove.REFUND): BookingState.REFUNDED,
    (BookingState.BLOCKED, BookingMove.UNBLOCK): BookingState.CANCELLED,
}

# A row in taken_seat exists exactly for these: migrations/0004_bookings.sql.
TAKES_SEATS = {BookingState.HELD, BookingState.PAYING, BookingState.CONFIRMED, BookingState.BLOCKED}


def after(state: BookingState, move: BookingMove) -> BookingState:
    try:
        return MOVES[state, move]
    except KeyError:
        raise WrongMove(state=state, move=move) from None


WAITLIST = "waitlist"  # claim id of seats that are reserved for the waitlist: no booking has them
OFFER = "offer"  # claim ids of offers to parties of the waitlist begin with it: functions_waitlist.sql


def reserved_claim(seats: Iterable[int]) -> Claim:
    """Seats that are reserved for the waitlist, or were until now, for the map."""
    return Claim(WAITLIST, 0, tuple(sorted(seats)))


class Booking(Struct, frozen=True, gc=False):
    show_id: int
    number: int
    owner_id: int
    fence: int
    state: BookingState
    request_id: str
    body_hash: int
    claim_id: str
    seats: tuple[int, ...]
    prices_minor: tuple[int, ...]
    amount_minor: int
    currency: str
    note: str
    opened_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None
    revision: int  # of the show, at hold: its prices and terms; 0: a block
    sale_epoch: int = 0  # of the sale when the booking was opened; 0: the booking was read back
    is_replay: bool = False  # the request was answered before, with this booking

    @property
    def claim(self) -> Claim:
        """Its name in Redis."""
        return Claim(self.claim_id, self.owner_id, self.seats)

    @property
    def is_offer(self) -> bool:
        """Made for a party of the waitlist: it has its own window, and is neither extended nor merged."""
        return self.claim_id.startswith(OFFER)


class Opening(Struct, frozen=True, gc=False):
    """A booking to be opened: seats that a buyer has claimed, with everything that a booking's row needs."""

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
    confirms_free: bool = True  # False: a free booking waits until its owner wants the tickets
    is_guest: bool = False

    @property
    def claim(self) -> Claim:
        return Claim(self.claim_id, self.owner_id, self.seats)


class Extension(Struct, frozen=True, gc=False):
    """More time for a hold: `ttl_s` from now, as far as `life_max_s` after its beginning."""

    show_id: int
    number: int
    fence: int
    ttl_s: int
    life_max_s: int


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
        reserved = [rival.seat for rival in self.rivals if rival.claim.claim_id == WAITLIST]
        by_claim = {rival.claim: rival for rival in self.rivals if rival.claim.claim_id != WAITLIST}
        # 0, no end, while it is being paid for: the payment decides, however long the gateway takes.
        return [
            *([Settlement("reserve", reserved_claim(reserved))] if reserved else []),
            *(
                Settlement(
                    actions.get(rival.state, "adopt"),
                    claim,
                    0 if rival.state is BookingState.PAYING else max(1, rival.left_ms),
                )
                for claim, rival in by_claim.items()
            ),
        ]


# limit       the owner would have more seats than allowed
# has_hold    a guest has a hold in this show already
# range_full  the address range has as many unpaid seats as allowed
# cooling     too many holds of the owner, or of the address range, ended unpaid
# closed      the sale is not open
# stale       the revision is outdated: load the show again
# unmarked    ledger_only, but the sale is not marked yet
# locked      the sale, or a row of it, is locked by another transaction: nothing was written, send it again
# key_reused  the same Idempotency-Key with another body
# repriced    the seats cost another amount than the client expects (decided without PostgreSQL)
Limit = Literal["limit", "has_hold", "range_full", "cooling"]
Reason = Limit | Literal["closed", "stale", "unmarked", "locked", "key_reused", "repriced"]


class OpeningRefused(Struct, frozen=True, gc=False):
    reason: Reason


OpeningOutcome = Booking | AlreadyOpened | SeatsLost | OpeningRefused  # Booking: opened, and durable


FREE, HELD, BOOKED, BLOCKED = b"AHBX"
SEAT_STATE_CODES = {
    BookingState.HELD: HELD,
    BookingState.PAYING: HELD,
    BookingState.CONFIRMED: BOOKED,
    BookingState.BLOCKED: BLOCKED,
}

VERSIONS_PER_EPOCH = 10**9  # version = epoch · 10⁹ + n: it never goes back


@dataclass(frozen=True, slots=True)
class Sale:
    epoch: int
    map_stale: bool
    age_ds: int  # tenths of a second since the epoch was raised
    revision: int


@dataclass(frozen=True, slots=True)
class LockedSale:
    """A sale whose row is locked for a rebuild of its map. Durations, because Redis has another clock."""

    epoch: int
    map_stale: bool
    revision: int
    is_closed: bool  # cancelled, or not public
    has_waitlist: bool  # freed seats are reserved for it
    opens_in_ms: int
    closes_in_ms: int


class LiveBooking(Struct, frozen=True, gc=False):
    """A booking that has seats now, as far as a map needs to know."""

    number: int
    claim: Claim
    state: BookingState
    counts: bool
    left_ms: int

    @property
    def has_lapsed(self) -> bool:
        return self.state is BookingState.HELD and self.left_ms <= 0


def build_seat_states(seat_count: int, bookings: Iterable[LiveBooking]) -> bytes:
    """The map as PostgreSQL has it: one code per seat. Seats of expired holds are free."""
    states = bytearray(b"A" * seat_count)
    for booking in bookings:
        if not booking.has_lapsed:
            for seat in booking.claim.units:
                states[seat] = SEAT_STATE_CODES[booking.state]
    return bytes(states)


# A booking's public id is (show, number), shuffled so that it tells neither and neighbours look unlike.
# It is not a secret: only the owner may read the booking.
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
ID_BITS = 96
HALF = ID_BITS // 2
MASK = (1 << ID_BITS) - 1
FIFTY_BITS = (1 << 50) - 1
ODD = 0x9E37_79B9_7F4A_7C15_F39C_C061
ODD_BACK = pow(ODD, -1, 1 << ID_BITS)
REFERENCE_ODD = 0x9E37_79B9_7F
REFERENCE_MASK = (1 << 40) - 1
REFERENCE_ODD_BACK = pow(REFERENCE_ODD, -1, 1 << 40)
REFERENCE_ROUNDS = 1 << HALF - 40  # numbers that differ by a multiple of 2⁴⁰: 97 days of new_number() each


def public_id(show_id: int, number: int) -> str:
    mixed = ((show_id << HALF | number) * ODD) & MASK
    mixed = ((mixed ^ mixed >> HALF) * ODD) & MASK
    high, low = mixed >> 46, (mixed << 4) & FIFTY_BITS
    return _encode_50_bits(high) + _encode_50_bits(low)


def from_public_id(text: str) -> tuple[int, int]:
    """(show, number); raises NoSuchBooking for a malformed id."""
    mixed = 0
    for character in text if len(text) == 20 else "?":
        digit = ALPHABET.find(character)
        if digit < 0:
            raise NoSuchBooking()
        mixed = mixed << 5 | digit
    if mixed & 15:
        raise NoSuchBooking()
    mixed >>= 4
    mixed = (mixed * ODD_BACK) & MASK
    mixed = ((mixed ^ mixed >> HALF) * ODD_BACK) & MASK
    return mixed >> HALF, mixed & ((1 << HALF) - 1)


def reference(show_id: int, number: int) -> str:
    """Short enough to say on the phone. Of the number's 48 bits it has 40: two bookings of a show that share
    one were opened a multiple of 97 days apart, in the same sixteenth of a second."""
    mixed = (number * REFERENCE_ODD + show_id * 0x5851_F42D_4D) & REFERENCE_MASK
    eight = PAIRS[mixed >> 30] + PAIRS[mixed >> 20 & 1023] + PAIRS[mixed >> 10 & 1023] + PAIRS[mixed & 1023]
    return eight.upper()


def from_reference(show_id: int, text: str) -> list[int]:
    """The numbers that a booking of this show with this reference can have; none: it is not a reference."""
    mixed = 0
    for character in text.strip().lower() if len(text.strip()) == 8 else "?":
        digit = ALPHABET.find(character)
        if digit < 0:
            return []
        mixed = mixed << 5 | digit
    number = (mixed - show_id * 0x5851_F42D_4D) * REFERENCE_ODD_BACK & REFERENCE_MASK
    return [turn << 40 | number for turn in range(REFERENCE_ROUNDS)]


def _encode_50_bits(bits: int) -> str:
    """50 bits in base 32, ten bits a look; written out, because every hold spells two of them."""
    return (
        PAIRS[bits >> 40]
        + PAIRS[bits >> 30 & 1023]
        + PAIRS[bits >> 20 & 1023]
        + PAIRS[bits >> 10 & 1023]
        + PAIRS[bits & 1023]
    )
