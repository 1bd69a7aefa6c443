"""A sale as a replay: its events encoded, and its figures. No I/O.

changes of seats, demand, queue ──build_sale()──► ReplayedSale
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge

from msgspec import Struct

from holdfast.replay.changes import HOLD, MERGE, REDUCE, SeatChange, SeatChanges, SeatState
from holdfast.replay.encoding import EventKind, EventWriter

LEAD_S = 600  # from the opening to the first hold: a longer silence is not shown
SHARES = (25, 50, 75, 100)
MOST_WANTED = 5
US = 1_000_000


class DemandPoint(Struct, frozen=True, gc=False):
    """Holds that were refused within some seconds."""

    at_us: int
    refused: int
    wanted: tuple[tuple[int, int], ...]  # seat, times; in ascending order


class QueuePoint(Struct, frozen=True, gc=False):
    at_us: int
    waiting: int
    inside: int


class QueueLog(Struct, frozen=True):
    """What the waiting room of a show has logged."""

    points: Sequence[QueuePoint] = ()
    longest_wait_s: int | None = None


class ReplayFigures(Struct, frozen=True, kw_only=True):
    """The sale in a table: for readers who see no animation."""

    began_at: datetime
    ended_at: datetime
    seats: int
    free: int  # at the end, as held, sold and blocked
    held: int
    sold: int
    blocked: int
    first_sale_at: datetime | None
    share_sold_at: dict[int, datetime | None]  # per cent of all seats that are not blocked
    holds: int
    peak_holds: int  # in one second
    peak_at: datetime | None
    lapsed: int
    released: int
    returned: int  # bookings that were refunded, or gave seats back
    refused: int
    most_wanted: list[tuple[int, int]]  # seat, how often it was taken or refused
    queue_max: int | None
    longest_wait_s: int | None


@dataclass(frozen=True, slots=True)
class ReplayedSale:
    events: bytes
    figures: ReplayFigures
    is_cut: bool  # there were more moves than are shown

    @property
    def length_ms(self) -> int:
        return (self.figures.ended_at - self.figures.began_at) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaleHistory:
    """What is known of a sale."""

    seats: int
    opens_at: datetime
    changes: SeatChanges
    demand: Sequence[DemandPoint]
    queue: QueueLog
    is_cut: bool = False


def build_sale(history: SaleHistory) -> ReplayedSale:
    tally, writer = _Tally(history.seats), EventWriter()
    began_us, ended_us = _find_ends(history)
    for event in _in_order(history.changes.in_order(), history.demand, history.queue.points):
        at_ms = max(0, event.at_us - began_us) // 1000
        match event:
            case SeatChange(_, _, state, seats):
                known = [seat for seat in seats if seat < history.seats]
                tally.add_change(event, known)
                writer.add_seats(at_ms, EventKind(state), known)
            case DemandPoint(_, refused, wanted):
                known_wanted = [one for one in wanted if one[0] < history.seats]
                tally.add_demand(refused, known_wanted)
                writer.add_demand(at_ms, refused, known_wanted)
            case QueuePoint(_, waiting, inside):
                writer.add_queue(at_ms, waiting, inside)
    figures = tally.figures(began_us, ended_us, history.queue)
    return ReplayedSale(bytes(writer.data), figures, history.is_cut)


def _find_ends(history: SaleHistory) -> tuple[int, int]:
    """From the first hold, refusal or person in the queue, or the opening if that was shortly before."""
    others = (history.demand, history.queue.points)
    first = [history.changes.first_hold_us, *(each[0].at_us for each in others if each)]
    last = [history.changes.last_us, *(each[-1].at_us for each in others if each)]
    opens_us = _to_us(history.opens_at)
    first_us = min((at_us for at_us in first if at_us is not None), default=opens_us)
    began_us = opens_us if 0 <= first_us - opens_us <= LEAD_S * US else first_us
    return began_us, max([began_us, *(at_us for at_us in last if at_us is not None)])


def _in_order(
    changes: Iterable[SeatChange], demand: Iterable[DemandPoint], points: Iterable[QueuePoint]
) -> Iterator[SeatChange | DemandPoint | QueuePoint]:
    return merge(changes, demand, points, key=lambda event: event.at_us)


class _Tally:
    """Counts while the events pass."""

    def __init__(self, seats: int) -> None:
        self._states = bytearray(seats)
        self._sold = 0
        self._sold_at = array("q")  # when one, two, … seats were sold for the first time
        self._moves: Counter[str] = Counter()
        self._holds_in: Counter[int] = Counter()  # by second
        self._wanted: Counter[int] = Counter()
        self._refused = 0

    def add_change(self, change: SeatChange, seats: Sequence[int]) -> None:
        self._moves[change.move] += 1
        if change.move == HOLD:
            self._holds_in[change.at_us // US] += 1
            self._wanted.update(seats)
        for seat in seats:
            was, self._states[seat] = self._states[seat], change.state
            self._sold += (change.state is SeatState.BOOKED) - (was == SeatState.BOOKED)
        while self._sold > len(self._sold_at):
            self._sold_at.append(change.at_us)

    def add_demand(self, refused: int, wanted: Sequence[tuple[int, int]]) -> None:
        self._refused += refused
        for seat, times in wanted:
            self._wanted[seat] += times

    def figures(self, began_us: int, ended_us: int, queue: QueueLog) -> ReplayFigures:
        counts = [self._states.count(state) for state in SeatState]
        for_sale = len(self._states) - counts[SeatState.BLOCKED]
        peak = max(self._holds_in.items(), key=lambda each: (each[1], -each[0]), default=None)
        return ReplayFigures(
            began_at=_to_datetime(began_us),
            ended_at=_to_datetime(ended_us),
            seats=len(self._states),
            free=counts[SeatState.FREE],
            held=counts[SeatState.HELD],
            sold=counts[SeatState.BOOKED],
            blocked=counts[SeatState.BLOCKED],
            first_sale_at=self._when_sold(1),
            share_sold_at={share: self._when_sold(-(-for_sale * share // 100)) for share in SHARES},
            holds=self._moves[HOLD],
            peak_holds=peak[1] if peak else 0,
            peak_at=_to_datetime(peak[0] * US) if peak else None,
            lapsed=self._moves["expire"],
            released=self._moves["cancel"] - self._moves[MERGE],  # a merge cancels the second hold
            returned=self._moves["refund"] + self._moves[REDUCE],
            refused=self._refused,
            most_wanted=self._wanted.most_common(MOST_WANTED),
            queue_max=max((point.waiting for point in queue.points), default=None),
            longest_wait_s=queue.longest_wait_s,
        )

    def _when_sold(self, seats: int) -> datetime | None:
        return _to_datetime(self._sold_at[seats - 1]) if 0 < seats <= len(self._sold_at) else None


def _to_us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _to_datetime(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
