"""A sale on a cluster of Redis: primaries are killed, their replicas take over, and slots move (R19)."""

import signal
import time
from dataclasses import dataclass
from functools import partial

import pytest
from redis.exceptions import RedisError

from holdfast.claim import pool_keys
from holdfast.engines.redis_url import slot_of
from tests.support.box_office import Crowd, office
from tests.support.engine_folder import engine_folder
from tests.support.redis_servers import Cluster, Server, a_cluster, move_slot
from tests.support.result_tables import Table
from tests.support.storm_shows import a_programme, assert_promises_hold, first_sale_after, on_sale
from tests.support.wait import until

MOVE_PAUSE_S = 0.05  # between two keys of a slot


@dataclass(frozen=True)
class Size:
    web: int
    held: int  # holds before and after each fault
    rounds: int  # of fail-overs of every shard, and of moves of every show
    seconds_max: float


SMALL = Size(web=1, held=150, rounds=0, seconds_max=90)
FULL = Size(web=2, held=300, rounds=2, seconds_max=400)


@pytest.fixture
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("a cluster of Redis during a sale")
    pytestconfig.pluginmanager.register(made, "the table of the Redis cluster")
    return made


@dataclass
class Shards:
    """Which server has the slots of each part now, and which one follows it."""

    cluster: Cluster
    crowd: Crowd
    held: int

    def __post_init__(self) -> None:
        self.pairs = list(zip(self.cluster.primaries, self.cluster.replicas, strict=True))

    async def sell(self) -> None:
        await self.crowd.held(self.crowd.progress.held + self.held, within_s=120)

    async def kill_primary(self, shard: int) -> float:
        """The cluster itself finds out, and promotes the replica."""
        primary, replica = self.pairs[shard]
        killed_at = time.monotonic()
        await primary.end()
        await self.sell()
        await until(partial(is_role, replica, "master"))
        return killed_at

    async def lose_replication_then_primary(self, shard: int) -> float:
        """The replica has none of the last holds, and takes over. It stands still, then the link is cut: what
        was under way would still arrive otherwise."""
        primary, replica = self.pairs[shard]
        replica.signal(signal.SIGSTOP)
        await primary.call("CLIENT", "KILL", "TYPE", "replica")
        await self.sell()
        killed_at = time.monotonic()
        await primary.end()
        replica.signal(signal.SIGCONT)
        await replica.call("CLUSTER", "FAILOVER", "TAKEOVER")
        return killed_at

    async def bring_back(self, shard: int) -> None:
        """The old primary follows the new one."""
        old, new = self.pairs[shard]
        await old.start()
        await until(partial(is_linked, old), within_s=60)
        self.pairs[shard] = new, old

    async def move(self, show: int, steps: int) -> float:
        """The slot of a show, to another part of the cluster."""
        slot, began = slot_of(pool_keys(show)[0]), time.monotonic()
        owners = [primary for primary, _ in self.pairs]
        source = [await has_slot(one, slot) for one in owners].index(True)
        await move_slot(slot, owners[source], owners[(source + steps) % len(owners)], MOVE_PAUSE_S)
        return began


async def is_role(server: Server, role: str) -> bool:
    return (await server.fields("INFO", "replication"))["role"] == role


async def is_linked(server: Server) -> bool:
    try:
        found = await server.fields("INFO", "replication")
    except (OSError, RedisError):
        return False
    return found["role"] == "slave" and found.get("master_link_status") == "up"


async def has_slot(server: Server, slot: int) -> bool:
    ranges = await server.call("CLUSTER", "SLOTS")
    own = int(server.port)
    return any(first <= slot <= last and int(node[1]) == own for first, last, node, *_ in ranges)


async def test_no_hold_is_lost_and_no_seat_is_sold_twice(is_full: bool, table: Table) -> None:
    size = FULL if is_full else SMALL
    with engine_folder() as folder:
        async with (
            a_cluster(folder, replicas=3, node_timeout_ms=1000) as cluster,
            office(web=size.web, redis_url=cluster.url) as stage,
        ):
            programme = await a_programme(stage)
            moments: list[tuple[str, float]] = []
            async with on_sale(stage, programme, size.seconds_max) as crowd:
                shards = Shards(cluster, crowd, size.held)
                first = cluster.shard_of(programme.shows[0])
                moments.append(("primary killed", await shards.kill_primary(first)))
                await shards.bring_back(first)
                moments.append(("slot moved", await shards.move(programme.shows[0], 2)))
                for _ in range(size.rounds):
                    for shard in range(len(shards.pairs)):
                        at = await shards.lose_replication_then_primary(shard)
                        moments.append(("replication cut, primary killed", at))
                        await shards.sell()
                        await shards.bring_back(shard)
                    for show in programme.shows:
                        moments.append(("slot moved", await shards.move(show, 1)))
                        await shards.sell()
                await shards.sell()
                crowd.go_home()
                storm = await crowd.report()

            for what in dict.fromkeys(name for name, _ in moments):
                waits = [first_sale_after(storm, at) for name, at in moments if name == what]
                table.note(what, "times", len(waits))
                table.note(what, "first hold after", f"{max(waits):.2f} s")
            table.title += f": {len(storm.promises)} holds, answers {storm.statuses}, dropped {storm.dropped}"
            await assert_promises_hold(stage, programme, storm)
