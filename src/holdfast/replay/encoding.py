"""The events of a sale as bytes: some five of them for a change of two seats. No I/O.

    event   varint  milliseconds since the event before
            varint  count * 8 + kind
            …       `count` entries
    0–3     seats are free, held, booked, blocked:  zigzag varint  first seat, from the end of the run before
                                                    varint         seats of the run, less one
    4       seats were refused:                     zigzag varint  seat, from the seat before
                                                    varint         how often
    5       `count` holds were refused; no entries
    6       the queue, two entries:                 varint         people who wait
                                                    varint         people inside

A varint has seven bits per byte, the lowest first; the highest bit says that more follow. Zigzag makes small
numbers of -1, 1, -2: 1, 2, 3. site/static/js/replay/tape.js reads it.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

KIND_BITS = 3


class EventKind(IntEnum):
    FREE = 0
    HELD = 1
    BOOKED = 2
    BLOCKED = 3
    WANTED = 4
    REFUSED = 5
    QUEUE = 6


class ReplayEvent(NamedTuple):
    at_ms: int
    kind: EventKind
    values: tuple[int, ...]  # seats; of WANTED: seat, times, …; of QUEUE: waiting, inside; of REFUSED: holds


class EventWriter:
    def __init__(self) -> None:
        self.data = bytearray()
        self._at_ms = 0

    def add_seats(self, at_ms: int, kind: EventKind, seats: Sequence[int]) -> None:
        """`seats` in ascending order."""
        if not (runs := _runs(seats)):
            return
        self._begin(at_ms, kind, len(runs))
        end = 0
        for first, length in runs:
            _write(self.data, _zigzag(first - end))
            _write(self.data, length - 1)
            end = first + length

    def add_demand(self, at_ms: int, refused: int, wanted: Sequence[tuple[int, int]]) -> None:
        """`wanted`: seats and how often, in ascending order."""
        self._begin(at_ms, EventKind.REFUSED, refused)
        if wanted:
            self._begin(at_ms, EventKind.WANTED, len(wanted))
            before = 0
            for seat, times in wanted:
                _write(self.data, _zigzag(seat - before))
                _write(self.data, times)
                before = seat

    def add_queue(self, at_ms: int, waiting: int, inside: int) -> None:
        self._begin(at_ms, EventKind.QUEUE, 2)
        _write(self.data, waiting)
        _write(self.data, inside)

    def _begin(self, at_ms: int, kind: EventKind, count: int) -> None:
        assert at_ms >= self._at_ms, "events are in the order of their times"
        _write(self.data, at_ms - self._at_ms)
        _write(self.data, count << KIND_BITS | kind)
        self._at_ms = at_ms


def decode(data: bytes) -> Iterator[ReplayEvent]:
    """What a player does."""
    numbers = _read(data)
    at_ms = 0
    for passed_ms in numbers:
        at_ms += passed_ms
        head = next(numbers)
        kind, count = EventKind(head & (1 << KIND_BITS) - 1), head >> KIND_BITS
        values: list[int] = []
        place = 0
        for _ in range(0 if kind is EventKind.REFUSED else count):
            first = next(numbers)
            if kind is EventKind.QUEUE:
                values.append(first)
                continue
            place += (first >> 1) ^ -(first & 1)
            more = next(numbers)
            if kind is EventKind.WANTED:
                values += (place, more)
            else:
                values += range(place, place + more + 1)
                place += more + 1
        yield ReplayEvent(at_ms, kind, (count,) if kind is EventKind.REFUSED else tuple(values))


def _runs(seats: Sequence[int]) -> list[tuple[int, int]]:
    """First seat and length of each stretch of consecutive seats."""
    runs: list[tuple[int, int]] = []
    for seat in seats:
        if runs and sum(runs[-1]) == seat:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((seat, 1))
    return runs


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _write(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _read(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
