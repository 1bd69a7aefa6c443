"""Buses on several nodes, seen by a test alike: an address, and nodes that are taken away and come back."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from holdfast.engines.bus import BusPlace
from holdfast.engines.embedded.privilege import child_setup
from tests.support.bus_servers import ROOT, a_place
from tests.support.nats_cluster import READY_WITHIN_S, NatsCluster, a_nats_cluster
from tests.support.wait import until

NODES = 3


class BusCluster(Protocol):
    place: BusPlace

    async def take_away(self, turn: int) -> None:
        """A node; with the first turn the one that leads the log."""

    async def bring_back(self) -> None: ...


@dataclass
class Nats:
    cluster: NatsCluster
    place: BusPlace
    gone: int = -1

    async def take_away(self, turn: int) -> None:
        """The leader first, then the others."""
        leader = await self.cluster.leader_of(self.place.name)
        self.gone = (self.cluster.nodes.index(leader) + turn) % NODES
        await self.cluster.nodes[self.gone].kill()

    async def bring_back(self) -> None:
        await self.cluster.nodes[self.gone].start()
        await until(self.cluster.is_ready, within_s=READY_WITHIN_S)


@dataclass
class Kafka:
    process: asyncio.subprocess.Process
    place: BusPlace
    gone: int = 0

    async def take_away(self, turn: int) -> None:
        self.gone = turn % NODES + 1
        await self._say(f"down {self.gone}")

    async def bring_back(self) -> None:
        await self._say(f"up {self.gone}")

    async def _say(self, words: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{words}\n".encode())
        assert (await self.process.stdout.readline()).decode().strip() == words


@asynccontextmanager
async def nats(folder: Path) -> AsyncIterator[BusCluster]:
    async with a_nats_cluster(folder, NODES) as cluster:
        await until(cluster.is_ready, within_s=READY_WITHIN_S)
        yield Nats(cluster, a_place(f"{cluster.url}?replicas={NODES}", messages_max=1_000_000))


@asynccontextmanager
async def kafka(_folder: Path) -> AsyncIterator[BusCluster]:
    place = a_place("")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.kafka_brokers", str(NODES), place.name),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=child_setup(None, signal.SIGTERM),
    )
    try:
        assert process.stdout is not None
        addresses = (await process.stdout.readline()).decode().strip()
        yield Kafka(process, replace(place, url=f"kafka://{addresses}"))
    finally:
        process.kill()
        await process.wait()


CLUSTERS = {"nats": nats, "kafka": kafka}
