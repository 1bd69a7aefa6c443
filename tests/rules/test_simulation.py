"""A simulated on-sale: what can be computed by hand, and what must hold in every sale (R38)."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.simulation import Scenario
from holdfast.simulation.hunters import Hunters
from holdfast.simulation.outcome import clock, summarize
from holdfast.simulation.plot import plot_sale
from holdfast.simulation.population import Population, draw_population, seed_streams
from holdfast.simulation.sale import run_sale

# Four seats, one person per second, everybody alike: 5 s choosing, 10 s checkout, 2 s payment.
ALIKE = Scenario(
    people=10,
    seats=4,
    party="1",
    early=1.0,
    spread=0,
    admit_per_s=1,
    no_show=0,
    choose_s=5,
    checkout_s=10,
    abandon=0,
    payment_s=2,
    decline=0,
    holds_per_s=1_000_000,
)
HALL = Scenario(people=20_000, seats=1_000, bots=0.1)


class TestByHand:
    def test_the_fourth_person_buys_the_last_seat(self) -> None:
        outcome = summarize(run_sale(ALIKE))

        assert outcome.sold_out_s == pytest.approx(3 + 5 + 10 + 2, abs=0.01)
        assert outcome.all_taken_s == pytest.approx(3 + 5, abs=0.01)
        assert outcome.people_with_tickets == 4
        assert outcome.people_without_tickets == 6
        assert outcome.wait_to_ticket_s["p50"] == pytest.approx(18.5, abs=0.01)

    def test_admission_stops_while_no_seat_is_free(self) -> None:
        outcome = summarize(run_sale(ALIKE))

        assert outcome.people_admitted == 9  # in seconds 0 to 8
        assert outcome.wait_to_admission_s["p50"] == 4

    def test_a_gateway_that_takes_one_payment_at_a_time_makes_the_others_wait(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, payments_at_once=1, payment_s=10)))

        assert outcome.sold_out_s == pytest.approx(5 + 10 + 4 * 10, abs=0.01)
        assert outcome.payments_at_once_most == 1

    def test_a_slow_server_decides_one_request_after_the_other(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, holds_per_s=0.5)))

        assert outcome.sold_out_s == pytest.approx(5 + 4 * 2 + 10 + 2, abs=0.01)

    def test_without_a_waiting_room_the_server_is_the_queue(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, holds_per_s=0.5, waiting_room=False)))

        assert outcome.sold_out_s == pytest.approx(5 + 4 * 2 + 10 + 2, abs=0.01)
        assert outcome.wait_to_admission_s == {}

    def test_a_full_inside_waits_for_the_first_to_leave(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, inside_max=1)))

        assert outcome.people_inside_most == 1
        assert outcome.sold_out_s == pytest.approx(4 * (5 + 10 + 2), abs=0.01)

    def test_a_hold_that_is_never_paid_goes_to_another(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, abandon=1.0, window_s=3600)))

        assert outcome.sold_out_s is None
        assert (outcome.seats_unsold, outcome.holds) == (4, 10)
        assert outcome.holds_lapsed == 10

    def test_a_declined_buyer_tries_every_card(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, people=1, decline=1.0, cards=3)))

        assert outcome.payments_declined == 3
        assert outcome.holds_lapsed == 1

    def test_people_who_do_not_come_to_their_turn_cost_their_place_only(self) -> None:
        outcome = summarize(run_sale(replace(ALIKE, no_show=1.0)))

        assert (outcome.people_admitted, outcome.holds, outcome.seats_unsold) == (10, 0, 4)


class TestBots:
    def test_the_draw_leaves_them_their_share_of_the_places(self) -> None:
        outcome = summarize(run_sale(replace(HALL, party="2", early=1.0, inside_max=50)))

        assert outcome.seats_to_bots_share == pytest.approx(0.1, abs=0.04)

    def test_without_a_waiting_room_speed_decides(self) -> None:
        outcome = summarize(run_sale(replace(HALL, waiting_room=False)))

        assert outcome.seats_to_bots_share > 0.9

    def test_a_hunting_bot_tries_twenty_times_as_often_as_a_person(self) -> None:
        """10 s and 0.5 s: of 4 000 freed seats one in 21 goes to a person, if there are as many of them."""
        count = 4_000
        is_bot = np.repeat([False, True], 10 * count)
        people = Population(np.zeros(2 * 10 * count), is_bot, np.ones(2 * 10 * count, dtype=np.uint8))
        hunters = Hunters(Scenario(), people, seed_streams(5))
        hunters.add_many(np.arange(len(people)))

        picked = [hunters.pick(1) for _ in range(count)]

        assert np.mean(~is_bot[picked]) == pytest.approx(1 / 21, abs=0.012)
        assert len(set(picked)) == count

    def test_the_next_try_of_a_crowd_comes_as_often_as_all_of_them_try(self) -> None:
        people = Population(np.zeros(100), np.zeros(100, dtype=np.bool_), np.full(100, 2, dtype=np.uint8))
        hunters = Hunters(Scenario(retry_s=10), people, seed_streams(5))
        hunters.add_many(np.arange(100))

        waits = [hunters.next_try_s(2) or 0.0 for _ in range(4_000)]

        assert np.mean(waits) == pytest.approx(10 / 100, rel=0.1)
        assert hunters.next_try_s(1) is None


class TestEverySale:
    @settings(max_examples=40, deadline=None)
    @given(
        st.builds(
            Scenario,
            people=st.integers(1, 800),
            seats=st.integers(1, 120),
            bots=st.floats(0, 1),
            early=st.floats(0, 1),
            arrivals=st.sampled_from(["exponential", "uniform"]),
            waiting_room=st.booleans(),
            admit_per_s=st.floats(0.5, 500),
            inside_max=st.integers(1, 50),
            no_show=st.floats(0, 1),
            abandon=st.floats(0, 0.5),
            decline=st.floats(0, 1),
            payments_at_once=st.integers(1, 5),
            payment_s=st.floats(0.01, 200),
            holds_per_s=st.floats(0.5, 1000),
            spread=st.floats(0, 2),
            party=st.sampled_from(["1", "2", "1:1,2:5,10:1"]),
            seed=st.integers(0, 1000),
        )
    )
    def test_seats_and_people_are_conserved_and_limits_hold(self, scenario: Scenario) -> None:
        record = run_sale(scenario)
        outcome = summarize(record)

        assert all(0 <= free <= scenario.seats for _, free in record.free_at)
        assert outcome.seats_sold + outcome.seats_unsold == scenario.seats
        assert (outcome.sold_out_s is None) == (outcome.seats_unsold > 0)
        assert len(set(record.sold_to)) == outcome.orders <= outcome.people_admitted <= scenario.people
        bots = int(record.people.is_bot.sum())
        assert outcome.people_with_tickets + outcome.people_without_tickets == scenario.people - bots
        assert outcome.people_inside_most <= scenario.inside_max
        assert outcome.payments_at_once_most <= scenario.payments_at_once
        times = [at_s for at_s, _ in record.free_at]
        assert times == sorted(times)
        assert record.sold_at == sorted(record.sold_at)

    @pytest.mark.parametrize("waiting_room", [True, False])
    def test_the_same_seed_is_the_same_sale_and_another_is_another(self, waiting_room: bool) -> None:
        scenario = replace(HALL, waiting_room=waiting_room)

        pages = [summarize(run_sale(replace(scenario, seed=seed))).page() for seed in (7, 7, 8)]

        assert json.dumps(pages[0]) == json.dumps(pages[1])
        assert pages[0] != pages[2]

    def test_another_decline_rate_does_not_change_who_comes_when(self) -> None:
        first, second = (
            draw_population(replace(HALL, decline=decline), seed_streams(3)) for decline in (0.0, 0.5)
        )

        assert np.array_equal(first.arrive_s, second.arrive_s)
        assert np.array_equal(first.is_bot, second.is_bot)

    @pytest.mark.parametrize("kind", ["svg", "png"])
    def test_the_picture_of_the_same_sale_is_the_same_file(self, tmp_path: Path, kind: str) -> None:
        files = [tmp_path / f"{number}.{kind}" for number in range(2)]

        for file in files:
            plot_sale(run_sale(ALIKE), file)

        first, second = (file.read_bytes() for file in files)
        assert first == second
        assert len(first) > 10_000


class TestTheCommand:
    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", "simulate", "onsale", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_its_answer_is_the_same_byte_for_byte(self, tmp_path: Path) -> None:
        words = ("--people", "5000", "--seats", "300", "--json", "--output", str(tmp_path / "sale.svg"))

        ended = [self.run(*words) for _ in range(2)]

        assert ended[0].stdout == ended[1].stdout
        page = json.loads(ended[0].stdout)
        assert page["scenario"]["people"] == 5000
        assert page["outcome"]["seats_sold"] + page["outcome"]["seats_unsold"] == 300
        assert (tmp_path / "sale.svg").stat().st_size > 10_000

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (("--people", "0"), "--people 0: must be between 1 and"),
            (("--decline", "nan"), "--decline nan: must be between 0 and 1"),
            (("--party", "2:x"), "--party 2:x: use for example"),
            (("--party", "11"), "--party 11: an order has 1 to 10 seats"),
            (("--arrivals", "poisson"), "--arrivals poisson: must be"),
            (("--output", "sale.gif"), "--output sale.gif: must end in"),
        ],
    )
    def test_a_bad_option_is_refused_in_one_line(self, words: tuple[str, ...], reason: str) -> None:
        ended = self.run(*words)

        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"holdfast: {reason}")
        assert len(ended.stderr.splitlines()) == 1

    def test_without_numpy_it_says_what_to_install(self) -> None:
        lines = "import sys; sys.modules['numpy'] = None; sys.argv = ['holdfast', 'simulate', 'onsale']"
        lines += "; from holdfast.cli.main import main; main()"

        ended = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)

        assert ended.returncode == 2
        assert ended.stderr == "holdfast: numpy not installed: pip install 'holdfast[simulation]'\n"


def test_times_are_readable() -> None:
    assert [clock(seconds) for seconds in (0.04, 59.94, 61, 3725)] == [
        "0.0 s",
        "59.9 s",
        "1:01 min",
        "1:02:05 h",
    ]
