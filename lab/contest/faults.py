"""Faults that strike while clients are in the middle of a sale, and how the engines get well again.

Each fault has two steps. `prepare`: before the clients under test begin. `strike`: while they stand still.

Redlock is attacked where its own description says that it is weak: two of its five servers are down while the
lock is taken, and the fault hits one of the three that voted for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lab.contest.processes import ClientProcess
from lab.contest.servers import Servers, Valkey
from lab.strategies.strategy import Times

CALM = Times(hold_ttl_ms=20_000, lock_ttl_ms=20_000)  # nothing lapses by itself while a fault strikes
SHORT = Times(hold_ttl_ms=1000, lock_ttl_ms=400)  # a client stands still for longer than both
JUMP_S = 60  # of the clock: beyond all of CALM
DOWN = (3, 4)  # servers of Redlock that are down while the lock is taken
HIT = 2  # the server of Redlock that the fault hits


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    times: Times = CALM
    needs_redis: bool = False
    stops_clients: bool = False


SCENARIOS = (
    Scenario("race", "two read before one writes"),
    Scenario("pause", "client stopped longer than its lock", SHORT, stops_clients=True),
    Scenario("slow_payment", "payment outlasts the hold", SHORT),
    Scenario("killed", "Redis killed, restarts empty", needs_redis=True),
    Scenario("flushed", "Redis flushed", needs_redis=True),
    Scenario("failover", "failover to a replica that is behind", needs_redis=True),
    Scenario("clock", "Redis' clock jumps a minute", needs_redis=True),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@dataclass(frozen=True)
class Target:
    """Where the clients of one duel find Redis."""

    redis_url: str
    voters: tuple[Valkey, ...]
    hit: Valkey  # the server that the fault hits


def choose_target(servers: Servers, strategy: str, scenario: Scenario) -> Target:
    is_redlock, voters = strategy == "redlock", list(servers.voters)
    url, hit = servers.redis_url, voters[HIT] if is_redlock else servers.main
    if scenario.name == "clock":
        assert servers.turned is not None, "libfaketime is not installed"
        hit = servers.turned
        if is_redlock:
            voters[HIT] = hit
        else:
            url = hit.url
    return Target(url, tuple(voters), hit)


def why_not(servers: Servers, strategy: str, scenario: Scenario) -> str:
    """Why a fault cannot be tried on a strategy; empty if it can."""
    if scenario.name == "clock" and servers.turned is None:
        return "libfaketime is not installed (Debian: apt install libfaketime)"
    if scenario.name == "failover" and strategy == "redlock":
        return "Redlock has no replicas"
    return ""


class Fault:
    def __init__(self, servers: Servers, strategy: str, scenario: Scenario) -> None:
        self._servers = servers
        self._scenario = scenario
        self.target = choose_target(servers, strategy, scenario)
        self._down = [self.target.voters[i] for i in DOWN] if strategy == "redlock" else []

    async def prepare(self) -> None:
        if self._scenario.name == "failover":
            await self._servers.follow()
            await self._servers.replica.call(
                "REPLICAOF", "NO", "ONE"
            )  # the cut: it hears of nothing from here
        if self._scenario.needs_redis:
            for server in self._down:
                await server.child.hold()

    async def strike(self, processes: list[ClientProcess]) -> str:
        """One line for the log."""
        hit = self.target.hit
        match self._scenario.name:
            case "pause":
                for process in processes:
                    process.stop()
                pids = ", ".join(str(process.pid) for process in processes)
                return f"SIGSTOP to {pids}: they stand still for longer than locks and holds last"
            case "killed":
                await hit.restart()
                text = "Redis is killed (-9) and starts again, empty"
            case "flushed":
                await hit.call("FLUSHALL")
                text = "FLUSHALL"
            case "failover":
                await hit.child.hold()
                self._servers.point_to(self._servers.replica)
                text = "the main Redis is gone; its replica, cut off before the sale, takes over"
            case "clock":
                hit.turn_clock(JUMP_S)
                text = f"the clock of Redis jumps {JUMP_S} s ahead"
            case _:
                return "time passes"
        for server in self._down:
            await server.child.release()
        return text + (" (one of five; two that were down are back)" if self._down else "")

    async def heal(self) -> None:
        servers = self._servers
        for server in (*self._down, servers.main):
            if server.child.is_held:
                await server.child.release()
        servers.point_to(servers.main)
        if servers.turned is not None:
            servers.turned.turn_clock(0)
            await servers.turned.call("FLUSHALL")
        await servers.replica.call("REPLICAOF", "NO", "ONE")
        await servers.empty()


@asynccontextmanager
async def planned(servers: Servers, strategy: str, scenario: Scenario) -> AsyncIterator[Fault]:
    fault = Fault(servers, strategy, scenario)
    try:
        yield fault
    finally:
        await fault.heal()
