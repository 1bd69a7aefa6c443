"""Making a hold durable: what is asked of the ledger, and what it answers. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.claim import Claim
from holdfast.ledger.booking import Booking, State


@dataclass(frozen=True, slots=True)
class Opening:
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


@dataclass(frozen=True, slots=True)
class Rival:
    """Who has a seat that was asked for, as far as the map needs to know."""

    seat: int
    claim: Claim
    state: State
    left_ms: int


@dataclass(frozen=True, slots=True)
class Opened:
    number: int
    state: State
    epoch: int
    opened_at: datetime
    expires_at: datetime
    note: str | None = None  # of the first try, where this is another one


@dataclass(frozen=True, slots=True)
class Same:
    """This request was answered before, with this booking."""

    booking: Booking


@dataclass(frozen=True, slots=True)
class Lost:
    rivals: tuple[Rival, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """`why`: limit · closed · stale (the catalogue has moved on) · unmarked (mark the sale first)."""

    why: str


Answer = Opened | Same | Lost | Refused


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of open_holds: arrays, one element a booking; then one element a seat, in key order."""

    left_ms: list[int]
    arguments: list[object]


def asked(openings: Sequence[Opening], now_s: float) -> Asked:
    left_ms = [max(1, o.ttl_ms - int((now_s - o.claimed_at_s) * 1000)) for o in openings]
    seats = sorted([(o.show_id, seat, place) for place, o in enumerate(openings, 1) for seat in o.seats])
    arguments: list[object] = [
        [o.show_id for o in openings],
        [o.owner_id for o in openings],
        [o.request_id for o in openings],
        [o.body_hash for o in openings],
        [o.claim_id for o in openings],
        [o.note for o in openings],
        left_ms,
        [o.revision for o in openings],
        [o.currency for o in openings],
        [f"{{{','.join(map(str, o.seats))}}}" for o in openings],
        [f"{{{','.join(map(str, o.prices))}}}" for o in openings],
        [sum(o.prices) for o in openings],
        [len(o.seats) for o in openings],
        [place for _, _, place in seats],
        [show_id for show_id, _, _ in seats],
        [seat for _, seat, _ in seats],
        openings[0].by_ledger,
    ]
    return Asked(left_ms, arguments)
