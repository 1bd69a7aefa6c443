"""A sale on a cluster of Redis: a primary is killed, its replica takes over, and a slot moves (R19)."""

import time

from holdfast.claim import pool_keys
from holdfast.engines.redis_url import slot_of
from tests.support.box_office import office
from tests.support.engine_folder import engine_folder
from tests.support.redis_servers import Server, a_cluster, move_slot
from tests.support.storm_shows import a_programme, assert_promises_hold, first_sale_after, on_sale
from tests.support.wait import until

TIMES_HELD = 150


async def test_no_hold_is_lost_and_no_seat_is_sold_twice(is_full: bool) -> None:
    with engine_folder() as folder:
        async with (
            a_cluster(folder, replicas=3, node_timeout_ms=1000) as cluster,
            office(web=2 if is_full else 1, redis_url=cluster.url) as stage,
        ):
            programme = await a_programme(stage)
            shard = cluster.shard_of(programme.shows[0])
            replica, neighbour = cluster.replicas[shard], cluster.primaries[shard - 1]
            async with on_sale(stage, programme) as crowd:
                killed_at = time.monotonic()
                await cluster.primaries[shard].end()
                await crowd.held(crowd.progress.held + TIMES_HELD)
                await until(lambda: is_primary(replica))
                await crowd.held(crowd.progress.held + TIMES_HELD)
                moved_at = time.monotonic()
                await move_slot(slot_of(pool_keys(programme.shows[0])[0]), replica, neighbour, 0.05)
                await crowd.held(crowd.progress.held + TIMES_HELD)
                crowd.go_home()
                storm = await crowd.report()

            for what, moment in (("primary was killed", killed_at), ("slot began to move", moved_at)):
                print(f"first sale after a {what}: {first_sale_after(storm, moment):.2f} s")
            await assert_promises_hold(stage, programme, storm)


async def is_primary(server: Server) -> bool:
    return (await server.fields("INFO", "replication"))["role"] == "master"
