"""How many people are called, and the waits that they are shown (R27)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engines.metrics import BUCKETS_S
from holdfast.waitingroom.admission import (
    HOLD_SLOW_S,
    Brake,
    Measured,
    WebLoad,
    count_next,
    find_brake,
    next_rate,
)
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
BUSY_BUT_WELL = WebLoad(
    processes=4, holds=1000, slow_holds=100, refused=10, payments=204, payments_max=256
)  # at every limit, and above none
CALM = Measured(
    inside=0, waiting=10_000, seats_left=10_000, since_call_s=1.0, ledger_ms=5.0, load=BUSY_BUT_WELL
)


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


class TestBrake:
    """Each measured input alone holds admission back; none of them is missed, and none is invented."""

    def test_a_sale_at_its_limits_is_not_held_back(self) -> None:
        assert find_brake(CALM) is None

    @pytest.mark.parametrize(
        ("load", "brake"),
        [
            ({"refused": 11}, Brake.REFUSALS),
            ({"slow_holds": 101}, Brake.HOLDS),
            ({"payments": 205}, Brake.PAYMENTS),
            ({"silent": 1}, Brake.SILENCE),
            ({"processes": 0}, Brake.UNMEASURED),
        ],
    )
    def test_one_more_than_the_limit(self, load: dict[str, int], brake: Brake) -> None:
        assert find_brake(replace(CALM, load=replace(BUSY_BUT_WELL, **load))) is brake

    def test_a_slow_ledger(self) -> None:
        assert find_brake(replace(CALM, ledger_ms=250.0)) is None
        assert find_brake(replace(CALM, ledger_ms=251.0)) is Brake.LEDGER

    def test_two_events_of_few_holds_are_no_trend_and_three_are(self) -> None:
        two = WebLoad(processes=1, holds=2, slow_holds=2, refused=2, payments_max=64)

        assert find_brake(replace(CALM, load=two)) is None
        assert find_brake(replace(CALM, load=replace(two, slow_holds=3, holds=3))) is Brake.HOLDS
        assert find_brake(replace(CALM, load=replace(two, refused=3))) is Brake.REFUSALS

    def test_refusals_without_a_single_hold_count(self) -> None:
        """Connections that are refused are not holds."""
        load = WebLoad(processes=1, refused=3, payments_max=64)

        assert find_brake(replace(CALM, load=load)) is Brake.REFUSALS

    def test_no_report_is_not_a_calm_sale(self) -> None:
        unmeasured = replace(CALM, load=WebLoad())

        assert find_brake(unmeasured) is Brake.UNMEASURED
        assert find_brake(Measured(0, 10_000, 10_000, 1.0, 5.0)) is Brake.UNMEASURED

    def test_what_halves_the_rate_is_stronger_than_what_stops_its_growth(self) -> None:
        load = replace(BUSY_BUT_WELL, silent=1, slow_holds=500)

        assert find_brake(replace(CALM, load=load)) is Brake.HOLDS

    def test_a_slow_hold_is_one_that_the_meter_can_tell(self) -> None:
        assert HOLD_SLOW_S in BUCKETS_S


class TestRate:
    @pytest.mark.parametrize("brake", [brake for brake in Brake if brake is not Brake.SILENCE])
    def test_it_grows_to_its_maximum_and_gives_way_to_a_brake(self, brake: Brake) -> None:
        rate, grown = 0.0, []
        for _ in range(20):
            rate = next_rate(rate, 600, None)
            grown.append(rate)
        assert grown[:2] == [60, 120]
        assert rate == 600
        assert next_rate(rate, 600, brake) == 300
        for _ in range(20):
            rate = next_rate(rate, 600, brake)

        assert rate == 30

    def test_it_stays_while_a_process_is_silent(self) -> None:
        assert next_rate(240, 600, Brake.SILENCE) == 240
        assert next_rate(0, 600, Brake.SILENCE) == 30

    @pytest.mark.parametrize("brake", [None, *Brake])
    def test_a_maximum_that_was_lowered_holds_at_once(self, brake: Brake | None) -> None:
        assert next_rate(600, 100, brake) <= 100


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
