"""Jobs that one process of all runs: gauges, and comparisons that read much and change nothing.

    process 1   take ── run ── renew ── run ── renew ── run ── (dies)
    process 2   take? no … take? no … take? no … take? no … … lease ends ── take ── run ── renew ──

The process that has the lease keeps it as long as it renews it, so a job may remember its last run. Leases
are for economy only: a process that sleeps through its lease and runs once more does no harm. What it has
measured is withdrawn once it knows that another process measures it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from holdfast.engines.errors import EngineDown
from holdfast.engines.leases import LeaseQueue, LeaseTable
from holdfast.engines.loop import Job
from holdfast.engines.metrics import Measured, metrics
from holdfast.engines.postgres import Postgres, Queries
from holdfast.engines.row_lease import Lease

Q = Queries("holdfast.engines", "turns")
TABLE = LeaseTable(name="job_turn", key={"name": "text"}, queries=Q)
LEASE_PAUSES = 4  # a lease is renewed this often, so that three failed renewals do not lose it
LEASE_S_MIN = 20.0


class Turns:
    def __init__(self, postgres: Postgres, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._postgres = postgres
        self._monotonic = monotonic
        self._queue = LeaseQueue(postgres, TABLE)

    def alone(self, pause_s: float, job: Job) -> tuple[float, Job]:
        """The job, for the loop, so that it runs in one process of all; elsewhere it returns 0."""
        name, lease_s = job.__qualname__, max(pause_s * LEASE_PAUSES, LEASE_S_MIN)
        mine: list[Lease] = []
        measured: Measured = set()
        renew_at = 0.0

        async def run_alone() -> int:
            nonlocal renew_at
            if not mine or self._monotonic() >= renew_at:
                renew_at = self._monotonic() + lease_s / LEASE_PAUSES
                mine[:] = await self._renew(mine, lease_s) or await self._take(name, lease_s)
            if not mine:
                metrics.withdraw(measured)
                return 0
            with metrics.noting(measured):
                return await job()

        run_alone.__qualname__ = name
        return pause_s, run_alone

    @asynccontextmanager
    async def taken(self, name: str, lease_s: float) -> AsyncIterator[bool]:
        """Whether this process has the turn until the block ends; renewed meanwhile, then given back."""
        mine = await self._take(name, lease_s)
        if not mine:
            yield False
            return
        renewing = asyncio.create_task(self._keep(mine, lease_s))
        try:
            yield True
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            await self._queue.give_back(mine)

    async def _keep(self, mine: list[Lease], lease_s: float) -> None:
        while True:
            await asyncio.sleep(lease_s / LEASE_PAUSES)
            with suppress(EngineDown):
                await self._queue.renew(mine, lease_s)

    async def _renew(self, mine: list[Lease], lease_s: float) -> list[Lease]:
        """Empty: there was no lease, or another process has it by now."""
        if not mine:
            return []
        still = await self._queue.renew(mine, lease_s)
        return [lease for lease in mine if lease.key in still]

    async def _take(self, name: str, lease_s: float) -> list[Lease]:
        await self._postgres.execute(Q.add_job, name)
        rows = await self._queue.take(1, lease_s, name)
        return [Lease((row["name"],), row["turn"]) for row in rows]
