"""A plugin of pytest for runs with `--pods N`: whose turn it is, what is left out, what it came to.

Tests of stores are about one database: the shows of a file go to one, those of other files to others.
Journeys are about the house: by its own rule a new show goes to the pod with the fewest. At every few tests
no pod takes any, and home sells them.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.support.opened import current_house
from tests.support.spread_ledgers import SpreadLedgers
from tests.support.without_pods import AT_HOME, LEFT_OUT, find_reason, sells_at_home

TESTS = Path(__file__).parent.parent
STORES = "stores"
FOLDERS = (STORES, "journeys")
SHOWS, USED = "shows by database", "databases used"


@dataclass
class Sum:
    """Of this process; in a parallel run, the first process hears from the others."""

    passed: set[str] = field(default_factory=set)  # tests
    broken: set[str] = field(default_factory=set)
    by_folder: Counter[str] = field(default_factory=Counter)
    shows: Counter[str] = field(default_factory=Counter)  # by database
    tests: Counter[str] = field(default_factory=Counter)  # passed, by database
    without_show: int = 0  # passed
    left_out: Counter[str] = field(default_factory=Counter)  # tests, by file
    turn: "count[int]" = field(default_factory=count)


SUM = Sum()


def turn_of(file: Path, house: SpreadLedgers) -> str | None:
    """The database that sells all shows of this file: always the same."""
    place = file.relative_to(TESTS)
    if sells_at_home(place.as_posix()):
        return ""
    if place.parts[0] != STORES:
        return None
    return house.names[crc32(place.name.encode()) % len(house.names)]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if _reason(item) is not None]
    for item in left_out:
        SUM.left_out[_place(item)] += 1
    items[:] = [item for item in items if _reason(item) is None]
    config.hook.pytest_deselected(items=left_out)


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


def _reason(item: pytest.Item) -> str | None:
    if _place(item).partition("/")[0] not in FOLDERS:
        return "neither a store nor a journey"
    return find_reason(_place(item), item.nodeid.partition("::")[2])


@pytest.fixture(autouse=True)
async def _turn(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    house = current_house() if "config" in request.fixturenames else None
    if house is None:
        yield
        return
    await house.take_new_shows(is_turn_of_home=next(SUM.turn) % len(house.names) == 0)
    house.used.clear()
    yield
    await house.settle()
    await house.take_new_shows()
    made = house.count_new_shows()
    used = {name or "home" for name in house.used} | made.keys()
    request.node.user_properties += [(SHOWS, dict(made)), (USED, sorted(used))]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        SUM.broken.add(report.nodeid)
    elif report.passed and report.when == "call":
        SUM.passed.add(report.nodeid)
    if report.when != "teardown":
        return
    found: dict[str, Any] = dict(report.user_properties)
    SUM.shows.update(found.get(SHOWS, {}))
    if report.nodeid in SUM.passed - SUM.broken:
        SUM.by_folder[report.nodeid.split("/")[1]] += 1
        SUM.tests.update(found.get(USED, []))
        SUM.without_show += not found.get(USED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process of a parallel run has collected all tests."""
    SUM.left_out = Counter(getattr(node, "workeroutput", {}).get("left_out", {})) or SUM.left_out


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = dict(SUM.left_out)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    say = terminalreporter.write_line
    terminalreporter.section(f"home and {config.option.pods} pods")
    names = ["home", *(name for name in sorted(SUM.shows | SUM.tests) if name != "home")]
    for name in names:
        say(f"{name:>6}: {SUM.shows[name]} shows; {SUM.tests[name]} tests passed with shows of it")
    folders = ", ".join(f"{number} of {folder}" for folder, number in sorted(SUM.by_folder.items()))
    say(f"passed: {folders or 'none'}; {SUM.without_show} of them without a show; failed: {len(SUM.broken)}")
    for reason, files in AT_HOME.items():
        say(f"all shows at home: {len(files)} files: {reason}")
    for reason, files in LEFT_OUT.items():
        if numbers := [SUM.left_out[file] for file in _files(files) if SUM.left_out[file]]:
            say(f"left out: {sum(numbers)} tests of {len(numbers)} files: {reason}")


def _files(names: tuple[str, ...]) -> set[str]:
    return {name.partition("::")[0] for name in names}
