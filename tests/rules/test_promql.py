"""The evaluator of alert expressions that the game day uses without Prometheus."""

import pytest

from tests.support.promql import evaluate

TEXT = """\
# TYPE holdfast_clock_ahead_seconds gauge
holdfast_clock_ahead_seconds{engine="ledger"} -0.1
holdfast_clock_ahead_seconds{engine="holds"} -5.0
# TYPE holdfast_backup_age_seconds gauge
holdfast_backup_age_seconds 90.0
# TYPE holdfast_backup_age_max_seconds gauge
holdfast_backup_age_max_seconds 60.0
"""


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("max by (engine) (abs(holdfast_clock_ahead_seconds)) > 0.5", [5.0]),
        ("max(holdfast_clock_ahead_seconds) > 0", []),
        ("min by (instance, engine) (holdfast_clock_ahead_seconds) < 0", [-0.1, -5.0]),
        ("max(holdfast_backup_age_seconds) > scalar(max(holdfast_backup_age_max_seconds))", [90.0]),
        ("max(holdfast_backup_age_seconds) > scalar(max(holdfast_none))", []),
        ("max(holdfast_none) > 0 or absent(holdfast_none)", [1.0]),
        ("max(holdfast_none) > 0 or absent(holdfast_backup_age_seconds)", []),
    ],
)
def test_an_expression_is_true_for_these_series(expression: str, values: list[float]) -> None:
    assert list(evaluate(expression, TEXT).values()) == values


def test_a_form_that_is_not_known_is_refused() -> None:
    with pytest.raises(AssertionError):
        evaluate("rate(holdfast_backup_age_seconds[5m]) > 0", TEXT)
