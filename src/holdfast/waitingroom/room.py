"""The waiting room of a show: its settings, its states and what everybody may see of it. No I/O.

    SCHEDULED ──► OPEN ──► ADMITTING ──► DRAINED      everything is sold
        │          │        ▲   │
        │          │        │   └──► OVERRIDDEN       everyone may hold seats; back with a second call
        │          │        └────────────┘
        └──────────┴────────┴──► CLOSED               holds need no admission any more

A room that opens by itself because many people want seats has no draw: it begins in ADMITTING. While a room
is OPEN or ADMITTING, seats are held only with an admission.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

TURN_S, WINDOW_S = 120, 900
INSIDE_MAX, PER_MINUTE_MAX = 500, 600


class RoomState(StrEnum):
    SCHEDULED = "scheduled"  # has settings; people cannot join yet
    OPEN = "open"  # people join, and all of them are in the draw
    ADMITTING = "admitting"  # the order is known; later arrivals join behind it
    OVERRIDDEN = "overridden"  # an organiser lets everyone in
    DRAINED = "drained"  # sold out: the people who still waited are offered the waitlist
    CLOSED = "closed"


MOVES: dict[RoomState, frozenset[RoomState]] = {
    RoomState.SCHEDULED: frozenset({RoomState.OPEN, RoomState.ADMITTING, RoomState.CLOSED}),
    RoomState.OPEN: frozenset({RoomState.ADMITTING, RoomState.OVERRIDDEN, RoomState.CLOSED}),
    RoomState.ADMITTING: frozenset({RoomState.OVERRIDDEN, RoomState.DRAINED, RoomState.CLOSED}),
    RoomState.OVERRIDDEN: frozenset({RoomState.ADMITTING, RoomState.DRAINED, RoomState.CLOSED}),
    RoomState.DRAINED: frozenset({RoomState.CLOSED}),
    RoomState.CLOSED: frozenset({RoomState.SCHEDULED}),
}
JOINABLE = frozenset({RoomState.OPEN, RoomState.ADMITTING, RoomState.OVERRIDDEN})
GUARDING = frozenset({RoomState.OPEN, RoomState.ADMITTING})  # seats are held only with an admission


class RoomSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What an organiser decides. Times are given with their zone; the state changes on their own clock."""

    opens_at: datetime | None = None  # people can join from then on; None: when an organiser opens the room
    draw_at: datetime | None = None  # the order is drawn and admission begins; None: when the sale opens
    inside_max: Annotated[int, Meta(ge=1, le=100_000)] = INSIDE_MAX  # people who choose seats at once
    per_minute_max: Annotated[int, Meta(ge=1, le=100_000)] = PER_MINUTE_MAX  # people admitted per minute
    turn_s: Annotated[int, Meta(ge=30, le=3600)] = TURN_S  # to respond after being called
    window_s: Annotated[int, Meta(ge=60, le=7200)] = WINDOW_S  # to choose seats after that
    # The public value that is mixed into the draw, named before it exists: "drand quicknet, round 13500000".
    beacon: Annotated[str, Meta(max_length=200)] = ""
    # The room opens by itself above this many holds per second, or viewers of the live map; 0: it does not.
    opens_above_holds_per_second: Annotated[int, Meta(ge=0, le=100_000)] = 0
    opens_above_viewers: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    # The draw goes on without the value of the beacon if it has not come until then; None: the draw waits.
    beacon_until: datetime | None = None


class RoomStatus(Struct, frozen=True):
    """What everybody may see: the same for all, at most a second old."""

    show_id: int
    opening: int  # counts the openings of this show's room; places and admissions are for one of them
    state: RoomState
    opens_at: datetime | None
    draw_at: datetime | None
    commitment: str  # SHA-256 of the seed, in hexadecimal; published before anyone joins. Empty: no draw
    joined: int  # people who have a place, or had one
    entrants: int | None  # people in the draw; None before it
    serving: int  # everyone whose position is below this has been called
    inside: int  # people who are called or choose seats
    inside_max: int
    per_minute: float  # people called per minute, measured
    seats_left: int
    poll_after_s: int  # for people far from the front; others come back sooner: `place.poll_after_s`
    now: datetime  # by the ledger's clock
