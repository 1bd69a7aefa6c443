"""A cluster of NATS servers with JetStream for a test alone; any of them can be killed and come back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import StreamInfo

from tests.support.bus_servers import NATS, NatsServer, a_free_port

READY_WITHIN_S = 40.0  # the servers choose a leader of their own accord, after some seconds


@dataclass
class Node(NatsServer):
    number: int = 0
    routes: Sequence[int] = ()  # the ports of all nodes for each other; ours is at our number

    def command(self) -> Sequence[str]:
        settings = self.folder / "nats.conf"
        others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes)
        settings.write_text(
            f"server_name: node-{self.number}\n"
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream {{ store_dir: "{self.folder}/store", sync_interval: always }}\n'
            f'cluster {{ name: tests, listen: "127.0.0.1:{self.routes[self.number]}", routes: [{others}] }}\n'
        )
        return str(NATS), "-c", str(settings)


@dataclass(frozen=True)
class NatsCluster:
    nodes: list[Node]

    @property
    def url(self) -> str:
        return "nats://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    async def streams(self) -> list[StreamInfo]:
        """Of the first node that knows them; NatsError while the cluster has no leader."""
        client = Client()
        await client.connect([f"nats://127.0.0.1:{node.port}" for node in self.nodes], allow_reconnect=False)
        try:
            return await client.jetstream(timeout=2).streams_info()
        finally:
            await client.close()

    async def leader_of(self, stream: str) -> Node:
        (found,) = [one for one in await self.streams() if one.config.name == stream]
        assert found.cluster is not None
        assert found.cluster.leader is not None
        return self.nodes[int(found.cluster.leader.removeprefix("node-"))]

    async def is_ready(self) -> bool:
        """It has a leader and would create streams, and every replica of every stream is up to date."""
        try:
            found = await self.streams()
        except (NatsError, OSError, TimeoutError):
            return False
        return all(
            replica.current and not replica.offline
            for one in found
            if one.cluster is not None
            for replica in one.cluster.replicas or ()
        )


@asynccontextmanager
async def a_nats_cluster(folder: Path, nodes: int = 3) -> AsyncIterator[NatsCluster]:
    """Started; `is_ready` says when it can be used."""
    routes = [a_free_port() for _ in range(nodes)]
    folders = [folder / f"nats-{number}" for number in range(nodes)]
    for one in folders:
        one.mkdir()
    cluster = NatsCluster([Node(own, number=i, routes=routes) for i, own in enumerate(folders)])
    try:
        await asyncio.gather(*(node.start() for node in cluster.nodes))
        yield cluster
    finally:
        await asyncio.gather(*(node.kill() for node in cluster.nodes if node.process is not None))
