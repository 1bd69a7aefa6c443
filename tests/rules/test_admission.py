"""How many people are called, and the waits that they are shown (R27)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.waitingroom.admission import Measured, count_next, next_rate
from holdfast.waitingroom.waits import (
    LogPoint,
    calibrate,
    choose_poll_s,
    estimate_wait,
    measure_rates,
    spread_polls_s,
)

measured = st.builds(
    Measured,
    inside=st.integers(0, 2000),
    waiting=st.integers(0, 2_000_000),
    seats_left=st.integers(0, 60_000),
    since_call_s=st.floats(0, 3600),
    ledger_ms=st.floats(0, 5000),
)
CALM = Measured(inside=0, waiting=10_000, seats_left=10_000, since_call_s=1.0, ledger_ms=5.0)


class TestCountNext:
    @given(measured, st.floats(0, 100_000), st.integers(1, 1000))
    def test_never_more_than_the_cap_the_stock_and_the_people(
        self, room: Measured, rate: float, cap: int
    ) -> None:
        called = count_next(room, rate, cap)

        assert called >= 0
        if called:
            assert room.inside + called <= cap
            assert room.inside + called <= 2 * room.seats_left
            assert called <= room.waiting

    @pytest.mark.parametrize(
        ("rate", "since_s", "expected"), [(600, 1, 10), (600, 60, 20), (6, 1, 0), (6, 10, 1)]
    )
    def test_by_rate(self, rate: float, since_s: float, expected: int) -> None:
        """A pause is not made up for by a rush; a slow rate adds up to a person."""
        room = Measured(inside=0, waiting=100, seats_left=100, since_call_s=since_s, ledger_ms=5)

        assert count_next(room, rate, 1000) == expected

    def test_sold_out_calls_no_person(self) -> None:
        room = Measured(inside=0, waiting=100, seats_left=0, since_call_s=60, ledger_ms=5)

        assert count_next(room, 600, 1000) == 0


class TestRate:
    def test_it_grows_to_its_maximum_and_gives_way_to_a_slow_ledger(self) -> None:
        slow = Measured(inside=0, waiting=10_000, seats_left=10_000, since_call_s=1.0, ledger_ms=900.0)
        rate = 0.0
        for _ in range(20):
            rate = next_rate(rate, 600, CALM)
        assert rate == 600
        for _ in range(20):
            rate = next_rate(rate, 600, slow)

        assert rate == 30


class TestWaits:
    def test_before_the_first_call_there_is_no_estimate(self) -> None:
        assert estimate_wait(100, []) is None
        assert measure_rates(LogPoint(100.0, 0), [LogPoint(0.0, 0)]) == []

    @given(st.integers(0, 2_000_000), st.lists(st.floats(0.01, 1000), min_size=1, max_size=3))
    def test_the_range_contains_what_the_measured_rates_give(self, ahead: int, rates: list[float]) -> None:
        wait = estimate_wait(ahead, rates)

        assert wait is not None
        assert wait.low_s <= ahead / max(rates) <= ahead / min(rates) <= wait.high_s

    def test_people_near_the_front_look_often_and_all_together_not_too_often(self) -> None:
        assert choose_poll_s(estimate_wait(10, [1.0])) == 2
        assert choose_poll_s(estimate_wait(10_000, [1.0])) == 60
        assert [spread_polls_s(waiting) for waiting in (10, 20_000, 2_000_000)] == [5, 20, 60]

    def test_a_steady_queue_is_well_calibrated_and_a_stopped_one_is_not(self) -> None:
        steady = [LogPoint(float(t), t * 10) for t in range(600)]
        stopped = [LogPoint(float(t if t < 100 else t + 3000), t * 10) for t in range(200)]

        good, bad = calibrate(steady), calibrate(stopped)

        assert good.estimates == good.within > 1000
        assert bad.within < bad.estimates * 0.7
