"""python -m lab [--rounds N] [--only naive,holdfast] [--parts faults,load]: sell seats in fourteen ways.

Writes the tables and plots of lab/results, and the results in docs/lab.md. Exit codes: 0 done; 1 a client
process ended; 2 wrong arguments; 3 Holdfast sold a seat twice or lost a hold.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lab.contest.crowd import CELLS, Meter, prepare_counters, run_crowd
from lab.contest.duel import Arena, one_seat, run_duel
from lab.contest.faults import SCENARIOS, Scenario, why_not
from lab.contest.oracle import Verdict
from lab.contest.processes import start_processes
from lab.contest.servers import Servers, start_servers
from lab.contest.shows import open_shows
from lab.page import write_page
from lab.plots import plot_results
from lab.results_file import (
    CrowdRow,
    DuelRow,
    Log,
    Results,
    build_duel_row,
    describe_machine,
    describe_versions,
    load_results,
    merge,
    render_log,
    save_results,
)
from lab.strategies import NAMES, find_strategy
from lab.tables import every_table

RESULTS = Path(__file__).parent / "results"
PARTS = ("faults", "load")
PROCESSES = 4  # with clients: three that are stopped, one with their rivals
# What the page shows in full: strategy, scenario, seat (0: stopped in its hold; 6: in its confirmation).
LOGGED = {
    ("redis_lock", "pause"): 0,
    ("redlock", "pause"): 6,
    ("redlock", "killed"): 0,
    ("redis_fence", "flushed"): 0,
}
BROKEN = 3


def main() -> int:
    options = parse_arguments()
    began = time.monotonic()
    found = asyncio.run(run(options))
    results = merge(load_results(options.results), found)
    save_results(options.results, results)
    (options.results / "table.md").write_text(every_table(results))
    plot_results(results, options.results)
    if options.results == RESULTS:
        write_page(results)
    Console().print(
        f"{options.rounds} rounds in {time.monotonic() - began:.0f} s: {options.results}/table.md"
    )
    return BROKEN if has_broken_promise(found) else 0


async def run(options: argparse.Namespace) -> Results:
    results = Results(describe_machine(), describe_versions(), options.rounds)
    with tempfile.TemporaryDirectory(prefix="holdfast-lab-") as name:
        folder = Path(name)
        os.chmod(name, 0o711)  # PostgreSQL runs as another user if we are root
        async with start_servers(folder) as servers, start_processes(PROCESSES) as processes:
            await prepare_counters(servers)
            async with open_shows(servers) as shows:
                arena = Arena(servers, shows, processes)
                await run_rounds(arena, options, results, folder)
    return results


async def run_rounds(arena: Arena, options: argparse.Namespace, results: Results, folder: Path) -> None:
    duels = list(find_duels(arena.servers, options.only, results)) if "faults" in options.parts else []
    crowds = [(name, cell) for name in options.only for cell in CELLS] if "load" in options.parts else []
    meter = Meter(arena.servers, [process.pid for process in arena.processes])
    await meter.open()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("starting", total=options.rounds * (len(duels) + len(crowds)))
        for round_number in range(1, options.rounds + 1):
            for name, scenario in duels:
                progress.update(task, description=f"round {round_number}: {name}, {scenario.name}")
                result = await run_duel(arena, name, scenario.name)
                results.duels.append(build_duel_row(name, scenario.name, result))
                if round_number == 1 and (seat := LOGGED.get((name, scenario.name))) is not None:
                    lines = render_log(one_seat(result, seat))
                    results.logs.append(Log(name, scenario.name, seat, lines))
                progress.advance(task)
            for name, cell in crowds:
                progress.update(
                    task, description=f"round {round_number}: {name}, {cell.clients} on {cell.offer}"
                )
                found = await run_crowd(arena, meter, name, cell, folder)
                results.crowds.append(CrowdRow(name, found))
                progress.advance(task)
    await meter.close()


def find_duels(servers: Servers, only: list[str], results: Results) -> Iterator[tuple[str, Scenario]]:
    for name in only:
        for scenario in SCENARIOS:
            if scenario.needs_redis and not find_strategy(name).uses_redis:
                continue
            if reason := why_not(servers, name, scenario):
                results.not_measured[f"{scenario.title} ({find_strategy(name).title})"] = reason
            else:
                yield name, scenario


def has_broken_promise(results: Results) -> bool:
    """Of Holdfast: the others are here to break theirs."""
    found: list[DuelRow | Verdict] = [row for row in results.duels if row.strategy == "holdfast"]
    found += [row.result.verdict for row in results.crowds if row.strategy == "holdfast"]
    return any(one.double_sales or one.lost_holds or one.lost_sales for one in found)


def parse_arguments() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("lab", description=__doc__, formatter_class=formatter)
    parser.add_argument(
        "--rounds", type=int, default=3, help="of everything; tables show medians and worst cases"
    )
    parser.add_argument("--only", type=parse_names(NAMES), default=list(NAMES), help=", ".join(NAMES))
    parser.add_argument("--parts", type=parse_names(PARTS), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


class parse_names:
    """Names from a list, with commas between them."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def __call__(self, text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in self._known]:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(self._known)}")
        return names


if __name__ == "__main__":
    sys.exit(main())
