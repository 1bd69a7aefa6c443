"""The same journeys on Holdfast and on pretix, in turn, on one machine: rounds, checks, figures.

Both systems run all the time; a run starts when the machine has become quiet, so that background work that a
run leaves behind does not slow down the next one. After each run the seats are counted in the database of
the system: as many as the buyers were promised, and none twice.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median

import msgspec

from bench.cpu import MachineTimes, read_machine
from bench.errors import BenchError, require
from bench.figure import Figure
from bench.peers.holdfast_system import RunningHoldfast, start_holdfast
from bench.peers.plan import Hall, Outcome, Plan, Report, SeatCount
from bench.peers.pretix_setup import LISTING, ORGANIZER
from bench.peers.pretix_system import Kind, Pretix, start_pretix
from bench.session import Session
from tests.support.shows import a_layout

SEATS, SEATS_PER_ROW = 200, 10
PAIRS, PAIRS_PER_ROW = SEATS // 2, SEATS_PER_ROW // 2
SEATS_PER_JOURNEY = 2
QUIET_SHARE, QUIET_LOOK_S, QUIET_WITHIN_S = 0.08, 0.3, 60.0
PAID, FREE = "paid", "free"


@dataclass(frozen=True)
class Journey:
    name: str
    key: str  # with the system's name before it, of bench.peers.crowd.JOURNEYS
    kind: str = PAID
    halls: int = 1  # of Holdfast: more than a run can sell
    pretix_halls: int = 1
    wanted_by: int = 1

    @property
    def is_purchase(self) -> bool:
        return self.key.startswith("purchase")


JOURNEYS = (
    Journey("two seats held by API", "hold by API", halls=90, pretix_halls=3),
    Journey("two seats held in the shop, by a guest", "hold in the shop", halls=30, pretix_halls=1),
    Journey("order of two seats, paid, by API", "purchase by API", halls=20, pretix_halls=1),
    Journey("order of two free seats in the shop, all pages", "purchase in the shop", FREE, 10, 1),
    Journey("the same 100 pairs wanted by 3 buyers each", "hold by API", wanted_by=3),
)
PAGE = "page of an event"
WARM_UP_S, WARM_UP_CONNECTIONS = 0.5, 4
SPARE_ROUNDS = 2  # for those that are repeated because the machine was busy


@dataclass
class Comparison:
    """One journey on both systems: rates, and the reports of the rounds that count."""

    figure: Figure
    reports: list[tuple[Report, Report]] = field(default_factory=list)  # ours, pretix'

    def add(self, ours: Report, theirs: Report) -> None:
        del self.reports[len(self.figure.runs) :]  # of an attempt that did not count
        self.reports.append((ours, theirs))
        self.figure.add(rate(ours), rate(theirs))

    def percentiles(self, side: int) -> tuple[float, float]:
        """p50 and p99 in ms, each the median of the rounds."""
        counted = [pair[side] for pair in self.reports[: len(self.figure.runs)]]
        return median(each.p50_ms for each in counted), median(each.p99_ms for each in counted)


def rate(report: Report) -> float:
    """Successful journeys per second; where buyers compete, answers per second."""
    if set(report.outcomes) > {Outcome.DONE}:
        return sum(report.outcomes.values()) / report.seconds
    return report.per_second


@dataclass
class Bench:
    holdfast: RunningHoldfast
    pretix: Pretix
    connections: int
    seconds: float
    seats_sold: dict[str, int] = field(default_factory=lambda: {"Holdfast": 0, "pretix": 0})
    seats_sold_twice: dict[str, int] = field(default_factory=lambda: {"Holdfast": 0, "pretix": 0})

    async def run_holdfast(self, journey: Journey) -> Report:
        layout = a_layout(SEATS, row=SEATS_PER_ROW)
        count = 1 if journey.wanted_by > 1 else journey.halls
        halls = await self.holdfast.create_halls(layout, count, is_free=journey.kind == FREE)
        plan = self._plan(journey, "holdfast", self.holdfast.url, halls, self.holdfast.tokens)
        report = await self._run(plan)
        self._check("Holdfast", journey, report, await self.holdfast.count_seats(halls))
        return report

    async def run_pretix(self, journey: Journey) -> Report:
        halls = list(islice(self.pretix.halls[journey.kind], journey.pretix_halls))
        require(bool(halls), "the halls that were made for pretix are used up")
        plan = self._plan(journey, "pretix", self.pretix.url, halls, [self.pretix.token])
        report = await self._run(plan)
        self._check("pretix", journey, report, await self.pretix.count_seats(halls))
        return report

    async def load_page(self, url: str, path: str) -> Report:
        plan = Plan(
            url=url,
            journey="page",
            connections=self.connections,
            seconds=self.seconds,
            halls=[],
            facts={"path": path},
        )
        return await self._run(plan)

    def _plan(self, journey: Journey, system: str, url: str, halls: list[Hall], secrets: list[str]) -> Plan:
        return Plan(
            url=url,
            journey=f"{system} {journey.key}",
            connections=self.connections,
            seconds=60 if journey.wanted_by > 1 else self.seconds,
            halls=halls,
            pairs=PAIRS,
            pairs_per_row=PAIRS_PER_ROW,
            wanted_by=journey.wanted_by,
            secrets=secrets,
            facts={"organizer": ORGANIZER, "csrf": self.pretix.csrf},
        )

    async def _run(self, plan: Plan) -> Report:
        await wait_until_quiet()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.peers.crowd"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate(msgspec.json.encode(plan))
        require(process.returncode == 0, f"the load generator ended with {process.returncode}")
        report = msgspec.json.decode(output, type=Report)
        require(not report.errors, f"{plan.journey}: {report.errors}")
        return report

    def _check(self, system: str, journey: Journey, report: Report, found: SeatCount) -> None:
        promised = SEATS_PER_JOURNEY * report.done
        self.seats_sold[system] += found.taken
        self.seats_sold_twice[system] += found.twice
        bought = promised if journey.is_purchase else 0
        is_right = (found.taken, found.bought) == (promised, bought)
        require(is_right, f"{system}, {journey.name}: {promised} seats were promised, found {found}")


async def wait_until_quiet() -> None:
    """Until neither system does anything worth mentioning."""
    began = time.perf_counter()
    before = read_machine()
    while time.perf_counter() - began < QUIET_WITHIN_S:
        await asyncio.sleep(QUIET_LOOK_S)
        after = read_machine()
        if own_share(before, after) < QUIET_SHARE:
            return
        before = after
    raise BenchError(f"the systems were not quiet {QUIET_WITHIN_S:.0f} s after a run")


def own_share(before: MachineTimes, after: MachineTimes) -> float:
    return (after.own - before.own) / max(after.total - before.total, 1)


@asynccontextmanager
async def start_both(
    session: Session, cache: Path, python: Path, *, connections: int, seconds: float, workers: int
) -> AsyncIterator[Bench]:
    labels = a_layout(SEATS, row=SEATS_PER_ROW).labels
    rows = [list(labels[i : i + SEATS_PER_ROW]) for i in range(0, SEATS, SEATS_PER_ROW)]
    session.report("starting pretix; the first time this migrates its database, for minutes")
    async with start_pretix(cache, python, rows, count_halls(session.rounds), workers=workers) as pretix:
        session.report("starting Holdfast")
        async with start_holdfast(cache) as holdfast:
            yield Bench(holdfast, pretix, connections, seconds)


def count_halls(rounds: int) -> Mapping[str, Kind]:
    """Halls of pretix for the warm-up, the rounds and some that are repeated on a busy machine."""
    runs = 1 + rounds + SPARE_ROUNDS
    needed = {
        kind: sum(journey.pretix_halls for journey in JOURNEYS if journey.kind == kind)
        for kind in (PAID, FREE)
    }
    return {PAID: Kind("15.00", runs * needed[PAID]), FREE: Kind("0.00", runs * needed[FREE])}


async def compare(
    session: Session, bench: Bench, save: Callable[[list[Comparison]], None]
) -> list[Comparison]:
    """Saved after every round, so that a run that is stopped leaves the rounds before."""
    names = [*(journey.name for journey in JOURNEYS), PAGE]
    found = {name: Comparison(Figure(name, "per second", "pretix", 1.0)) for name in names}
    await _warm_up(session, bench)
    async for attempt in session.repeat(*(each.figure for each in found.values())):
        await _run_round(session, bench, found, attempt)
        save(list(found.values()))
    return list(found.values())


async def _warm_up(session: Session, bench: Bench) -> None:
    """Every journey for a second: modules are imported, plans and templates cached."""
    short = replace(bench, seconds=WARM_UP_S, connections=WARM_UP_CONNECTIONS)
    for journey in JOURNEYS:
        if journey.wanted_by == 1:
            session.report(f"warming up: {journey.name}")
            await short.run_holdfast(journey)
            await short.run_pretix(journey)


async def _run_round(session: Session, bench: Bench, found: dict[str, Comparison], attempt: int) -> None:
    for journey in JOURNEYS:
        session.report(f"{journey.name}, attempt {attempt + 1}")
        runs = partial(bench.run_holdfast, journey), partial(bench.run_pretix, journey)
        found[journey.name].add(*await _in_turn(attempt, *runs))
    session.report(f"{PAGE}, attempt {attempt + 1}")
    (hall,) = await bench.holdfast.create_halls(a_layout(SEATS, row=SEATS_PER_ROW), 1, is_free=False)
    pages = (
        partial(bench.load_page, bench.holdfast.url, f"/shows/{hall.event}"),
        partial(bench.load_page, bench.pretix.url, f"/{ORGANIZER}/{LISTING}/"),
    )
    found[PAGE].add(*await _in_turn(attempt, *pages))


async def _in_turn(
    attempt: int, ours: Callable[[], Awaitable[Report]], theirs: Callable[[], Awaitable[Report]]
) -> tuple[Report, Report]:
    """Every other round in the other order: ours, theirs."""
    if attempt % 2:
        second = await theirs()
        return await ours(), second
    return await ours(), await theirs()
