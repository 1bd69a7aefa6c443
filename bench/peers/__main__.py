"""python -m bench.peers [--rounds N] [--cache FOLDER]: load Holdfast and pretix, write bench/results.

The first run installs pretix into the cache folder and migrates its database: some minutes, once. Exit codes:
0 everything was measured, 1 a result was wrong, 3 something was not measured because the machine was busy.
"""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.errors import BenchError
from bench.peers.compare import Comparison, compare, start_both
from bench.peers.holdfast_system import WEB_WORKERS, read_engine_versions
from bench.peers.pretix_install import install_pretix, read_versions
from bench.peers.report import Conditions, print_comparison, write_comparison
from bench.session import Session

RESULTS = Path(__file__).parents[1] / "results"
CACHE = Path("~/.cache/holdfast-peers").expanduser()
WRONG, NOT_MEASURED = 1, 3  # exit codes


def main() -> int:
    options = parse_arguments()
    for folder in (options.results, options.cache):
        folder.mkdir(parents=True, exist_ok=True)
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        task = progress.add_task("starting")
        session = Session(
            rounds=options.rounds,
            report=lambda text: progress.update(task, description=text),
            results=options.results,
            busy_max=options.busy_max / 100,
        )
        try:
            found, conditions = asyncio.run(measure(session, options))
        except BenchError as error:
            Console(stderr=True, soft_wrap=True).print(f"bench.peers failed: {error}", markup=False)
            return WRONG
    if not conditions.rounds:
        return 0
    print_comparison(found, conditions)
    write_comparison(found, conditions, options.results)
    twice = sum(conditions.seats_sold_twice.values())
    print(f"seats sold: {dict(conditions.seats_sold)}, twice: {dict(conditions.seats_sold_twice)}")
    missing = any(not each.figure.is_measured for each in found)
    return WRONG if twice else NOT_MEASURED if missing else 0


async def measure(session: Session, options: argparse.Namespace) -> tuple[list[Comparison], Conditions]:
    session.report("installing pretix")
    python = await install_pretix(options.cache)
    versions = {**await read_versions(python), **read_engine_versions()}
    load = {"connections": options.connections, "seconds": options.seconds}
    async with start_both(session, options.cache, python, workers=options.workers, **load) as bench:

        def describe(found: list[Comparison]) -> Conditions:
            return Conditions(
                **load,
                rounds=max((len(each.figure.runs) for each in found), default=0),
                workers={"Holdfast": WEB_WORKERS, "pretix": options.workers},
                versions=versions,
                seats_sold=bench.seats_sold,
                seats_sold_twice=bench.seats_sold_twice,
            )

        def save(found: list[Comparison]) -> None:
            write_comparison(found, describe(found), options.results)

        found = await compare(session, bench, save) if session.rounds else []
    return found, describe(found)


def parse_arguments() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench.peers", description=__doc__, formatter_class=formatter)
    parser.add_argument(
        "--rounds", type=int, default=3, help="of each journey; 0: install and start only (3)"
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="in which journeys of a run begin (1.5)")
    parser.add_argument("--connections", type=int, default=32, help="buyers at the same time (32)")
    workers = os.cpu_count() or 1
    parser.add_argument(
        "--workers", type=int, default=workers, help=f"of gunicorn; one per core was fastest here ({workers})"
    )
    parser.add_argument(
        "--busy-max",
        type=float,
        default=10,
        help="percent of the machine that other processes may use during a round; more: it is repeated (10)",
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help="where pretix is installed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
