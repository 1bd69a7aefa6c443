"""What a run of the lab found: every row of every round, and what is shown of them."""

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from holdfast.engines.embedded.binaries import find_postgres, find_valkey
from lab.contest.crowd import CrowdResult
from lab.contest.duel import DuelResult
from lab.contest.messages import Note

FILE = "results.json"


class CrowdRow(Struct, frozen=True):
    strategy: str
    result: CrowdResult


class DuelRow(Struct, frozen=True):
    strategy: str
    scenario: str
    double_sales: int
    lost_holds: int
    lost_sales: int
    paid_for_nothing: int
    attacked: int  # seats


class Log(Struct, frozen=True):
    """The lines of one duel that are about one seat."""

    strategy: str
    scenario: str
    seat: int
    lines: list[str]


class Results(Struct):
    machine: str = ""
    versions: str = ""
    rounds: int = 0
    not_measured: dict[str, str] = {}  # scenario: why
    crowds: list[CrowdRow] = []
    duels: list[DuelRow] = []
    logs: list[Log] = []

    def crowd(self, strategy: str, offer: int, clients: int) -> list[CrowdResult]:
        """One per round."""
        wanted = (strategy, offer, clients)
        return [r.result for r in self.crowds if (r.strategy, r.result.offer, r.result.clients) == wanted]

    def duel(self, strategy: str, scenario: str) -> list[DuelRow]:
        return [row for row in self.duels if (row.strategy, row.scenario) == (strategy, scenario)]


def middle(results: Sequence[CrowdResult], figure: Callable[[CrowdResult], float]) -> float:
    """The median of the rounds."""
    return median(figure(result) for result in results)


def build_duel_row(strategy: str, scenario: str, result: DuelResult) -> DuelRow:
    verdict = result.verdict
    counts = (verdict.double_sales, verdict.lost_holds, verdict.lost_sales, verdict.paid_for_nothing)
    return DuelRow(strategy, scenario, *counts, result.attacked)


def render_log(notes: Sequence[Note]) -> list[str]:
    """Milliseconds since the first line, who, and what. A line that repeats is shown once."""
    lines: list[str] = []
    seen: set[tuple[str, str]] = set()
    for note in notes:
        words = (note.who, note.text)
        if words not in seen:
            lines.append(f"{1000 * (note.at_s - notes[0].at_s):8.1f} ms  {note.who:10}  {note.text}")
        seen.add(words)
    return lines


def load_results(folder: Path) -> Results:
    file = folder / FILE
    return msgspec.json.decode(file.read_bytes(), type=Results) if file.exists() else Results()


def save_results(folder: Path, results: Results) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def merge(old: Results, new: Results) -> Results:
    """Rows of strategies and parts that did not run stay as they were in the last run."""
    crowds, duels = {row.strategy for row in new.crowds}, {row.strategy for row in new.duels}
    new.crowds = [row for row in old.crowds if row.strategy not in crowds] + new.crowds
    new.duels = [row for row in old.duels if row.strategy not in duels] + new.duels
    new.logs = [log for log in old.logs if log.strategy not in duels] + new.logs
    new.not_measured = new.not_measured if duels else old.not_measured
    return new


def describe_machine() -> str:
    return (
        f"{os.cpu_count()} cores ({read_processor()}), {platform.system()} {platform.release().split('-')[0]}"
    )


def describe_versions() -> str:
    return (
        f"PostgreSQL {find_postgres().version}, Valkey {find_valkey().version}, "
        f"Python {platform.python_version()}"
    )


def read_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
