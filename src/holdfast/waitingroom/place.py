"""A person's place in a waiting room, their turn and their admission. No I/O.

IN_DRAW ──► WAITING ──► CALLED ──► INSIDE ──► DONE      bought, left, or the window ended
               ▲          │ not answered in time
               └── once ──┤
                          └── twice ──► OUT
any of the first four ──► LEFT; IN_DRAW and WAITING ──► DRAINED when everything is sold
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class PlaceState(StrEnum):
    IN_DRAW = "in_draw"  # the order is not drawn yet
    WAITING = "waiting"  # position and people ahead are known
    CALLED = "called"  # it is their turn until `turn_ends_at`: redeem it
    INSIDE = "inside"  # may hold seats until `window_ends_at`
    DONE = "done"  # was inside; join again for another turn
    OUT = "out"  # did not respond twice
    LEFT = "left"
    DRAINED = "drained"  # everything was sold before their turn: see the waitlist


LIVE = frozenset({PlaceState.IN_DRAW, PlaceState.WAITING, PlaceState.CALLED, PlaceState.INSIDE})


class WaitRange(Struct, frozen=True):
    """An honest estimate: eight of ten people wait no less than `low_s` and no more than `high_s`."""

    low_s: int
    high_s: int


class Place(Struct, frozen=True):
    """One person's place, as of now."""

    show_id: int
    opening: int
    number: int  # the entrant number: dense, in the order of joining, from 0
    account_id: int
    state: PlaceState
    position: int | None  # in the order, from 0; None before the draw
    ahead: int | None  # people between them and the front; None before the draw
    has_missed_turn: bool  # has not responded once, and fell back; the next time is the last
    turn_ends_at: datetime | None  # while CALLED
    window_ends_at: datetime | None  # while INSIDE
    wait: WaitRange | None  # while WAITING, once people have been called
    poll_after_s: int  # when to look again
    token: str  # the signed place: proves the number later, offline too


class Joiner(Struct, frozen=True):
    """Who joins: an account, or a browser (a guest) that has done some work for it."""

    account_id: int
    is_guest: bool = False
    party: str = ""  # the address range, for guests
    proof: str = ""  # of work, for guests: web/puzzles.py


class Joined(Struct, frozen=True):
    place: Place
    is_new: bool  # False: the same person had this place already


class Admission(Struct, frozen=True):
    """A redeemed turn. Holds of this show carry the text in the header `Admission`, pages in a cookie."""

    show_id: int
    opening: int
    account_id: int
    ends_at: datetime
    text: str
