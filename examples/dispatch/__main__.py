"""Ride dispatch on a live map: `python -m examples.dispatch`, or `make dispatch`. Ctrl-C stops everything.

It starts PostgreSQL, Valkey and two workers in a temporary folder, simulates a city, and serves its map.
"""

import argparse
import asyncio
import json
import random
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import msgspec
import uvicorn
import uvloop
from redis.asyncio import Redis

from examples.dispatch.cars import Fleet
from examples.dispatch.city import City
from examples.dispatch.ledger import open_ledger
from examples.dispatch.phones import Habits, Manner, Phones
from examples.dispatch.rules import Rules
from examples.dispatch.server import Faults, build_application
from examples.dispatch.simulation import Demand, Simulation
from examples.dispatch.worker import Plan
from holdfast.engines.embedded import Child, DataFolder, Engines, Supervisor, engines
from holdfast.engines.embedded.supervise import Recipe

HABITS = Habits({Manner.ACCEPT: 0.72, Manner.DECLINE: 0.18, Manner.IGNORE: 0.10})
LOOK_S = 0.5


@dataclass(frozen=True)
class Options:
    port: int
    drivers: int
    workers: int
    rides_per_s: float
    seed: int
    as_json: bool

    @classmethod
    def parse(cls, words: list[str] | None = None) -> "Options":
        parser = argparse.ArgumentParser(prog="python -m examples.dispatch", description=__doc__)
        parser.add_argument("--port", type=int, default=8100, help="0: a free one")
        parser.add_argument("--drivers", type=int, default=260)
        parser.add_argument("--workers", type=int, default=2)
        parser.add_argument("--rides-per-s", type=float, default=4.0, help="new riders per simulated second")
        parser.add_argument("--seed", type=int, default=7, help="of the simulated people")
        parser.add_argument("--json", dest="as_json", action="store_true", help="print the address as JSON")
        return cls(**vars(parser.parse_args(words)))


async def main(options: Options) -> None:
    city, rules = City(), Rules()
    with tempfile.TemporaryDirectory(prefix="dispatch-") as folder:
        async with engines(folder) as both, open_ledger(both.database_url) as ledger:
            await ledger.create_tables()
            fleet = Fleet.spread(city, options.drivers, seed=options.seed)
            await ledger.add_drivers([car.cell for car in fleet.cars])
            demand = Demand(city, options.rides_per_s, random.Random(options.seed))
            simulation = Simulation(ledger, fleet, Phones(ledger, HABITS), demand, rules)
            plan = Plan(both.database_url, both.redis_url, options.drivers, city, rules)
            async with start_workers(folder, plan, options.workers) as workers:
                await serve(simulation, both, workers, options)


@asynccontextmanager
async def start_workers(folder: str, plan: Plan, count: int) -> AsyncIterator[list[Child]]:
    """Processes of their own; one that dies is started again."""
    command = (sys.executable, "-m", "examples.dispatch.worker", msgspec.json.encode(plan).decode())
    supervisor = Supervisor(DataFolder(folder))
    try:
        yield await supervisor.start(
            *(
                Recipe(name=f"worker-{number}", command=command, ready=_at_once)
                for number in range(1, count + 1)
            )
        )
    finally:
        await supervisor.stop()


async def _at_once(_process_id: int) -> bool:
    return True


async def serve(simulation: Simulation, both: Engines, workers: list[Child], options: Options) -> None:
    """Until Ctrl-C, or until the simulation fails."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", options.port))
        application = build_application(simulation, faults_for(both, workers))
        settings = uvicorn.Config(
            application, log_level="warning", timeout_graceful_shutdown=1, access_log=False
        )
        server = MapServer(settings)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        print(
            json.dumps({"url": url}) if options.as_json else f"The live map: {url} (Ctrl-C stops it)",
            flush=True,
        )
        jobs = [asyncio.create_task(simulation.run()), asyncio.create_task(watch(simulation, both, workers))]
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await asyncio.wait([serving, *jobs], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
        for job in jobs:
            job.cancel()
        for outcome in await asyncio.gather(*jobs, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


class MapServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A signal ends the server alone: uvicorn would send it again afterwards, and the engines would be
        stopped in the middle of their own end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def faults_for(both: Engines, workers: list[Child]) -> Faults:
    async def kill_worker() -> None:
        random.choice([child for child in workers if child.pid] or workers).kill()

    async def kill_valkey() -> None:
        both.valkey.kill()

    async def flush_valkey() -> None:
        async with Redis.from_url(both.redis_url) as valkey:
            await valkey.flushall()

    return {"worker": kill_worker, "valkey": kill_valkey, "flush": flush_valkey}


async def watch(simulation: Simulation, both: Engines, workers: list[Child]) -> None:
    """What the page shows about the processes."""
    while True:
        alive = sum(1 for child in workers if child.pid)
        restarts = sum(child.restarts for child in workers)
        simulation.health = {
            "workers": f"{alive} of {len(workers)} up, restarts: {restarts}",
            "valkey": f"{'up' if both.valkey.pid else 'down'}, restarts: {both.valkey.restarts}",
        }
        await asyncio.sleep(LOOK_S)


if __name__ == "__main__":
    uvloop.run(main(Options.parse()))
