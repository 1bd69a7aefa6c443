"""The lab's oracle counts what it should, and its page shows the results that are stored (R42)."""

import pytest

from lab.__main__ import RESULTS
from lab.contest.messages import Event, What
from lab.contest.oracle import Verdict, jain_index, judge
from lab.page import PAGE, render_page
from lab.results_file import load_results
from lab.strategies import NAMES, find_strategy
from tests.tidy.tree import ROOT

STRATEGY_LINES_MAX = 120


def history(*answers: tuple[float, int, What]) -> list[Event]:
    """Of seat 7: when, to which client, what. A hold is promised for ten seconds."""
    return [
        Event(at_s, client, 7, what, at_s + 10 if what == "held" else 0.0) for at_s, client, what in answers
    ]


class TestTheOracle:
    def test_one_sale_of_a_seat_is_in_order(self) -> None:
        found = judge(history((0, 1, "held"), (1, 2, "refused"), (2, 1, "sold")), {7: 1})

        assert found == Verdict(double_sales=0, lost_holds=0, lost_sales=0, sales=1, paid_for_nothing=0)

    def test_a_second_acknowledged_sale_is_one_too_many(self) -> None:
        answers = history((0, 1, "held"), (11, 2, "held"), (12, 2, "sold"), (13, 1, "sold"))

        assert judge(answers, {7: 2}).double_sales == 1

    def test_a_second_row_in_the_ledger_counts_even_if_its_client_got_no_answer(self) -> None:
        assert judge(history((0, 1, "held"), (1, 1, "sold")), {7: 2}).double_sales == 1

    def test_a_sale_that_the_ledger_does_not_have_is_lost(self) -> None:
        assert judge(history((0, 1, "held"), (1, 1, "sold")), {}).lost_sales == 1

    def test_a_refused_confirmation_within_the_promised_time_is_a_lost_hold(self) -> None:
        found = judge(history((0, 1, "held"), (9, 1, "lost")), {})

        assert (found.lost_holds, found.paid_for_nothing) == (1, 1)

    def test_after_the_promised_time_it_is_not(self) -> None:
        found = judge(history((0, 1, "held"), (11, 1, "lost")), {})

        assert (found.lost_holds, found.paid_for_nothing) == (0, 1)

    def test_a_hold_that_is_gone_before_the_payment_costs_no_money(self) -> None:
        found = judge(history((0, 1, "held"), (9, 1, "lapsed")), {})

        assert (found.lost_holds, found.paid_for_nothing) == (1, 0)

    def test_a_hold_is_lost_if_another_client_buys_the_seat_meanwhile(self) -> None:
        assert judge(history((0, 1, "held"), (1, 2, "held"), (2, 2, "sold")), {7: 1}).lost_holds == 1

    def test_a_released_hold_is_not_lost(self) -> None:
        answers = history((0, 1, "held"), (1, 1, "released"), (2, 2, "held"), (3, 2, "sold"))

        assert judge(answers, {7: 1}).lost_holds == 0


@pytest.mark.parametrize(
    ("shares", "index"), [([3, 3, 3, 3], 1.0), ([8, 0, 0, 0], 0.25), ([], 1.0), ([0, 0], 1.0)]
)
def test_the_jain_index_is_one_for_equal_shares(shares: list[float], index: float) -> None:
    assert jain_index(shares) == index


def test_the_page_shows_the_stored_results() -> None:
    text = PAGE.read_text()

    assert render_page(text, load_results(RESULTS)) == text, (
        "run `make lab`, or take its results as they were"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_fits_on_a_page_and_says_how_it_fails(name: str) -> None:
    module = ROOT / (find_strategy(name).__module__.replace(".", "/") + ".py")
    text = module.read_text()

    assert len(text.splitlines()) <= STRATEGY_LINES_MAX
    for part in ("How it works.", "How it fails.", "Right for:"):
        assert part in text
