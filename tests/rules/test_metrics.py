"""Measures of the whole house end when the job that makes them has moved to another machine."""

from holdfast.engines.metrics import MEASURED_S, Meter


def test_a_measure_that_no_job_renews_ends() -> None:
    now = [1000.0]
    meter = Meter(lambda: now[0])
    meter.measure("facts_dead", 5, group="reports")
    meter.set("viewers", 3)
    before = meter.text().decode()

    now[0] += MEASURED_S + 1
    after = meter.text().decode()

    assert 'holdfast_facts_dead{group="reports"} 5.0' in before
    assert "facts_dead" not in after
    assert "holdfast_viewers 3.0" in after
