"""A cluster of three: shows on all of them, one that dies, a slot that moves, a fail-over that loses data."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import takewhile

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState
from holdfast.claim import Claimed, UnitsTaken, connect, pool_keys
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.redis_url import slot_of
from holdfast.engines.startup_checks import holds_facts
from holdfast.errors import Busy, Refusal, TooManyRequests
from holdfast.holds import SeatsTaken
from holdfast.holds.jobs import SaleJobs
from holdfast.runtime.check_settings import Severity
from holdfast.web.rate_limits import RateLimits
from tests.support.bus_servers import a_place, chain, messages_of, opened
from tests.support.cluster_sales import (
    TIMEOUT_MS,
    a_box,
    epoch_of,
    find_faults,
    has_map,
    is_on_map,
    is_served,
    outcome_of,
)
from tests.support.engine_folder import engine_folder
from tests.support.limited_holds import end_unpaid
from tests.support.live_viewer import live_maps, watch
from tests.support.own_engines import hold
from tests.support.redis_servers import (
    Cluster,
    a_cluster,
    begin_move,
    finish_move,
    move_key,
    move_slot,
    move_slot_at_once,
)
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

SHARDS = range(3)


@pytest.fixture(scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    with engine_folder() as folder:
        async with a_cluster(folder) as started:
            yield started


@pytest.fixture
async def box(config: Config, cluster: Cluster) -> AsyncIterator[App]:
    async with a_box(config, cluster) as opened:
        yield opened


class TestAllShards:
    async def test_holds_of_one_batch_are_decided_by_the_node_of_their_show(
        self, box: App, cluster: Cluster
    ) -> None:
        shows = [await cluster.a_show_on(box, shard) for shard in (*SHARDS, *SHARDS)]

        booked = await asyncio.gather(*(hold(box, show, an_owner(), 4, 5) for show in shows))

        assert {one.state for one in booked} == {BookingState.HELD}
        assert all([await is_on_map(box, one) for one in booked])
        for show in shows:
            keys = await cluster.primaries[cluster.shard_of(show)].call("EXISTS", *pool_keys(show))
            assert keys == 5
            with pytest.raises(SeatsTaken):
                await hold(box, show, an_owner(), 5)

    async def test_seats_of_a_hold_that_ended_can_be_held_again(self, box: App, cluster: Cluster) -> None:
        for shard in SHARDS:
            show = await cluster.a_show_on(box, shard)
            first = await hold(box, show, an_owner(), 4)
            await end_unpaid(box, first)

            assert (await hold(box, show, an_owner(), 4)).state is BookingState.HELD

    async def test_a_cancelled_hold_frees_its_seats_on_every_map(self, box: App, cluster: Cluster) -> None:
        booked = [await hold(box, await cluster.a_show_on(box, shard), an_owner(), 4) for shard in SHARDS]

        await asyncio.gather(*(box.holds.cancel(one) for one in booked))

        assert not any([await is_on_map(box, one) for one in booked])
        assert await find_faults(box, *(one.show_id for one in booked)) == []

    async def test_viewers_see_changes_of_all_shards(self, box: App, cluster: Cluster) -> None:
        shows = [await cluster.a_show_on(box, shard) for shard in SHARDS]
        async with live_maps(box, is_running=True) as live:
            crowd = [await watch(live, show) for show in shows]
            await asyncio.gather(*(hold(box, show, an_owner(), 4) for show in shows))

            async def all_see() -> bool:
                return {eyes.map for eyes in crowd} == {"AAAAH" + "A" * 15}

            await until(all_see, within_s=5)

    async def test_limits_are_shared_by_all_processes(
        self, config: Config, box: App, cluster: Cluster
    ) -> None:
        async with a_box(config, cluster) as other:
            strict = replace(config, logins_per_minute_max=3, logins_per_account_hour_max=9)
            here, there = RateLimits(box.redis, strict), RateLimits(other.redis, strict)
            for limits in (here, there, here):
                await limits.take("login", account="ann@example.org", address="198.51.100.7")

            with pytest.raises(TooManyRequests):
                await there.take("login", account="ann@example.org", address="198.51.100.7")

    async def test_the_bus_is_on_one_of_them(self, cluster: Cluster) -> None:
        async with opened(a_place(cluster.url)) as bus:
            await bus.append(chain(1, 2, 3), 0)

            assert [one.position for one in await messages_of(bus)] == [1, 2, 3]

    async def test_pools_of_the_claim_library_are_on_all_of_them(self, cluster: Cluster) -> None:
        async with connect(cluster.url) as pools:
            for number in range(6):
                pool = await pools.open(f"cluster-{number}", size=10)
                assert isinstance(await pool.claim([1, 2], owner=1, ttl_s=60), Claimed)
                assert isinstance(await pool.claim([2, 3], owner=2, ttl_s=60), UnitsTaken)

    async def test_the_start_and_the_doctor_look_at_every_node(self, box: App, cluster: Cluster) -> None:
        found = {one.what: one async for one in findings(box.config)}
        fit = await holds_facts(cluster.url)
        await cluster.primaries[2].call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        try:
            unfit = await holds_facts(cluster.url)
        finally:
            await cluster.primaries[2].call("CONFIG", "SET", "maxmemory-policy", "noeviction")

        assert found["holds"].health is Severity.OK
        assert (fit.faults, fit.warnings) == ((), ())
        assert "primaries: 3" in fit.version
        (fault,) = unfit.faults
        assert str(cluster.primaries[2].port) in fault
        assert "noeviction" in fault


class TestDeadNode:
    async def test_only_its_shows_are_sold_by_the_ledger_and_its_maps_are_rebuilt(
        self, box: App, cluster: Cluster
    ) -> None:
        """Without a state per node, one dead node would put all shows into ledger-only mode."""
        shows = [await cluster.a_show_on(box, shard) for shard in SHARDS]
        before = await asyncio.gather(*(hold(box, show, an_owner(), 4) for show in shows))
        await cluster.primaries[0].end()

        during = await asyncio.gather(*(hold(box, show, an_owner(), 5) for show in shows))
        stale = [(await box.bookings.sale(show)).map_stale for show in shows]  # type: ignore[union-attr]
        facts = await holds_facts(cluster.url)
        on_map = [await is_on_map(box, one) for one in during[1:]]
        with pytest.raises(EngineDown):  # /readyz says "degraded"
            await box.redis.call("PING")
        await cluster.bring_back(0)
        await until(lambda: is_served(box, shows[0]))

        assert {one.state for one in (*before, *during)} == {BookingState.HELD}
        assert stale == [True, False, False]
        assert on_map == [True, True]
        assert facts.faults == ()
        assert any(str(cluster.primaries[0].port) in warning for warning in facts.warnings)
        for seat in (4, 5):
            with pytest.raises(SeatsTaken):
                await hold(box, shows[0], an_owner(), seat)
        assert await is_on_map(box, await hold(box, shows[0], an_owner(), 6))
        assert await find_faults(box, *shows) == []

    async def test_viewers_of_its_shows_see_the_ledger_and_marked_maps_of_others_are_rebuilt(
        self, box: App, cluster: Cluster
    ) -> None:
        dead, well = [await cluster.a_show_on(box, shard) for shard in (1, 2)]
        jobs = SaleJobs(box.bookings, box.claims, box.seatmap, box.redis, box.config)
        async with live_maps(box, is_running=True) as live:
            crowd = [await watch(live, show) for show in (dead, well)]
            await cluster.primaries[1].end()
            try:
                await asyncio.gather(*(hold(box, show, an_owner(), 4) for show in (dead, well)))
                await box.bookings.mark_map_stale(well)
                await jobs.rebuild_stale()
                is_stale = (await box.bookings.sale(well)).map_stale  # type: ignore[union-attr]

                async def both_see() -> bool:
                    return {eyes.map for eyes in crowd} == {"AAAAH" + "A" * 15}

                await until(both_see, within_s=5)
            finally:
                await cluster.bring_back(1)

        assert not is_stale

    async def test_one_that_hangs_costs_one_time_out_and_not_one_per_batch(
        self, box: App, cluster: Cluster
    ) -> None:
        """Holds of all shows travel in batches: each would wait for the node that does not reply."""
        hung, well = [await cluster.a_show_on(box, shard, 40, owner_seats_max=40) for shard in (0, 1)]
        await asyncio.gather(*(hold(box, show, an_owner(), 0) for show in (hung, well)))
        cluster.primaries[0].signal(signal.SIGSTOP)
        took: list[float] = []
        ends_at = time.monotonic() + 2 * TIMEOUT_MS / 1000
        try:
            for seat in takewhile(lambda _: time.monotonic() < ends_at, range(1, 40)):
                await asyncio.sleep(0.05)  # buyers come at this pace, through the whole outage
                began = time.monotonic()
                both = await asyncio.gather(*(hold(box, show, an_owner(), seat) for show in (hung, well)))
                took.append(time.monotonic() - began)
                assert {one.state for one in both} == {BookingState.HELD}
        finally:
            cluster.primaries[0].signal(signal.SIGCONT)
        await until(lambda: is_served(box, hung))
        await until(cluster.is_whole)

        assert sum(one > TIMEOUT_MS / 1000 * 0.9 for one in took) <= 1, took
        with pytest.raises(SeatsTaken):
            await hold(box, hung, an_owner(), 3)
        assert await find_faults(box, hung, well) == []


class TestMovingSlot:
    @pytest.mark.parametrize("move", [partial(move_slot, pause_s=0.05), move_slot_at_once])
    async def test_while_it_moves_buyers_get_seats_or_a_refusal_to_retry(
        self, config: Config, box: App, cluster: Cluster, move: Callable[..., Awaitable[None]]
    ) -> None:
        """Its keys are on two nodes meanwhile (ASK, TRYAGAIN), then on the other one (MOVED)."""
        show = await cluster.a_show_on(box, 0, 400)
        slot = slot_of(pool_keys(show)[0])
        source, target = cluster.primaries[0], cluster.primaries[2]
        await hold(box, show, an_owner(), 0)
        moved = asyncio.Event()
        outcomes: list[Booking | Refusal | EngineDown] = []

        async def buy(app: App, seats: range) -> None:
            for seat in seats:
                outcomes.append(await outcome_of(hold(app, show, an_owner(), seat)))
                if moved.is_set():
                    break

        async with a_box(config, cluster) as other:
            buyers = [
                asyncio.create_task(buy(box, range(1, 398, 2))),
                asyncio.create_task(buy(other, range(1, 398))),
            ]
            await move(slot, source, target)
            moved.set()
            await asyncio.gather(*buyers)
            last = await hold(other, show, an_owner(), 399)
        held = [one for one in outcomes if isinstance(one, Booking)]
        refused = [one for one in outcomes if not isinstance(one, Booking)]
        seats = [seat for one in held for seat in one.seats]
        print(f"moving slot: {len(held)} held, refused {Counter(type(one).__name__ for one in refused)}")
        try:
            assert len(seats) == len(set(seats)) > 0
            assert {type(one) for one in refused} <= {Busy, EngineDown, SeatsTaken}  # 503, 503, 409
            assert await is_on_map(box, last)
            assert await target.call("EXISTS", *pool_keys(show)) == 5
            assert len(await Till(box, show).taken()) == len(seats) + 2
            assert await find_faults(box, show) == []
        finally:
            await move_slot(slot, target, source)

    async def test_a_map_that_has_moved_is_rebuilt_there_before_the_slot_has(
        self, box: App, cluster: Cluster
    ) -> None:
        """ASK for every call: a script that the node does not have yet needs it for both of its attempts."""
        show = await cluster.a_show_on(box, 0)
        slot, (source, target) = slot_of(pool_keys(show)[0]), (cluster.primaries[0], cluster.primaries[1])
        await hold(box, show, an_owner(), 4)
        await begin_move(slot, source, target)
        for key in pool_keys(show):
            await move_key(key, source, target)
        await target.call("SCRIPT", "FLUSH")
        before = await epoch_of(box, show)

        held = await hold(box, show, an_owner(), 5)
        after = await epoch_of(box, show)
        on_map, at_source = await is_on_map(box, held), await source.call("CLUSTER", "COUNTKEYSINSLOT", slot)
        await finish_move(slot, source, target)

        try:
            assert on_map
            assert at_source == 0
            assert after == before + 1
            with pytest.raises(SeatsTaken):
                await hold(box, show, an_owner(), 4)
            assert await find_faults(box, show) == []
        finally:
            await move_slot(slot, target, source)

    async def test_while_its_keys_are_on_two_nodes_the_ledger_sells(self, box: App, cluster: Cluster) -> None:
        """TRYAGAIN does not end by itself if the move has stopped half-way."""
        show, other = [await cluster.a_show_on(box, 0) for _ in range(2)]
        slot, (source, target) = slot_of(pool_keys(show)[0]), (cluster.primaries[0], cluster.primaries[1])
        await hold(box, show, an_owner(), 4)
        await begin_move(slot, source, target)
        await move_key(pool_keys(show)[0], source, target)

        held, beside = await asyncio.gather(hold(box, show, an_owner(), 5), hold(box, other, an_owner(), 5))
        sales = [await box.bookings.sale(one) for one in (show, other)]
        await move_slot(slot, source, target)

        try:
            assert held.state is BookingState.HELD
            assert [sale.map_stale for sale in sales if sale] == [True, False]
            assert await is_on_map(box, beside)
            assert await is_on_map(box, await hold(box, show, an_owner(), 6))
            assert await find_faults(box, show, other) == []
        finally:
            await move_slot(slot, target, source)


async def test_a_fail_over_that_loses_claims_loses_no_hold_and_sells_no_seat_twice(
    config: Config, pytestconfig: pytest.Config
) -> None:
    """The replica has not received the last claims. Its map came from another server: it is rebuilt first."""
    count = 3 if pytestconfig.getoption("--full") else 1
    with engine_folder() as folder:
        async with a_cluster(folder, replicas=count) as cluster, a_box(config, cluster) as box:
            show = await cluster.a_show_on(box, 0, 60, owner_seats_max=60)
            await hold(box, show, an_owner(), 0)
            primary, replica = cluster.primaries[0], cluster.replicas[0]
            await until(lambda: has_map(replica))
            replica.signal(signal.SIGSTOP)  # then cut: what was under way would still arrive otherwise
            await primary.call("CLIENT", "KILL", "TYPE", "replica")
            held = await asyncio.gather(*(hold(box, show, an_owner(), seat) for seat in range(1, 21)))
            await primary.end()
            replica.signal(signal.SIGCONT)
            await replica.call("CLUSTER", "FAILOVER", "TAKEOVER")
            await until(lambda: is_served(box, show))
            before = await epoch_of(box, show)

            again = [await outcome_of(hold(box, show, an_owner(), seat)) for seat in range(21)]
            new = await hold(box, show, an_owner(), 30)

            after = await epoch_of(box, show)
            assert {one.state for one in held} == {BookingState.HELD}
            assert {type(one) for one in again} == {SeatsTaken}
            assert after == before + 1
            assert await is_on_map(box, new)
            assert len(await Till(box, show).taken()) == 22
            assert await find_faults(box, show) == []
