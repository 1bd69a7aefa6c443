"""python -m bench [--rounds N] [--only web,purchases,…]: measure, print a table, write bench/results.

Exit codes: 0 everything was measured, 1 a result was wrong, 2 wrong arguments, 3 something was not measured
because the machine was busy or a program is not installed.
"""

import argparse
import asyncio
import sys
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.browse import measure_browsing
from bench.cpu import read_machine
from bench.errors import BenchError, MissingProgramError, find_program
from bench.facts import measure_facts
from bench.figure import Figure
from bench.footprint import measure_footprint
from bench.growth import measure_growth
from bench.http_holds import measure_web
from bench.idle import measure_idle
from bench.isolation import measure_isolation
from bench.limits import measure_limits
from bench.mail import measure_mail
from bench.maps import measure_maps
from bench.pages import measure_pages
from bench.pods import measure_pods
from bench.postgres_batches import measure_bookings
from bench.pressure import measure_pressure
from bench.purchases import measure_purchases
from bench.queue import measure_queue
from bench.redis_claims import measure_claims
from bench.results_files import print_figures, print_hold_cpu, write_figures
from bench.rooms import measure_rooms
from bench.search import measure_search
from bench.session import Session
from bench.tracing import measure_tracing
from bench.viewers import measure_viewers

RESULTS = Path(__file__).parent / "results"
WRONG, NOT_MEASURED = 1, 3  # exit codes


@dataclass(frozen=True)
class Part:
    measure: Callable[[Session], Coroutine[Any, Any, list[Figure]]]
    programs: tuple[str, ...] = ()  # without which it cannot run


PARTS = {
    "web": Part(measure_web),
    "bookings": Part(measure_bookings),
    "claims": Part(measure_claims, ("redis-benchmark",)),
    "isolation": Part(measure_isolation),
    "pressure": Part(measure_pressure),
    "limits": Part(measure_limits),
    "growth": Part(measure_growth),
    "purchases": Part(measure_purchases),
    "facts": Part(measure_facts),
    "footprint": Part(measure_footprint),
    "pods": Part(measure_pods),
    "tracing": Part(measure_tracing),
    "idle": Part(measure_idle),
    "search": Part(measure_search),
    "viewers": Part(measure_viewers),
    "maps": Part(measure_maps, ("chromium",)),
    "mail": Part(measure_mail),
    "browse": Part(measure_browsing, ("nginx",)),
    "queue": Part(measure_queue, ("nginx",)),
    "rooms": Part(measure_rooms),
    "pages": Part(measure_pages, ("chromium",)),
}


class NotMeasuredError(Exception):
    """A part has no figures; the message says why. Exit code 3."""


def main() -> int:
    options = parse_arguments()
    options.results.mkdir(parents=True, exist_ok=True)
    if find_program("wrk") is None:
        warn(f"{MissingProgramError('wrk')}; bench.load_generator is used instead: rates are lower")
    found: dict[str, list[Figure]] = {}
    reasons: list[str] = []
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        task = progress.add_task("starting")
        session = Session(
            rounds=options.rounds,
            report=lambda text: progress.update(task, description=text),
            results=options.results,
            busy_max=options.busy_max / 100,
            seconds_max=options.seconds,
        )
        is_wrong = measure_parts(options.only, session, found, reasons)
    figures = [figure for each in found.values() for figure in each]
    print_figures(figures)
    if "web" in found:
        print_hold_cpu(options.results)
    reasons += [
        f"{figure.name}: not measured: {figure.not_measured}" for figure in figures if not figure.runs
    ]
    for line in reasons:
        warn(line)
    if is_wrong:
        return WRONG
    return NOT_MEASURED if reasons else 0


def measure_parts(
    names: list[str], session: Session, found: dict[str, list[Figure]], reasons: list[str]
) -> bool:
    """Adds figures to `found`, and to `reasons` why a part has none; whether a result was wrong.

    Figures are written after each part: whatever ends the bench later, its minutes are not lost.
    """
    is_wrong = False
    for name in names:
        try:
            found[name] = measure(PARTS[name], session)
        except NotMeasuredError as reason:
            reasons.append(f"{name}: not measured: {reason}")
        except BenchError as error:
            warn(f"{name} failed: {error}")
            is_wrong = True
        else:
            write_figures(found, tuple(PARTS), session.results)
    return is_wrong


def measure(part: Part, session: Session) -> list[Figure]:
    for program in part.programs:
        if find_program(program) is None:
            raise NotMeasuredError(MissingProgramError(program))
    before = read_machine()
    try:
        return asyncio.run(part.measure(session))
    except TimeoutError as error:
        # A wait of the bench ended: that is a wrong result only if the machine had time for us.
        if reason := session.explain_busy(before):
            raise NotMeasuredError(reason) from error
        raise BenchError(
            "something took longer than the bench waits, and the machine was not busy"
        ) from error
    except BenchError:
        raise
    except AssertionError as error:  # of a module that the bench shares with the tests
        raise BenchError(str(error) or "a check of tests/support failed without a message") from error
    except Exception as error:  # the parts after it are measured all the same
        traceback.print_exc()
        raise BenchError(f"{type(error).__name__}: {error}") from error


def parse_arguments() -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench", description=__doc__, formatter_class=formatter)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each figure; the median counts")
    parser.add_argument("--only", type=parse_parts, default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--busy-max",
        type=float,
        default=10,
        help="percent of the machine that other processes may use during a round; more: it is repeated (10)",
    )
    parser.add_argument(
        "--seconds", type=float, help="shorten runs of web and bookings: only to see that the bench works"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


def parse_parts(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return names


def warn(line: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(f"bench: {line}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
