"""Which part of an installation limits it, from its metrics; go or no-go (R38)."""

from dataclasses import replace

import pytest

from holdfast.simulation.bottleneck import (
    Level,
    find_bottleneck,
    is_saturated,
    judge,
    parse_metrics,
    subtract,
)
from holdfast.simulation.rehearsal import check_address, steps

TEXT = """\
# HELP holdfast_gateway_seconds time of a call
# TYPE holdfast_gateway_seconds histogram
holdfast_gateway_seconds_bucket{le="0.001",step="charge"} 0.0
holdfast_gateway_seconds_sum{step="charge"} 1.5
holdfast_gateway_seconds_sum{step="look_up"} 0.5
holdfast_process_cpu_seconds_total{process="web"} 7.25
holdfast_viewers 3.0
"""
LEVEL = Level(
    at_once=8,
    seconds=2.0,
    purchases=100,
    steps={"look": [0.01] * 100, "hold": [0.02] * 100, "pay": [0.1] * 100},
    failures={},
    used={"holdfast_gateway_seconds_sum": 1.0, "holdfast_postgres_use_seconds_sum": 2.0},
)


def test_metrics_are_added_up_over_their_labels() -> None:
    found = parse_metrics(TEXT)

    assert found["holdfast_gateway_seconds_sum"] == 2.0
    assert found['holdfast_process_cpu_seconds_total{process="web"}'] == 7.25
    assert subtract(found, {"holdfast_viewers": 1.0})["holdfast_viewers"] == 2.0


@pytest.mark.parametrize(
    ("used", "name"),
    [
        ({"holdfast_gateway_seconds_sum": 9.0}, "gateway"),
        ({"holdfast_postgres_wait_seconds_sum": 5.0}, "database pool"),
        # Of one busy worker with six connections, three in use: more of them would change nothing.
        ({"holdfast_postgres_wait_seconds_sum": 2.2}, "web workers"),
        ({"holdfast_hold_batch_seconds_sum": 1.2, "holdfast_hold_batch_seconds_count": 100}, "Redis"),
        ({}, "web workers"),
    ],
)
def test_the_place_where_a_purchase_spends_its_time(used: dict[str, float], name: str) -> None:
    level = replace(LEVEL, used={**LEVEL.used, **used})

    assert find_bottleneck(level).name == name


class TestJudgement:
    def test_seventy_percent_of_the_highest_rate_is_safe(self) -> None:
        found = judge([LEVEL], wanted_per_s=30, buying_share=0.5)

        assert found.purchases_per_s == 50
        assert found.safe_admission_per_s == pytest.approx(70)
        assert found.is_go

    def test_more_is_wanted_than_is_safe(self) -> None:
        found = judge([LEVEL], wanted_per_s=80, buying_share=0.5)

        assert not found.is_go
        assert found.reasons == ["70.0 people per second are safe, 80.0 are wanted"]

    def test_failed_purchases_and_slow_holds_are_reasons(self) -> None:
        slow = replace(LEVEL, steps={**LEVEL.steps, "hold": [3.0] * 100}, failures={"pay 503 busy": 9})

        found = judge([slow], wanted_per_s=1, buying_share=1)

        assert not found.is_go
        assert [reason.split(":")[0] for reason in found.reasons] == [
            "9 of 109 purchases failed",
            "a hold takes 3.0 s at the 99th percentile, 2 s are allowed",
        ]

    def test_the_limit_is_reached_when_more_buyers_buy_no_more(self) -> None:
        assert is_saturated([LEVEL, replace(LEVEL, at_once=16, purchases=104)])
        assert not is_saturated([LEVEL, replace(LEVEL, at_once=16, purchases=190)])
        assert not is_saturated([LEVEL])


def test_buyers_are_doubled_up_to_the_limit() -> None:
    assert list(steps(1, 10)) == [1, 2, 4, 8, 10]
    assert list(steps(16, 16)) == [16]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:80"])
def test_this_machine_needs_no_flag(url: str) -> None:
    check_address(url, is_test_installation=False)


def test_another_machine_is_possible_with_the_flag() -> None:
    check_address("https://test.example.com", is_test_installation=True)
