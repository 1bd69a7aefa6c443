"""Servers of Valkey for a test alone: a cluster, or a primary with a replica and Sentinels."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from redis.asyncio import Redis as Client
from redis.exceptions import RedisError

from holdfast.app import App
from holdfast.claim import pool_keys
from holdfast.engines.embedded.binaries import find_valkey
from holdfast.engines.redis_url import slot_of
from tests.support import shows as cast
from tests.support.wait import is_listening, until

HOST = "127.0.0.1"
SLOTS = 16_384
SETTINGS = {
    "bind": HOST,
    "save": "''",
    "appendonly": "no",
    "loglevel": "warning",
    "maxmemory-policy": "noeviction",
    "repl-diskless-sync-delay": "0",
}
CLUSTER_SETTINGS = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes.conf",
    "cluster-require-full-coverage": "no",
}
SENTINEL_SETTINGS = {"down-after-milliseconds": 500, "failover-timeout": 2000, "parallel-syncs": 1}


@dataclass
class Server:
    """One process, with the same address whenever it is started."""

    folder: Path
    port: int
    bus: int  # the port of a cluster's own messages
    words: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)  # beside our own
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    async def start(self) -> None:
        file = self.folder / "valkey.conf"
        self.process = await asyncio.create_subprocess_exec(
            str(find_valkey().path),
            *(str(file), *self.words),
            env={**os.environ, **self.env},
            stdout=asyncio.subprocess.DEVNULL,
        )
        await until(lambda: is_listening(self.port))

    async def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None and self.process.returncode is None:
            self.signal(signal.SIGCONT)
            self.signal(how)
            await self.process.wait()

    async def kill(self) -> None:
        await self.end()

    def signal(self, how: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, how)

    async def call(self, *command: Any) -> Any:
        async with Client(host=HOST, port=self.port, decode_responses=True, socket_timeout=5) as client:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def fields(self, *command: str) -> dict[str, str]:
        """Of INFO or CLUSTER INFO."""
        async with Client(host=HOST, port=self.port, socket_timeout=5) as client:
            connection = await client.connection_pool.get_connection()  # type: ignore[no-untyped-call]
            await connection.send_command(*command)
            found = await connection.read_response()
            await client.connection_pool.release(connection)
        text = found.decode() if isinstance(found, bytes) else found
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def make_server(folder: Path, name: str, *words: str, lines: Sequence[str] = (), **more: str) -> Server:
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind((HOST, 0))
        port, bus = one.getsockname()[1], other.getsockname()[1]
    own = folder / name
    own.mkdir()
    settings = SETTINGS if "--sentinel" not in words else {"bind": HOST}
    settings = settings | more | {"port": str(port), "dir": str(own)}
    if "cluster-enabled" in more:
        settings["cluster-port"] = str(bus)  # else 10 000 above the other, which may be above all ports
    text = [f"{name} {value}" for name, value in settings.items()]
    (own / "valkey.conf").write_text("\n".join([*text, *lines]) + "\n")
    return Server(own, port, bus, words)


@asynccontextmanager
async def running(*servers: Server) -> AsyncIterator[None]:
    try:
        await asyncio.gather(*(server.start() for server in servers))
        yield
    finally:
        await asyncio.gather(*(server.end() for server in servers))


@dataclass(frozen=True)
class Cluster:
    """The slots are divided among `primaries` in their order; replicas[i] follows primaries[i]."""

    primaries: list[Server]
    replicas: list[Server]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{HOST}:{one.port}" for one in self.primaries[:2])

    def shard_of(self, show_id: int) -> int:
        slot = slot_of(pool_keys(show_id)[0])
        return next(i for i, (first, end) in enumerate(self.ranges) if first <= slot < end)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        count = len(self.primaries)
        return list(pairwise(SLOTS * i // count for i in range(count + 1)))

    async def a_show_on(self, app: App, shard: int, seats: int = 20, **terms: Any) -> int:
        while self.shard_of(show := await cast.a_show(app, seats, **terms)) != shard:
            pass
        return show

    async def bring_back(self, shard: int) -> None:
        """A primary that was killed, with its slots and without its data."""
        await self.primaries[shard].start()
        await until(self.is_whole)

    async def is_whole(self) -> bool:
        """Every server knows every other one and all slots."""
        servers = [*self.primaries, *self.replicas]
        try:
            found = [await server.fields("CLUSTER", "INFO") for server in servers]
            links = [await server.fields("INFO", "replication") for server in self.replicas]
        except (OSError, RedisError):
            return False
        states = {(one["cluster_state"], one["cluster_known_nodes"]) for one in found}
        are_linked = all(one.get("master_link_status") == "up" for one in links)
        return states == {("ok", str(len(servers)))} and are_linked


@asynccontextmanager
async def a_cluster(
    folder: Path, primaries: int = 3, replicas: int = 0, node_timeout_ms: int = 3000
) -> AsyncIterator[Cluster]:
    """Replicas of the first primaries. Joined by the commands that redis-cli would send.

    `node_timeout_ms`: then a node counts as dead; a busy machine is not a dead node.
    """
    given = CLUSTER_SETTINGS | {"cluster-node-timeout": str(node_timeout_ms)}
    servers = [make_server(folder, f"node-{i}", **given) for i in range(primaries + replicas)]
    cluster = Cluster(servers[:primaries], servers[primaries:])
    async with running(*servers):
        for number, (server, (first, end)) in enumerate(zip(cluster.primaries, cluster.ranges, strict=True)):
            await server.call("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            await server.call("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in servers[1:]:
            await server.call("CLUSTER", "MEET", HOST, servers[0].port, servers[0].bus)
        await until(lambda: _all_know(servers))
        for primary, replica in zip(cluster.primaries, cluster.replicas, strict=False):
            await replica.call("CLUSTER", "REPLICATE", await primary.call("CLUSTER", "MYID"))
        await until(cluster.is_whole)
        yield cluster


async def _all_know(servers: Sequence[Server]) -> bool:
    found = [await server.fields("CLUSTER", "INFO") for server in servers]
    return {one["cluster_known_nodes"] for one in found} == {str(len(servers))}


async def move_slot(slot: int, source: Server, target: Server, pause_s: float = 0) -> None:
    """As redis-cli does it: key by key, with a pause after each: calls meet every state in between."""
    await begin_move(slot, source, target)
    while keys := await source.call("CLUSTER", "GETKEYSINSLOT", slot, 100):
        for key in keys:
            await move_key(key, source, target)
            await asyncio.sleep(pause_s)
    await finish_move(slot, source, target)


async def move_slot_at_once(slot: int, source: Server, target: Server) -> None:
    """As Valkey 9 can do it: all keys, then the slot, in one step for clients."""
    target_id = await target.call("CLUSTER", "MYID")
    await source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target_id)

    async def is_done() -> bool:
        return int(await source.call("CLUSTER", "COUNTKEYSINSLOT", slot)) == 0

    await until(is_done)


async def begin_move(slot: int, source: Server, target: Server) -> None:
    source_id, target_id = [await server.call("CLUSTER", "MYID") for server in (source, target)]
    await target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    await source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)


async def move_key(key: str, source: Server, target: Server) -> None:
    await source.call("MIGRATE", HOST, target.port, key, 0, 5000)


async def finish_move(slot: int, source: Server, target: Server) -> None:
    target_id = await target.call("CLUSTER", "MYID")
    for server in (target, source):  # the others learn it from them
        await server.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)


@dataclass(frozen=True)
class Watched:
    """A primary, its replica and the Sentinels that watch them as `box`."""

    primary: Server
    replica: Server
    sentinels: list[Server]

    @property
    def url(self) -> str:
        hosts = ",".join(f"{HOST}:{one.port}" for one in self.sentinels)
        return f"redis+sentinel://{hosts}/box/0"


@asynccontextmanager
async def watched_servers(folder: Path, sentinels: int = 3) -> AsyncIterator[Watched]:
    primary = make_server(folder, "primary")
    replica = make_server(folder, "replica", replicaof=f"{HOST} {primary.port}")
    watch = [
        f"sentinel monitor box {HOST} {primary.port} 1",
        *(f"sentinel {name} box {value}" for name, value in SENTINEL_SETTINGS.items()),
    ]
    watchers = [make_server(folder, f"sentinel-{i}", "--sentinel", lines=watch) for i in range(sentinels)]
    both = Watched(primary, replica, watchers)
    async with running(primary, replica):
        await until(lambda: _is_linked(replica))
        async with running(*watchers):
            await until(lambda: _all_watch(watchers))
            yield both


async def _is_linked(replica: Server) -> bool:
    return (await replica.fields("INFO", "replication")).get("master_link_status") == "up"


async def _all_watch(sentinels: Sequence[Server]) -> bool:
    """Each knows the replica and the other Sentinels: it could fail over now."""
    found = [(await one.fields("INFO", "sentinel"))["master0"] for one in sentinels]
    return all(
        "status=ok" in one and "slaves=1" in one and f"sentinels={len(sentinels)}" in one for one in found
    )
