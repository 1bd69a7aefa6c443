"""A sale as a replay: moves become changes of seats, and bytes that are read as the same changes (R33)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.wanted import CALLS_MAX, MANY, SEATS_COUNTED_MAX, SHOWS_COUNTED_MAX, WantedSeats
from holdfast.replay.changes import Move, SeatChange, SeatChanges, SeatState
from holdfast.replay.encoding import EventKind, EventWriter, ReplayEvent, decode
from holdfast.replay.sale import (
    DemandPoint,
    QueueLog,
    QueuePoint,
    ReplayedSale,
    SaleHistory,
    build_sale,
)

OPENS_AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
OPENS_US = int(OPENS_AT.timestamp()) * 1_000_000
S, MS = 1_000_000, 1_000
FREE, HELD, BOOKED, BLOCKED = SeatState


def changes_of(*bookings: tuple[Sequence[Move], Sequence[int]]) -> SeatChanges:
    changes = SeatChanges()
    for moves, seats in bookings:
        changes.add_booking(moves, seats)
    return changes


def move(id: int, name: str, state: str, at_us: int = 0, seats: Sequence[int] | None = None) -> Move:
    return Move(id, name, state, OPENS_US + at_us, seats)


def seen(changes: SeatChanges) -> list[tuple[SeatState, list[int]]]:
    return [(change.state, list(change.seats)) for change in changes.in_order()]


def sale_of(
    changes: SeatChanges, seats: int = 10, demand: Sequence[DemandPoint] = (), queue: QueueLog | None = None
) -> ReplayedSale:
    return build_sale(
        SaleHistory(seats=seats, opens_at=OPENS_AT, changes=changes, demand=demand, queue=queue or QueueLog())
    )


class TestChanges:
    def test_a_booking_that_is_paid_for_is_held_and_booked(self) -> None:
        """A charge that is declined and tried again changes no seat."""
        moves = [
            move(1, "hold", "held"),
            move(2, "pay", "paying"),
            move(3, "decline", "held"),
            move(4, "pay", "paying"),
            move(5, "confirm", "confirmed"),
            move(6, "refund", "refunded"),
        ]

        assert seen(changes_of((moves, [3, 2]))) == [(HELD, [2, 3]), (BOOKED, [2, 3]), (FREE, [2, 3])]

    def test_late_money_that_finds_its_seats_sold_changes_none(self) -> None:
        late = [move(1, "hold", "held"), move(2, "expire", "expired"), move(5, "fail", "failed")]
        other = [move(3, "hold", "held"), move(4, "confirm", "confirmed")]

        assert seen(changes_of((late, [1]), (other, [1])))[-1] == (BOOKED, [1])

    def test_the_order_is_that_of_the_ids_and_time_never_goes_back(self) -> None:
        """The second hold began first and waited for the end of the first one."""
        first = [move(1, "hold", "held", 1 * S), move(2, "expire", "expired", 9 * S)]
        second = [move(3, "hold", "held", 8 * S)]

        found = list(changes_of((second, [4]), (first, [4])).in_order())

        assert [change.state for change in found] == [HELD, FREE, HELD]
        assert [change.at_us - OPENS_US for change in found] == [1 * S, 9 * S, 9 * S]

    def test_seats_that_were_merged_or_given_back_are_shown_where_they_were(self) -> None:
        to = [
            move(1, "hold", "held"),
            move(4, "merge", "held", seats=[5, 6]),
            move(5, "confirm", "confirmed"),
            move(6, "reduce", "confirmed", seats=[1, 5]),
        ]
        added = [move(2, "hold", "held"), move(3, "cancel", "cancelled")]

        assert seen(changes_of((to, [2, 6]), (added, [5, 6]))) == [
            (HELD, [1, 2]),
            (HELD, [5, 6]),
            (FREE, [5, 6]),
            (HELD, [5, 6]),
            (BOOKED, [1, 2, 5, 6]),
            (FREE, [1, 5]),
        ]

    def test_a_merge_without_its_seats_ends_with_all_of_them_held(self) -> None:
        """It is older than the column that records them."""
        to = [move(1, "hold", "held"), move(4, "merge", "held")]
        added = [move(2, "hold", "held"), move(3, "cancel", "cancelled")]

        assert seen(changes_of((to, [1, 5]), (added, [5])))[-1] == (HELD, [1, 5])

    def test_a_block_that_is_released_in_parts(self) -> None:
        moves = [
            move(1, "block", "blocked"),
            move(2, "reduce", "blocked", seats=[7]),
            move(3, "unblock", "cancelled"),
        ]

        assert seen(changes_of((moves, [8, 9]))) == [(BLOCKED, [7, 8, 9]), (FREE, [7]), (FREE, [8, 9])]
        assert sale_of(changes_of((moves, [8, 9]))).figures.returned == 0


seats_of_hall = st.lists(st.integers(0, 70_000), min_size=1, max_size=12, unique=True).map(sorted)
events = st.one_of(
    st.tuples(
        st.sampled_from([EventKind.FREE, EventKind.HELD, EventKind.BOOKED, EventKind.BLOCKED]), seats_of_hall
    ),
    st.tuples(st.just(EventKind.WANTED), seats_of_hall),
    st.tuples(st.just(EventKind.QUEUE), st.tuples(st.integers(0, 2**40), st.integers(0, 2**20))),
)


class TestEncoding:
    @given(st.lists(st.tuples(st.integers(0, 2**33), events), max_size=40))
    def test_what_is_written_is_read(self, script: list[tuple[int, tuple[EventKind, Sequence[int]]]]) -> None:
        writer, at_ms, expected = EventWriter(), 0, []
        for passed_ms, (kind, values) in script:
            at_ms += passed_ms
            if kind is EventKind.QUEUE:
                writer.add_queue(at_ms, *values)
            elif kind is EventKind.WANTED:
                writer.add_demand(at_ms, 3, [(seat, seat + 1) for seat in values])
                expected.append(ReplayEvent(at_ms, EventKind.REFUSED, (3,)))
                values = [number for seat in values for number in (seat, seat + 1)]
            else:
                writer.add_seats(at_ms, kind, values)
            expected.append(ReplayEvent(at_ms, kind, tuple(values)))

        assert list(decode(bytes(writer.data))) == expected

    def test_two_neighbours_of_a_stadium_take_six_bytes(self) -> None:
        writer = EventWriter()
        for place in range(1000):
            writer.add_seats(place * 20, EventKind.HELD, [40_000 + place, 40_001 + place])

        assert len(writer.data) <= 6 * 1000

    def test_time_does_not_go_back(self) -> None:
        writer = EventWriter()
        writer.add_queue(5, 1, 1)
        with pytest.raises(AssertionError):
            writer.add_queue(4, 1, 1)


class TestFigures:
    def test_a_sale_with_everything(self) -> None:
        paid = [move(2, "hold", "held", 2 * S), move(5, "confirm", "confirmed", 30 * S)]
        other = [move(3, "hold", "held", 2 * S + 5), move(7, "confirm", "confirmed", 60 * S)]
        lapsed = [move(4, "hold", "held", 3 * S), move(6, "expire", "expired", 50 * S)]
        block = [move(1, "block", "blocked", -86_400 * S)]
        changes = changes_of((paid, [0, 1, 2]), (other, [3]), (lapsed, [5]), (block, [8, 9]))
        demand = [DemandPoint(OPENS_US + 10 * S, 7, ((0, 5), (4, 2)))]
        queue = QueueLog([QueuePoint(OPENS_US, 40, 0), QueuePoint(OPENS_US + 20 * S, 12, 9)], 95)

        figures = sale_of(changes, demand=demand, queue=queue).figures

        assert (figures.free, figures.held, figures.sold, figures.blocked) == (4, 0, 4, 2)
        assert figures.began_at == OPENS_AT
        assert figures.first_sale_at == OPENS_AT + timedelta(seconds=30)
        assert figures.share_sold_at == {
            25: OPENS_AT + timedelta(seconds=30),
            50: OPENS_AT + timedelta(seconds=60),
            75: None,
            100: None,
        }
        assert (figures.holds, figures.peak_holds) == (3, 2)
        assert figures.peak_at == OPENS_AT + timedelta(seconds=2)
        assert (figures.lapsed, figures.refused) == (1, 7)
        assert figures.most_wanted[0] == (0, 6)
        assert (figures.queue_max, figures.longest_wait_s) == (40, 95)

    def test_what_was_before_the_sale_is_there_when_it_begins(self) -> None:
        block = [move(1, "block", "blocked", -86_400 * S)]
        hold = [move(2, "hold", "held", 1500 * MS)]

        found = list(decode(sale_of(changes_of((block, [9]), (hold, [0]))).events))

        assert found == [ReplayEvent(0, EventKind.BLOCKED, (9,)), ReplayEvent(1500, EventKind.HELD, (0,))]

    def test_a_silence_of_days_before_the_first_hold_is_not_shown(self) -> None:
        hold = [move(1, "hold", "held", 86_400 * S)]

        assert sale_of(changes_of((hold, [0]))).figures.began_at == OPENS_AT + timedelta(days=1)

    def test_nothing_happened_yet(self) -> None:
        sale = sale_of(SeatChanges())

        assert (sale.events, sale.length_ms, sale.figures.free) == (b"", 0, 10)
        assert set(sale.figures.share_sold_at.values()) == {None}

    def test_a_seat_that_the_hall_does_not_have_is_left_out(self) -> None:
        """The layout is read a moment before the moves."""
        changes = changes_of(([move(1, "hold", "held", S)], [9, 10]), ([move(2, "hold", "held", S)], [11]))

        sale = sale_of(changes, demand=[DemandPoint(OPENS_US + 2 * S, 1, ((10, 3),))])

        assert [event.values for event in decode(sale.events)] == [(9,), (1,)]
        assert sale.figures.held == 1

    @given(st.data())
    def test_the_states_after_all_events_are_the_counts(self, data: st.DataObject) -> None:
        """A sequential sale: seats are held, then booked or freed, in any order of bookings."""
        states = bytearray(20)
        bookings = []
        for number in range(data.draw(st.integers(1, 30))):
            free = [seat for seat in range(20) if not states[seat]]
            if not free:
                break
            seats = data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=4, unique=True))
            end = data.draw(st.sampled_from([("expire", "expired", FREE), ("confirm", "confirmed", BOOKED)]))
            first = move(2 * number, "hold", "held", number * S)
            bookings.append(([first, move(2 * number + 1, *end[:2], number * S + MS)], seats))
            for seat in seats:
                states[seat] = end[2]

        sale = sale_of(changes_of(*bookings), 20)

        played = bytearray(20)
        for event in decode(sale.events):
            for seat in event.values:
                played[seat] = event.kind
        assert played == states
        assert (sale.figures.sold, sale.figures.free) == (states.count(BOOKED), states.count(FREE))


class TestWantedSeats:
    def test_few_refusals_wait_and_many_do_not(self) -> None:
        wanted = WantedSeats()
        wanted.add(1, (4, 5))
        for _ in range(MANY):
            wanted.add(2, (7,))

        (first,) = wanted.take()
        later = [wanted.take() for _ in range(CALLS_MAX - 1)]

        assert (first[0], first[1].refused, first[1].times) == (2, MANY, {7: MANY})
        assert [len(one) for one in later] == [0] * (CALLS_MAX - 2) + [1]
        assert later[-1][0][1].times == {4: 1, 5: 1}

    def test_everything_goes_when_the_process_stops(self) -> None:
        wanted = WantedSeats()
        wanted.add(1, ())

        assert [(show, demand.refused) for show, demand in wanted.take(all_of_them=True)] == [(1, 1)]
        assert wanted.take(all_of_them=True) == []

    def test_the_memory_is_bounded(self) -> None:
        wanted = WantedSeats()
        wanted.add(1, range(SEATS_COUNTED_MAX + 10))
        for show in range(2, SHOWS_COUNTED_MAX + 10):
            wanted.add(show, (1,))
        wanted.add(1, (3,))

        taken = dict(wanted.take(all_of_them=True))

        assert len(taken) == SHOWS_COUNTED_MAX
        assert sum(len(demand.times) for demand in taken.values()) == SEATS_COUNTED_MAX
        assert (taken[1].refused, taken[1].times[3]) == (2, 2)


def test_a_change_is_found_by_its_fields() -> None:
    """`match` in build_sale takes them by position."""
    assert SeatChange._fields == ("at_us", "move", "state", "seats")
