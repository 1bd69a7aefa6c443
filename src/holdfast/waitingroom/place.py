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


class WayIn(StrEnum):
    """By which way a person came to their turn. Others, such as a presale code, can be added."""

    QUEUE = "queue"  # of turns and passes from before ways had names
    DRAW = "draw"  # by their place in the draw
    LATE = "late"  # joined after it
    ARRIVAL = "arrival"  # in the order of arrival: the room has no draw


class WaitRange(Struct, frozen=True):
    """From the people ahead and the fastest and the slowest rate of the last minutes, widened by 30 %.

    No share of people is promised: rates change. `calibration` of the organiser's page counts how many of the
    estimates came true.
    """

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


class LeftWaiting(Struct, frozen=True):
    """A person who still waited when everything was sold."""

    account_id: int
    number: int
    ahead: int  # of those people, how many were nearer to the front, at most


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
    way_in: WayIn
