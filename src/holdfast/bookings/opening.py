"""Making a hold durable: what is asked of the ledger, and what it answers. No I/O."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from holdfast.bookings.booking import Booking, BookingState
from holdfast.claim import Claim


class Opening(Struct, frozen=True, gc=False):
    show_id: int
    owner_id: int
    request_id: str
    body_hash: int
    claim_id: str
    note: str
    ttl_ms: int
    claimed_at_s: float  # monotonic; what has passed since then is taken off the row's time
    revision: int
    currency: str
    seats: tuple[int, ...]
    prices: tuple[int, ...]
    by_ledger: bool = False  # Redis could not be asked

    @property
    def claim(self) -> Claim:
        return Claim(self.claim_id, self.owner_id, self.seats)


class Rival(Struct, frozen=True, gc=False):
    """Who has a seat that was asked for, as far as the map needs to know."""

    seat: int
    claim: Claim
    state: BookingState
    left_ms: int


class Opened(Struct, frozen=True, gc=False):
    number: int
    state: BookingState
    epoch: int
    opened_at: datetime
    expires_at: datetime
    first: Booking | None = None  # where this is not the first try


class AlreadyOpened(Struct, frozen=True, gc=False):
    """This request was answered before, with this booking."""

    booking: Booking


class SeatsLost(Struct, frozen=True, gc=False):
    rivals: tuple[Rival, ...]


class OpeningRefused(Struct, frozen=True, gc=False):
    """`why`: limit · closed · stale (the catalogue has moved on) · unmarked (mark the sale first)."""

    why: str


OpeningOutcome = Opened | AlreadyOpened | SeatsLost | OpeningRefused


class Asked(Struct, frozen=True, gc=False):
    left_ms: list[int]
    arguments: list[object]  # of open_holds


def asked(openings: Sequence[Opening], now_s: float) -> Asked:
    """Arrays, one element a booking, spelt as PostgreSQL spells them: cheaper than encoding lists."""
    left_ms = [max(1, o.ttl_ms - int((now_s - o.claimed_at_s) * 1000)) for o in openings]
    arguments: list[object] = [
        numbers([o.show_id for o in openings]),
        numbers([o.owner_id for o in openings]),
        texts([o.request_id for o in openings]),
        numbers([o.body_hash for o in openings]),
        texts([o.claim_id for o in openings]),
        texts([o.note for o in openings]),
        numbers(left_ms),
        numbers([o.revision for o in openings]),
        texts([o.currency for o in openings]),
        texts([numbers(o.seats) for o in openings]),
        texts([numbers(o.prices) for o in openings]),
        numbers([sum(o.prices) for o in openings]),
        openings[0].by_ledger,
    ]
    return Asked(left_ms, arguments)


def numbers(values: Iterable[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def texts(values: Sequence[str]) -> str:
    """Every element in quotes; a backslash and a quote are escaped, so no text ends its element early."""
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join([value.replace("\\", "\\\\").replace('"', '\\"') for value in values])
    return f'{{"{joined}"}}'
