"""The capacity of a demand: the arithmetic is true, the coefficients are those of the bench (R38)."""

import json
import re
import subprocess
import sys
from dataclasses import fields, replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.config import Config
from holdfast.simulation.capacity import Line, Workload, compute
from holdfast.simulation.coefficients import COEFFICIENTS, value_of
from tests.tidy.tree import ROOT
from tools.capacity_page import PAGE, render

RESULTS = ROOT / "bench" / "results"
STADIUM = Workload(people=2_000_000, seats=60_000, sale_s=1800)
SCALES = {"MB": 1e6, "GB": 1e9, "TB": 1e12, "Mbit": 1e6, "Gbit": 1e9}
TERM = re.compile(r"[\d,.]+(?:e[+-]?\d+)?|[×÷+()]")
WORKLOADS = st.builds(
    Workload,
    people=st.integers(0, 10**7),
    seats=st.integers(0, 10**6),
    waiting_room=st.booleans(),
    browse_per_s=st.floats(0, 1e6),
    page_views_month=st.floats(0, 1e10),
    tickets_month=st.floats(0, 1e8),
    bookings_day=st.floats(0, 1e7),
    users=st.integers(0, 10**7),
    use=st.floats(0.1, 1),
)


def all_lines(workload: Workload) -> list[Line]:
    return [line for section in compute(workload) for line in section.lines]


def find(workload: Workload, name: str) -> float:
    return next((line.value for line in all_lines(workload) if line.name == name), 0.0)


def evaluate(line: Line) -> float | None:
    """What its arithmetic says; None for a line that computes nothing."""
    left = line.arithmetic.partition(", rounded")[0]
    if re.fullmatch(r"[a-z ]+", left):
        return None
    words = " ".join(TERM.findall(left)).replace(",", "").replace("×", "*").replace("÷", "/")
    scale = SCALES.get(line.unit.split()[0], 1) if "bytes" in left else 1
    return float(eval(words)) / scale  # noqa: S307


@settings(max_examples=150, deadline=None)
@given(WORKLOADS)
def test_every_line_is_what_its_arithmetic_says(workload: Workload) -> None:
    for line in all_lines(workload):
        value = evaluate(line)
        if "rounded up" in line.arithmetic:
            assert value is not None
            assert line.value >= value * 0.99 - 0.01
            assert line.value <= max(value * 1.01 + 1, 2)
        elif value is not None and min(value, line.value) > 0.05:
            assert line.value == pytest.approx(value, rel=0.02, abs=0.011), line


@settings(max_examples=100, deadline=None)
@given(WORKLOADS, st.sampled_from(["people", "seats", "users"]))
def test_more_demand_never_needs_fewer_machines(workload: Workload, name: str) -> None:
    more = replace(workload, **{name: getattr(workload, name) * 2})

    assert find(more, "machines") >= find(workload, "machines")
    assert find(more, "cost") >= find(workload, "cost")


def test_a_stadium_by_hand() -> None:
    assert find(STADIUM, "polls of the waiting room") == 200_000
    assert find(STADIUM, "purchases of the on-sale") == pytest.approx(60_000 / 2.15 / 1800)
    assert find(STADIUM, "polls") == pytest.approx(200_000 * 600 * 8 / 1e6)


def test_ten_million_tickets_a_month_take_less_than_the_common_estimate() -> None:
    disk_tb = find(Workload(page_views_month=3e9, tickets_month=1e7), "disk")

    assert 0.5 < disk_tb < 3.6


class TestCoefficients:
    def bench(self, file: str) -> Any:
        return json.loads((RESULTS / file).read_text())

    def figure(self, name: str) -> float:
        figures = [each for part in self.bench("figures.json").values() for each in part]
        found = next(each for each in figures if each["name"] == name)
        return float(median(run["ours"] for run in found["runs"]))

    def measured(self) -> dict[str, float]:
        footprint, statements = self.bench("footprint.json"), self.bench("statements.json")
        pages = [float(size) for size in re.findall(r"\| ([\d.]+) kB \|", (RESULTS / "pages.md").read_text())]
        first = re.findall(r"^\| [\w ]+ \| ([\d.]+) kB", (RESULTS / "pages.md").read_text(), re.MULTILINE)
        assert len(pages) >= len(first) > 5
        return {
            "cached answers per core": self.figure("a show through nginx") / 2,
            "refusals per core": self.figure("refusals") / 2,
            "purchases per core": median(each["purchases_s"] for each in self.bench("facts.json")) / 2,
            "claims of Valkey": self.figure("claims in batches"),
            "transactions per purchase": statements.get("postgres") or statements["ledger"],
            "scripts per purchase": statements["redis"],
            "disk per purchase": footprint["bytes_per_purchase"],
            "passing disk per purchase": footprint["passing_bytes_per_purchase"],
            "log per purchase": footprint["log_bytes_per_purchase"],
            "map per seat": footprint["map_bytes_per_seat"],
            "web worker": footprint["web_worker_mb"],
            "background worker": footprint["work_mb"],
            "page": 1000 * sum(map(float, first)) / len(first),
        }

    def test_they_are_near_the_last_bench(self) -> None:
        """A quarter apart: another machine, or the code has changed. Then put the new figure in the table."""
        for name, value in self.measured().items():
            assert value_of(name) == pytest.approx(value, rel=0.25), name

    def test_each_one_with_a_source_is_compared(self) -> None:
        compared = {
            name for name, each in COEFFICIENTS.items() if ".json" in each.source or "pages.md" in each.source
        }

        assert compared == set(self.measured())

    def test_those_of_settings_are_the_defaults(self) -> None:
        defaults: dict[str, Any] = {each.name: each.default for each in fields(Config)}

        pools = defaults["postgres_pool_max"] + defaults["search_pool_max"]
        assert value_of("connections per process") == pools
        assert value_of("facts and mails stay") == defaults["notices_keep_d"]


def test_the_page_has_what_the_commands_print() -> None:
    assert PAGE.read_text() == render(), "run `make docs`"


class TestTheCommand:
    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", "capacity", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_programs_get_json(self) -> None:
        page = json.loads(self.run("--people", "100000", "--seats", "200", "--json").stdout)

        assert page["workload"]["people"] == 100_000
        assert {section["name"] for section in page["sections"]} >= {"Cores", "Memory", "Valkey"}

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            ((), "nothing is demanded"),
            (("--people", "-1"), "--people -1: must be between"),
            (("--users", "5", "--use", "0"), "--use 0.0: must be more than 0"),
        ],
    )
    def test_a_demand_that_cannot_be_is_refused_in_one_line(
        self, words: tuple[str, ...], reason: str
    ) -> None:
        ended = self.run(*words)

        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"holdfast: {reason}")
        assert len(ended.stderr.splitlines()) == 1
