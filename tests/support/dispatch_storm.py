"""A city for the storm of `examples/dispatch`: riders, phones and cars here, workers in their own processes.

Workers are killed and started again. What the test does itself (requests, answers, arrivals) is one process
that lives through the storm, as the phones of a city would.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from examples.dispatch.city import City, Trip
from examples.dispatch.drivers import POOL_ID
from examples.dispatch.history import History
from examples.dispatch.ledger import Ledger, open_ledger
from examples.dispatch.phones import Habits, Manner, Phones
from examples.dispatch.rules import Rules
from examples.dispatch.worker import Plan
from holdfast.claim import FREE, connect
from tests.support.box_office import Office, started
from tests.support.second_ledger import a_database, empty_valkey
from tests.support.wait import until

PHONES_EVERY_S = 0.02
CARS_EVERY_S = 0.1
MOVED_PER_STEP = 0.05  # of all drivers
OFFLINE = 0.1  # of the drivers that report
HABITS = Habits(
    {
        Manner.ACCEPT: 0.62,
        Manner.DECLINE: 0.15,
        Manner.IGNORE: 0.08,
        Manner.LATE: 0.07,
        Manner.TWICE: 0.08,
    }
)

FIGURES = """
SELECT count(*) AS matches, extract(epoch FROM max(assigned_at) - min(requested_at))::float8 AS seconds,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM assigned_at - requested_at)) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM assigned_at - requested_at)) AS p95
  FROM assignment JOIN ride USING (ride_id)
"""


@dataclass(frozen=True)
class Size:
    rides: int
    drivers: int
    rides_per_s: float
    workers: int
    rules: Rules
    ride_s: tuple[float, float]  # how long rides take


@dataclass
class Storm:
    ledger: Ledger
    size: Size
    plan: Plan
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    requested: list[int] = field(default_factory=list)
    seconds: float = 0.0  # from the first request to the end of the last ride
    _workers: list[asyncio.subprocess.Process] = field(default_factory=list)
    _arrives_at: dict[int, float] = field(default_factory=dict)  # every ride that has had a driver
    _arrived: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.phones = Phones(self.ledger, HABITS)

    async def start_worker(self) -> None:
        words = msgspec.json.encode(self.plan).decode()
        self._workers.append(await started("-m", "examples.dispatch.worker", words))

    async def kill_worker(self) -> None:
        """The oldest; another one takes its place."""
        victim = self._workers.pop(0)
        assert victim.returncode is None, "a worker ended by itself"
        victim.kill()
        await victim.wait()
        await self.start_worker()

    async def stop(self) -> None:
        for worker in self._workers:
            if worker.returncode is None:
                worker.kill()
            await worker.wait()

    async def reach(self, assigned: int) -> None:
        """Wait until so many rides have had a driver."""

        async def is_reached() -> bool:
            return len(self._arrives_at) >= assigned or self.seconds > 0

        await until(is_reached, within_s=120)

    @asynccontextmanager
    async def riding(self, trips: Sequence[Trip] | None = None) -> AsyncIterator[None]:
        """Rides are requested while the block runs; it ends when every ride has ended."""
        trips = trips or [self._trip() for _ in range(self.size.rides)]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ride(trips))
            yield
        assert all(worker.returncode is None for worker in self._workers), "a worker ended by itself"

    async def _ride(self, trips: Sequence[Trip]) -> None:
        """Everything that riders, phones and cars do."""
        began = time.monotonic()
        jobs = [
            asyncio.create_task(repeat(self._answer, PHONES_EVERY_S)),
            asyncio.create_task(repeat(self._drive, CARS_EVERY_S)),
        ]
        try:
            await self._request(trips)
            await until(self._has_ended, within_s=self.size.rules.patience_s * 3 + 30)
        finally:
            self.seconds = time.monotonic() - began
            for job in jobs:
                job.cancel()
            for outcome in await asyncio.gather(*jobs, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome

    async def describe(self) -> str:
        """The figures of the storm."""
        row = await self.ledger.pool.fetchrow(FIGURES)
        assert row is not None
        return (
            f"{len(self.requested)} rides, {self.size.drivers} drivers, {self.size.workers} workers: "
            f"{row['matches']} matches in {row['seconds']:.1f} s ({row['matches'] / row['seconds']:.0f}/s), "
            f"time to match p50 {row['p50']:.2f} s, p95 {row['p95']:.2f} s"
        )

    async def free_drivers(self) -> None:
        """Wait until the pool of claims has every driver free again: none is lost to the city."""
        async with connect(self.plan.redis_url) as pools:
            pool = await pools.open(POOL_ID, size=self.size.drivers)

            async def are_free() -> bool:
                return (await pool.read()).units.count(FREE) == self.size.drivers

            await until(are_free)

    async def check(self) -> History:
        """The oracle's verdict on the whole history."""
        history = History(self.ledger)
        while await history.read(settled_after_s=0):
            pass
        return history

    async def _request(self, trips: Sequence[Trip]) -> None:
        began, sent = time.monotonic(), 0
        while sent < len(trips):
            due = 1 + int((time.monotonic() - began) * self.size.rides_per_s)
            if more := trips[sent:due]:
                patience_s = self.size.rules.patience_s
                self.requested += await self.ledger.request_rides(more, patience_s=patience_s)
                sent += len(more)
            await asyncio.sleep(PHONES_EVERY_S)

    async def _answer(self) -> None:
        await self.phones.step()

    async def _drive(self) -> None:
        """Rides arrive; some drivers report another place; some of them go offline or come back."""
        now = time.monotonic()
        for ride in await self.ledger.read_city():
            if ride.driver_id is not None and ride.ride_id not in self._arrives_at:
                self._arrives_at[ride.ride_id] = now + self.dice.uniform(*self.size.ride_s)
        arrived = {ride_id for ride_id, at in self._arrives_at.items() if at <= now} - self._arrived
        await self.ledger.complete_rides(arrived)
        self._arrived |= arrived
        moved = self.dice.sample(range(self.size.drivers), max(1, int(self.size.drivers * MOVED_PER_STEP)))
        reports = {
            number: (self.dice.choice(self.plan.city.cells), self.dice.random() > OFFLINE) for number in moved
        }
        self.phones.offline -= set(reports)
        self.phones.offline |= {number for number, (_, is_online) in reports.items() if not is_online}
        await self.ledger.report_drivers(reports)

    async def _has_ended(self) -> bool:
        return not await self.ledger.read_city()

    def _trip(self) -> Trip:
        return Trip(self.dice.choice(self.plan.city.cells), self.dice.choice(self.plan.city.cells))


async def repeat(job: Callable[[], Awaitable[None]], pause_s: float) -> None:
    while True:
        await job()
        await asyncio.sleep(pause_s)


@asynccontextmanager
async def a_storm(stage: Office, size: Size) -> AsyncIterator[Storm]:
    """A city of its own on the engines of the stage, with its workers."""
    config = stage.app.config
    city = City(radius=5 if size.drivers < 500 else 11)
    async with a_database(config.database_url) as url, open_ledger(url, connections_max=4) as ledger:
        await ledger.create_tables()
        storm = Storm(ledger, size, Plan(url, config.redis_url, size.drivers, city, size.rules))
        await ledger.add_drivers([storm.dice.choice(city.cells) for _ in range(size.drivers)])
        await empty_valkey(config.redis_url)  # the pool of an earlier storm has another size
        try:
            for _ in range(size.workers):
                await storm.start_worker()
            yield storm
        finally:
            await storm.stop()
