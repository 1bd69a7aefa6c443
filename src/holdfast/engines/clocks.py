"""Clocks of the engines, compared with the clock of this machine.

Each engine decides with its own clock, so no seat is lost when they differ. People notice: a hold shows other
minutes than it has, sign-ins and webhooks are refused as too old, and sales open early or late.
"""

import time

from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries, Queryable
from holdfast.engines.redis import Redis

Q = Queries("holdfast.engines")
CLOCK_OFF_MAX_S = 0.5  # the alert HoldfastClockOff has the same


async def compare_ledger_clock(connection: Queryable) -> float:
    """Seconds that the ledger is ahead of this machine; exact to half the time of a round trip."""
    await connection.fetchval(Q.ledger_clock)  # plans the statement, and may open a connection
    before = time.time()
    clock = await connection.fetchval(Q.ledger_clock)
    return float(clock - (before + time.time()) / 2)


async def compare_redis_clock(redis: Redis) -> float:
    await redis.call("PING")
    before = time.time()
    seconds, micros = await redis.call("TIME")
    return int(seconds) + int(micros) / 1e6 - (before + time.time()) / 2


class ClockGauge:
    """A job of every process: each machine has a clock of its own."""

    def __init__(self, postgres: Postgres, redis: Redis) -> None:
        self._postgres = postgres
        self._redis = redis

    async def look(self) -> int:
        """Always returns 0: there is no backlog. An engine that is down keeps its last value."""
        metrics.measure("clock_ahead_seconds", await compare_ledger_clock(self._postgres), engine="ledger")
        try:
            metrics.measure("clock_ahead_seconds", await compare_redis_clock(self._redis), engine="holds")
        except EngineDown:  # HoldfastRedisAway reports that
            return 0
        return 0
