"""From the moves of bookings to changes of seats, in the order in which they happened. No I/O.

    moves of a booking, its seats now ──add_booking()──► changes: these seats are free, held, booked, blocked

A booking's seats are known as they are now. A merge brought some and a reduction took some: they are undone
from the last move back to the first.

Changes are ordered by the id of the move, not by its time. The time is the begin of the transaction: a hold
that waited for the end of another one has the earlier time and the later id.
"""

from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

HOLD, MERGE, REDUCE, UNBLOCK = "hold", "merge", "reduce", "unblock"


class SeatState(IntEnum):
    FREE = 0
    HELD = 1
    BOOKED = 2
    BLOCKED = 3


STATES = {
    "held": SeatState.HELD,
    "paying": SeatState.HELD,
    "confirmed": SeatState.BOOKED,
    "blocked": SeatState.BLOCKED,
    "expired": SeatState.FREE,
    "cancelled": SeatState.FREE,
    "refunded": SeatState.FREE,
}  # not failed: the seats were another buyer's by then


class Move(NamedTuple):
    id: int
    move: str
    state: str  # of the booking, after it
    at_us: int
    seats: Sequence[int] | None  # that a merge brought or a reduction took; None: not recorded


class SeatChange(NamedTuple):
    at_us: int
    move: str
    state: SeatState
    seats: Sequence[int]  # in ascending order


class SeatChanges:
    """Many of them in little memory: 25 bytes each, and 4 per seat."""

    def __init__(self) -> None:
        self._ids, self._times = array("q"), array("q")
        self._moves, self._states = array("B"), array("B")
        self._ends = array("Q")  # in _seats
        self._seats = array("I")
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._ids)

    def add_booking(self, moves: Sequence[Move], seats: Sequence[int]) -> None:
        """All moves of one booking, in order; its seats as they are now."""
        before: SeatState | None = None
        for move, moved in zip(moves, _seats_by_move(moves, seats), strict=True):
            if move.move == REDUCE:
                name = UNBLOCK if move.state == "blocked" else REDUCE
                self._add(move._replace(move=name), SeatState.FREE, moved)
                continue
            state = STATES.get(move.state)
            if state is not None and (state is not before or move.move == MERGE):
                self._add(move, state, moved)
            before = state if state is not None else before

    @property
    def first_hold_us(self) -> int | None:
        """Blocks may be much older."""
        if HOLD not in self._names:
            return None
        hold = self._names.index(HOLD)
        return min(at_us for at_us, move in zip(self._times, self._moves, strict=True) if move == hold)

    @property
    def last_us(self) -> int | None:
        return max(self._times, default=None)

    def in_order(self) -> Iterator[SeatChange]:
        """Each at its time, or at that of a change before it if that was later."""
        latest_us = 0
        for place in sorted(range(len(self._ids)), key=self._ids.__getitem__):
            latest_us = max(latest_us, self._times[place])
            start = self._ends[place - 1] if place else 0
            yield SeatChange(
                latest_us,
                self._names[self._moves[place]],
                SeatState(self._states[place]),
                self._seats[start : self._ends[place]],
            )

    def _add(self, move: Move, state: SeatState, seats: Sequence[int]) -> None:
        if move.move not in self._names:
            self._names.append(move.move)
        self._ids.append(move.id)
        self._times.append(move.at_us)
        self._moves.append(self._names.index(move.move))
        self._states.append(state)
        self._seats.extend(seats)
        self._ends.append(len(self._seats))


def _seats_by_move(moves: Sequence[Move], seats: Sequence[int]) -> list[Sequence[int]]:
    """The seats that each move is about."""
    found: list[Sequence[int]] = []
    current = sorted(seats)
    for move in reversed(moves):
        if move.move == REDUCE:
            moved = sorted(move.seats or ())
            current = sorted({*current, *moved})
        elif move.move == MERGE and move.seats is not None:
            moved = sorted(move.seats)
            current = sorted(set(current) - set(moved))
        else:
            moved = current
        found.append(moved)
    return found[::-1]
