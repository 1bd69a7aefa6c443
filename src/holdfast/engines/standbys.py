"""The ledger's standbys: how many have a commit before it is acknowledged, and how far behind they are."""

import re
from dataclasses import dataclass

from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row

Q = Queries("holdfast.engines")
PAUSE_S = 10.0
WAITS_FOR = re.compile(r"\s*(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(", re.IGNORECASE)
SET_NAMES = (
    "ALTER SYSTEM SET synchronous_standby_names = 'FIRST {expected} (*)', then SELECT pg_reload_conf()"
)


@dataclass(frozen=True, slots=True)
class StandbyFacts:
    names: str  # synchronous_standby_names
    synchronous_commit: str
    synchronous: int  # standbys that a commit waits for, or may wait for
    streaming: int  # all that receive the log
    hidden: int  # standbys whose state our account may not see
    lag_s: float  # of the one that is furthest behind

    @property
    def waits_for(self) -> int:
        """Standbys that must have a commit before it is acknowledged."""
        if not self.names.strip() or self.synchronous_commit in ("off", "local"):
            return 0
        counted = WAITS_FOR.match(self.names)
        return int(counted[1]) if counted else 1

    def __str__(self) -> str:
        return f"{self.synchronous} synchronous of {self.streaming}, {self.lag_s:.1f} s behind"


async def load_standbys(connection: Queryable) -> StandbyFacts:
    return StandbyFacts(**require_row(await connection.fetchrow(Q.standbys)))


async def is_standby(connection: Queryable) -> bool:
    return bool(require_row(await connection.fetchrow(Q.ledger_settings))["is_standby"])


def find_standby_fault(found: StandbyFacts, expected: int) -> str:
    """What is wrong and what to do next, or nothing. `expected`: HOLDFAST_LEDGER_STANDBYS_MIN."""
    wait = f"on the primary, {SET_NAMES.format(expected=expected)}"
    if not expected and found.waits_for:
        return (
            "commits wait for a standby, and a wait that takes too long is cancelled, which shows bookings "
            f"that no standby has: set HOLDFAST_LEDGER_STANDBYS_MIN={found.waits_for}"
        )
    if expected and not found.names.strip():
        return f"commits wait for no standby, and bookings would be lost with the primary: {wait}"
    if expected and found.synchronous_commit in ("off", "local"):
        return (
            f"PostgreSQL has synchronous_commit = {found.synchronous_commit} and acknowledges bookings that "
            "no standby has: set it to on"
        )
    if found.waits_for < expected:
        return f"commits wait for {found.waits_for} of {expected} standbys: {wait}"
    if expected and found.hidden:
        return "our account may not see the state of standbys: GRANT pg_monitor to it"
    if found.synchronous < expected:
        return (
            f"{found.synchronous} of {expected} synchronous standbys are connected, and commits wait: start "
            "them, and look at their logs; docs/operating/standby.md says how to sell without them"
        )
    return ""


class StandbyGauge:
    def __init__(self, postgres: Postgres, expected: int) -> None:
        self._postgres = postgres
        self._expected = expected

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog."""
        found = await load_standbys(self._postgres)
        metrics.measure("ledger_standbys", found.synchronous)
        metrics.measure("ledger_standbys_missing", max(self._expected - found.synchronous, 0))
        metrics.measure("ledger_standby_lag_seconds", found.lag_s)
        return 0
