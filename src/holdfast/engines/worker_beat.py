"""Is `holdfast work` alive, anywhere? One worker at a time renews a lease in the ledger; all can see its end.

A lease also ends when a worker hangs, or cannot reach the ledger: then it does no work either.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.engines.loop import Job
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row
from holdfast.engines.turns import Turns

Q = Queries("holdfast.engines", "turns")
BEAT_PAUSE_S = 5.0  # the lease is 20 s: a worker that died is missed after that
BEAT = "worker_beat"
RETURNS_WITHIN_S = 2 * BEAT_PAUSE_S  # a worker that was restarted
RESTARTED = timedelta(minutes=1)  # its lease ended this recently at most
LOOK_AGAIN_S = 0.5
RECENT_H = 24  # a job that no worker has run for longer was renamed or removed


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    is_alive: bool
    lease_end: datetime | None  # of the last worker; None: there never was one
    idle: tuple[str, ...]  # jobs that ran within the last day, and that no worker runs now


async def load_workers(connection: Queryable) -> WorkerFacts:
    row = require_row(await connection.fetchrow(Q.workers, BEAT, RECENT_H))
    return WorkerFacts(row["is_alive"], row["lease_end"], tuple(row["idle"]))


async def wait_for_workers(connection: Queryable) -> WorkerFacts:
    """Where one has just stopped, another one may have been started: it reports some seconds later."""
    give_up_at = time.monotonic() + RETURNS_WITHIN_S
    while True:
        found = await load_workers(connection)
        has_just_ended = found.lease_end is not None and datetime.now(UTC) - found.lease_end < RESTARTED
        if found.is_alive or not has_just_ended or time.monotonic() > give_up_at:
            return found
        await asyncio.sleep(LOOK_AGAIN_S)


def beat(turns: Turns) -> tuple[float, Job]:
    """For the loop of a worker."""

    async def work() -> int:
        return 0

    work.__qualname__ = BEAT
    return turns.alone(BEAT_PAUSE_S, work)


class WorkerGauge:
    """A job of web processes and of workers: a dead worker does not report its own death."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def look(self) -> int:
        """Always returns 0: there is no backlog."""
        found = await load_workers(self._postgres)
        metrics.measure("worker_missing", 0 if found.is_alive else 1)
        return 0
