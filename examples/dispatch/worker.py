"""A worker: takes waiting rides from the ledger, matches them, and copies decisions into the pool of claims.

    python -m examples.dispatch.worker '{"database_url": …}'

It may be killed at any moment. Its rides are taken over when their leases end, its claims end by themselves,
and an offer on a phone stays valid: any process can take the answer.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import uvloop

from examples.dispatch.city import City, FreeDrivers
from examples.dispatch.drivers import DriverPool
from examples.dispatch.ledger import Ledger, Turn, TurnLost, WaitingRide, open_ledger
from examples.dispatch.matcher import Answers, Matcher
from examples.dispatch.rules import Rules
from holdfast.claim import EngineDown, connect

TAKE_S = 0.05  # between two looks for waiting rides
CONNECTIONS_MAX = 4  # to PostgreSQL


class Plan(msgspec.Struct, frozen=True):
    """What a worker process is started with."""

    database_url: str
    redis_url: str
    drivers: int
    city: City = City()
    rules: Rules = Rules()


@dataclass
class Worker:
    ledger: Ledger
    drivers: DriverPool
    matcher: Matcher
    rules: Rules
    _matching: dict[Turn, tuple[WaitingRide, asyncio.Task[None]]] = field(default_factory=dict)

    async def run(self) -> None:
        """Until it is cancelled, or an engine fails: then the process ends, and is started again."""
        await self.refresh()  # before the first ride: without drivers in view, it could only give up
        async with asyncio.TaskGroup() as tasks:
            jobs = {
                self.refresh: self.rules.refresh_s,
                self.matcher.answers.poll: self.rules.poll_s,
                self.renew: self.rules.lease_s / 3,
                self.copy_decisions: TAKE_S,
            }
            for job, pause_s in jobs.items():
                tasks.create_task(repeat(job, pause_s))
            while True:
                await self.take(tasks)
                await asyncio.sleep(TAKE_S)

    async def take(self, tasks: asyncio.TaskGroup) -> None:
        room = self.rules.rides_max - len(self._matching)
        if room > 0:
            for ride in await self.ledger.take_rides(room, lease_s=self.rules.lease_s):
                self._matching[ride.key] = ride, tasks.create_task(self._match(ride))

    async def refresh(self) -> None:
        self.matcher.speed = await self.ledger.read_speed()
        self.matcher.free.replace(await self.ledger.read_free_drivers())

    async def renew(self) -> None:
        """A ride whose lease was lost, because this process slept, is left to the worker that has it now."""
        if not self._matching:
            return
        rides = [ride for ride, _ in self._matching.values()]
        ours = await self.ledger.renew_rides(rides, lease_s=self.rules.lease_s)
        for ride in rides:
            if ride.key not in ours and ride.key in self._matching:
                self._matching[ride.key][1].cancel()

    async def copy_decisions(self) -> None:
        """Assigned drivers are taken in the pool; drivers whose ride has ended are free. Until Valkey has
        it, it is tried again: a driver whose "free" was lost would never get an offer."""
        with suppress(EngineDown):
            async with self.ledger.decisions_to_copy() as decisions:
                await asyncio.gather(*(self.drivers.copy(one, has_ended=one.has_ended) for one in decisions))

    async def _match(self, ride: WaitingRide) -> None:
        try:
            with suppress(TurnLost):
                await self.matcher.match(ride)
        finally:
            self._matching.pop(ride.key, None)


async def repeat(job: Callable[[], Awaitable[None]], pause_s: float) -> None:
    while True:
        await job()
        await asyncio.sleep(pause_s)


async def run_worker(plan: Plan) -> None:
    async with (
        open_ledger(plan.database_url, connections_max=CONNECTIONS_MAX) as ledger,
        connect(plan.redis_url) as pools,
    ):
        drivers = DriverPool(pools, ledger, plan.drivers, margin_s=plan.rules.claim_margin_s)
        matcher = Matcher(ledger, drivers, FreeDrivers(plan.city), Answers(ledger), plan.rules)
        await Worker(ledger, drivers, matcher, plan.rules).run()


if __name__ == "__main__":
    uvloop.run(run_worker(msgspec.json.decode(sys.argv[1], type=Plan)))
