"""Conformance tests of the claim library (R41): a server that loses its data, comes back or is away."""

import asyncio
from contextlib import aclosing

import pytest

from holdfast.claim import (
    CLAIMED,
    COMMITTED,
    FREE,
    Change,
    Claim,
    Claimed,
    Contents,
    EngineDown,
    LimitReached,
    Pool,
    PoolClosed,
    PoolMap,
    Pools,
    UnitsTaken,
)
from tests.support.claim_implementations import SIZE, Implementation, Store, states, take, won
from tests.support.wait import until


class TestALostMap:
    """Redis may lose everything, or come back with old data. Nothing is granted from such a map."""

    async def test_is_rebuilt_from_the_durable_store(
        self, server: Implementation, pools: Pools, pool_id: int, store: Store
    ) -> None:
        pool = await pools.open(pool_id, size=SIZE, load=store.load)
        sold, live = await take(pool, 1, 2, owner=1), await take(pool, 5, owner=2)
        store.contents = Contents(committed=[sold], live=[(live, 30)], blocked=[9])
        await server.lose_all()

        refused = await pool.claim([1, 5, 9, 10], owner=3, ttl_s=60)

        assert refused == UnitsTaken((1, 5, 9))
        assert await states(pool) == "ABBAAHAAAXAAAAAAAAAA"
        assert await pool.claim([3, 4], owner=1, ttl_s=60, limit=3) == LimitReached(2)
        assert await pool.extend(live, ttl_s=60)
        assert await pool.free(sold)

    async def test_without_a_durable_store_everything_is_free(
        self, server: Implementation, pool: Pool
    ) -> None:
        claim = await take(pool, 5)
        await server.lose_all()

        assert not await pool.extend(claim, ttl_s=60), "its owner learns that it is lost"
        assert await states(pool) == "A" * SIZE

    async def test_grants_nothing_for_as_long_as_claims_may_have_lived(
        self, server: Implementation, pools: Pools, pool_id: int
    ) -> None:
        pool = await pools.open(pool_id, size=SIZE, quarantine_s=0.05)

        async def is_open() -> bool:
            return bool(won([await pool.claim([5], owner=1, ttl_s=60)]))

        await until(is_open)
        await server.lose_all()

        assert await pool.claim([6], owner=2, ttl_s=60) == PoolClosed()

    async def test_by_a_restart_is_rebuilt(
        self, server: Implementation, pools: Pools, pool_id: int, store: Store
    ) -> None:
        pool = await pools.open(pool_id, size=SIZE, load=store.load)
        claim = await take(pool, 5)
        await pool.commit(claim)
        store.contents = Contents(committed=[claim])
        await server.restart()

        assert await pool.claim([5], owner=2, ttl_s=60) == UnitsTaken((5,))
        assert store.reads == 2

    async def test_old_data_after_a_restart_is_not_trusted(
        self, server: Implementation, pools: Pools, pool_id: int, store: Store
    ) -> None:
        """The disk was a second behind: the map on it shows a sold unit as free."""
        pool = await pools.open(pool_id, size=SIZE, load=store.load)
        await server.save()
        version = (await pool.read()).version
        claim = await take(pool, 5)
        store.contents = Contents(committed=[claim])
        await server.restart(with_old_data=True)

        assert await pool.claim([5], owner=2, ttl_s=60) == UnitsTaken((5,))
        assert (await pool.read()).version > version

    async def test_that_many_processes_notice_is_rebuilt_once(
        self, server: Implementation, pool_id: int, store: Store
    ) -> None:
        connections = [server.connect() for _ in range(5)]
        sides = [await each.open(pool_id, size=SIZE, load=store.load) for each in connections]
        store.reads = 0
        await server.lose_all()

        outcomes = await asyncio.gather(
            *(side.claim([5], owner=owner, ttl_s=60) for owner, side in enumerate(sides))
        )

        assert len(won(outcomes)) == 1
        assert store.reads == 1
        for each in connections:
            await each.close()

    @pytest.mark.parametrize("more_losses", [1, 2])
    async def test_is_not_rebuilt_from_what_was_loaded_before_another_loss(
        self, server: Implementation, pool_id: int, more_losses: int
    ) -> None:
        """A slow process has read its rows; then the map is lost again, another process rebuilds it and sells
        a unit. What the slow process has read must not replace that map, nor follow it if it is lost, too."""
        slow_store, store = Store(), Store()
        async with server.connect() as one, server.connect() as other:
            slow = await one.open(pool_id, size=SIZE, load=slow_store.load)
            quick = await other.open(pool_id, size=SIZE, load=store.load)
            await server.lose_all()
            slow_store.is_quick.clear()
            late = asyncio.create_task(slow.claim([5], owner=1, ttl_s=60))
            await until(lambda: asyncio.sleep(0, slow_store.reads == 2))
            await server.lose_all()
            sold = await take(quick, 5, owner=2)
            slow_store.contents = store.contents = Contents(committed=[sold])
            if more_losses == 2:
                await server.lose_all()
                await until(lambda: asyncio.sleep(0, slow_store.reads == 3), within_s=5)

            slow_store.is_quick.set()

            assert await late == UnitsTaken((5,))

    async def test_is_not_replaced_by_a_guess_if_the_durable_store_fails(
        self, server: Implementation, pools: Pools, pool_id: int
    ) -> None:
        async def load() -> Contents:
            if is_down:
                raise ConnectionError("the durable store is down")
            return Contents()

        is_down = False
        pool = await pools.open(pool_id, size=SIZE, load=load)
        await server.lose_all()
        is_down = True

        with pytest.raises(ConnectionError):
            await pool.claim([5], owner=1, ttl_s=60)
        is_down = False
        assert won([await pool.claim([5], owner=1, ttl_s=60)])

    async def test_numbers_of_a_new_map_begin_above_those_of_the_durable_store(
        self, server: Implementation, pools: Pools, pool_id: int, store: Store
    ) -> None:
        """Even if the clock of the server is behind."""
        year_us = 365 * 24 * 3600 * 10**6
        highest = (await server.now_ms()) * 1000 + year_us
        store.contents = Contents(fence=highest)
        pool = await pools.open(pool_id, size=SIZE, load=store.load)

        outcome = await pool.claim([5], owner=1, ttl_s=60)

        assert isinstance(outcome, Claimed)
        assert outcome.fence > highest

    async def test_is_rebuilt_on_request(self, pools: Pools, pool_id: int, store: Store) -> None:
        pool = await pools.open(pool_id, size=SIZE, load=store.load)
        await take(pool, 5)
        store.contents = Contents(committed=[Claim("row", 1, (7,))])

        await pool.rebuild()

        assert await states(pool) == "AAAAAAABAAAAAAAAAAAA"


async def answers(pool: Pool) -> bool:
    try:
        return bool(await pool.read())
    except EngineDown:
        return False


class TestNoServer:
    async def test_nothing_is_granted_without_a_server(self, server: Implementation, pool: Pool) -> None:
        claim = await take(pool, 5)
        await server.stop()

        with pytest.raises(EngineDown):
            await pool.claim([6], owner=1, ttl_s=60)
        with pytest.raises(EngineDown):
            await pool.extend(claim, ttl_s=60)
        await server.start()
        await until(lambda: answers(pool))


class TestChanges:
    async def test_lead_from_the_first_map_to_the_last(self, server: Implementation, pool: Pool) -> None:
        async with aclosing(pool.changes()) as changes:
            first = await anext(changes)
            claim = await take(pool, 1, 2)
            await pool.commit(claim)
            short = await take(pool, 5, ttl_s=0.001)

            following = [await anext(changes) for _ in range(4)]

        assert isinstance(first, PoolMap)
        assert [change.version for change in following] == [first.version + n for n in range(1, 5)]
        assert [change.units for change in following if isinstance(change, Change)] == [
            {1: CLAIMED, 2: CLAIMED},
            {1: COMMITTED, 2: COMMITTED},
            {5: CLAIMED},
            {5: FREE},
        ]
        assert short.units == (5,)

    async def test_after_a_version_go_on_where_it_ended(self, pool: Pool) -> None:
        version = (await pool.read()).version
        await take(pool, 1)

        async with aclosing(pool.changes(since=version)) as changes:
            assert await anext(changes) == Change(version + 1, {1: CLAIMED})

    async def test_after_a_rebuild_begin_with_the_new_map(self, server: Implementation, pool: Pool) -> None:
        await take(pool, 1)
        version = (await pool.read()).version
        await server.lose_all()

        async with aclosing(pool.changes(since=version)) as changes:
            found = await anext(changes)

        assert isinstance(found, PoolMap)
        assert found.units == b"A" * SIZE
        assert found.version > version
