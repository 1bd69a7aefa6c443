"""The bench works from end to end, and says plainly why it has no figure."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from bench.__main__ import Part, measure, parse_parts
from bench.cpu import MachineTimes, find_groups, read_cpu_us, share_of_others
from bench.environment import Environment, start_workers
from bench.errors import BenchError
from bench.figure import Figure
from bench.load import LoadResult
from bench.results_files import parse_figure, render_figure, render_markdown
from bench.session import ATTEMPTS_MAX, Session
from holdfast.app import App

END_WITHIN_S = 120


def run_bench(results: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", "--results", str(results), *options],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=END_WITHIN_S,
        check=False,
    )


def create_session(folder: Path, *, busy_max: float, rounds: int = 2) -> Session:
    return Session(rounds=rounds, report=lambda _: None, results=folder, busy_max=busy_max, pause_s=0)


def create_figure() -> Figure:
    return Figure("holds", "holds/s", "a bare endpoint", 0.5)


def test_the_cheapest_part_measures_on_real_engines(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "bookings", "--rounds", "1", "--seconds", "0.5", "--busy-max", "100")

    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())["bookings"]
    assert [len(figure["runs"]) for figure in figures] == [1, 1]
    assert all(run["ours"] > 0 for figure in figures for run in figure["runs"])
    assert "bookings opened in batches" in (tmp_path / "figures.md").read_text()


async def test_a_worker_of_the_bench_prints_no_line_for_a_slow_request(
    app: App, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Sign-ins under an attack are slow: thousands of lines would hide the figures."""
    env = Environment(app.config, app, tmp_path)
    async with start_workers(env, 1, slow_request_ms=0) as url, httpx2.AsyncClient() as client:
        assert (await client.get(f"{url}/api/v1/bare/1000")).status_code == 200

    printed = capfd.readouterr()
    assert printed.out + printed.err == ""


def test_a_part_that_breaks_ends_itself_alone(tmp_path: Path) -> None:
    async def break_down(session: Session) -> list[Figure]:
        raise TypeError("two values for one argument")

    with pytest.raises(BenchError, match="TypeError: two values for one argument"):
        measure(Part(break_down), create_session(tmp_path, busy_max=1))


def test_a_missing_program_is_one_line_with_its_debian_package(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "claims", PATH=str(tmp_path))

    assert done.returncode == 3
    assert (
        "claims: not measured: redis-benchmark is not installed (Debian: apt install redis-tools)"
        in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_an_unknown_part_is_an_error_of_the_arguments() -> None:
    assert parse_parts("web,bookings") == ["web", "bookings"]
    with pytest.raises(argparse.ArgumentTypeError, match="no part ledgers; there are web, bookings"):
        parse_parts("web,ledgers")


async def test_a_quiet_machine_runs_each_round_once(tmp_path: Path) -> None:
    figure = create_figure()
    async for attempt in create_session(tmp_path, busy_max=1.0).repeat(figure):
        figure.add(attempt + 1, 1)

    assert figure.runs == [(1, 1), (2, 1)]
    assert figure.not_measured == ""


async def test_a_busy_machine_repeats_rounds_and_then_says_so(tmp_path: Path) -> None:
    figure, attempts = create_figure(), []
    async for attempt in create_session(tmp_path, busy_max=-1.0).repeat(figure):
        attempts.append(attempt)
        figure.add(1, 1)

    assert attempts == list(range(2 * ATTEMPTS_MAX))
    assert not figure.is_measured
    assert figure.not_measured.startswith("the machine was busy (")
    assert figure.not_measured.endswith("% by other processes)")


def test_a_figure_without_runs_is_written_as_not_measured() -> None:
    figure = create_figure()
    figure.not_measured = "the machine was busy (37%)"

    assert parse_figure(render_figure(figure)) == figure
    row = "| holds | not measured: the machine was busy (37%) | a bare endpoint |  | 0.50 |"
    assert row in render_markdown([figure], {})


def test_cpu_time_per_hold_is_part_of_the_markdown() -> None:
    assert "| web workers | 218 |" in render_markdown([], {"web workers": 218.3})


def test_only_other_processes_count_as_load() -> None:
    before = MachineTimes(total=1000, busy=500, own=100)

    assert share_of_others(before, MachineTimes(total=1200, busy=650, own=220)) == pytest.approx(0.15)
    assert share_of_others(before, MachineTimes(total=1200, busy=600, own=210)) == 0
    assert share_of_others(before, before) == 0


def test_cpu_time_of_a_process_grows_with_its_work() -> None:
    groups = find_groups()
    before = read_cpu_us(groups)["load generator"]
    while read_cpu_us(groups)["load generator"] < before + 50_000:
        sum(range(10_000))


def test_unexpected_responses_are_one_line() -> None:
    result = LoadResult(2, 1.0, 1.0, 1.0, {"201": 1, "500": 1})

    with pytest.raises(
        BenchError, match=r"^unexpected responses by status: \{'500': 1\}, expected only \(201,\)$"
    ):
        result.expect(201)
