"""Conformance tests of the claim library (R41): what every implementation of its front must do.

They use the public names only, and run on each implementation of the fixture: batched, and one call per round
trip. Connections stand for processes: they share nothing but the server. Losses of the server's data are in
test_claim_library_losses.py.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.claim import (
    Claim,
    Claimed,
    Contents,
    LimitReached,
    NotEnoughUnits,
    Pool,
    PoolClosed,
    Pools,
    UnitsTaken,
)
from tests.support.claim_implementations import (
    SIZE,
    Implementation,
    Store,
    claimed,
    new_pool_id,
    states,
    take,
    wait_for_end,
    won,
)


class TestExclusive:
    """A unit has at most one owner, however many clients want it at the same moment."""

    async def test_of_many_that_want_the_same_units_one_gets_them(
        self, server: Implementation, pool_id: int
    ) -> None:
        async with server.connect() as one, server.connect() as other:
            sides = [await each.open(pool_id, size=SIZE) for each in (one, other)]

            outcomes = await asyncio.gather(
                *(sides[owner % 2].claim([7, 8], owner=owner, ttl_s=60) for owner in range(200))
            )

            (winner,) = won(outcomes)
            others = [outcome for outcome in outcomes if outcome != winner]
            assert set(others) == {UnitsTaken((7, 8))}
            assert await states(sides[0]) == "AAAAAAAHHAAAAAAAAAAA"

    async def test_any_units_are_given_to_one_owner_each(self, server: Implementation, pool_id: int) -> None:
        async with server.connect() as one, server.connect() as other:
            sides = [await each.open(pool_id, size=SIZE) for each in (one, other)]

            outcomes = await asyncio.gather(
                *(sides[owner % 2].claim_any(2, owner=owner, ttl_s=60) for owner in range(100))
            )

            given = [unit for outcome in won(outcomes) for unit in outcome.claim.units]
            assert sorted(given) == list(range(SIZE))
            assert NotEnoughUnits(0) in outcomes

    async def test_all_units_or_none(self, pool: Pool) -> None:
        await take(pool, 4, 5)

        refused = await pool.claim([3, 4, 5, 6], owner=2, ttl_s=60)

        assert refused == UnitsTaken((4, 5))
        assert await states(pool) == "AAAAHHAAAAAAAAAAAAAA"

    async def test_any_units_of_a_range_are_the_lowest_free_ones(self, pool: Pool) -> None:
        await take(pool, 11, 13)

        found = await pool.claim_any(3, owner=1, ttl_s=60, first=10, end=16)
        refused = await pool.claim_any(2, owner=1, ttl_s=60, first=10, end=16)

        assert claimed(found).units == (10, 12, 14)
        assert refused == NotEnoughUnits(1)

    async def test_units_in_any_order_and_twice_are_one_set(self, pool: Pool) -> None:
        assert (await take(pool, 5, 3, 4, 3)).units == (3, 4, 5)

    async def test_owners_with_long_numbers_are_not_confused(self, pool: Pool) -> None:
        first = await take(pool, 1, owner=2**63 - 2)
        await take(pool, 2, owner=2**63 - 1)

        assert await pool.claim([3, 4], owner=2**63 - 1, ttl_s=60, limit=2) == LimitReached(1)
        assert await pool.release(first)


class TestTime:
    async def test_a_claim_ends_at_its_end_by_the_clock_of_the_server(
        self, server: Implementation, pool: Pool
    ) -> None:
        claim = await take(pool, 5, ttl_s=0.1)
        end_ms = ((await pool.read(with_claims=True)).claims or {})[str(claim)]

        while True:
            before_ms = await server.now_ms()
            if won([await pool.claim([5], owner=2, ttl_s=60)]):
                break
            assert before_ms < end_ms, "it ended, and its unit was not free"
        assert await server.now_ms() >= end_ms, "its unit was free before it ended"

    async def test_an_extended_claim_has_its_new_end(self, server: Implementation, pool: Pool) -> None:
        claim = await take(pool, 5, ttl_s=5)

        assert await pool.extend(claim, ttl_s=60)

        end_ms = ((await pool.read(with_claims=True)).claims or {})[str(claim)]
        assert 50_000 < end_ms - await server.now_ms() <= 60_000

    async def test_a_claim_without_an_end_does_not_end(self, server: Implementation, pool: Pool) -> None:
        claim = await take(pool, 5, ttl_s=60)
        other = await take(pool, 6, ttl_s=0.001)

        assert await pool.extend(claim, ttl_s=None)
        await wait_for_end(server, pool, other)

        assert ((await pool.read(with_claims=True)).claims or {}) == {str(claim): float("inf")}

    async def test_a_claim_that_ended_cannot_be_extended(self, server: Implementation, pool: Pool) -> None:
        claim = await take(pool, 5, ttl_s=0.001)
        await wait_for_end(server, pool, claim)

        assert not await pool.extend(claim, ttl_s=60)
        assert await states(pool) == "A" * SIZE

    async def test_claims_that_ended_leave_nothing_behind(
        self, server: Implementation, pool: Pool, pool_id: int
    ) -> None:
        """A pool that never closes would grow by every owner it has ever had."""
        before = await server.count_entries(pool_id)
        for owner in range(9):
            last = await take(pool, owner, owner=owner, ttl_s=0.001)
        await wait_for_end(server, pool, last)

        assert await states(pool) == "A" * SIZE
        assert await server.count_entries(pool_id) == before

    async def test_nothing_is_granted_before_the_pool_opens_and_after_it_closes(self, pools: Pools) -> None:
        now, day = datetime.now(UTC), timedelta(days=1)
        early = await pools.open(new_pool_id(), size=SIZE, opens_at=now + day)
        late = await pools.open(new_pool_id(), size=SIZE, closes_at=now - day)

        assert await early.claim([1], owner=1, ttl_s=60) == PoolClosed()
        assert await late.claim_any(1, owner=1, ttl_s=60) == PoolClosed()


class TestOnlyItsOwn:
    """A late process frees nothing that has another owner by now."""

    async def test_a_release_by_another_owner_or_id_changes_nothing(self, pool: Pool) -> None:
        claim = await take(pool, 5, 6, owner=1, claim_id="mine")

        assert not await pool.release(Claim("mine", 2, claim.units))
        assert not await pool.release(Claim("yours", 1, claim.units))
        assert not await pool.release(Claim("mine", 1, (5,)))
        assert await states(pool) == "AAAAAHHAAAAAAAAAAAAA"

    async def test_a_late_release_leaves_the_next_owner_alone(
        self, server: Implementation, pool: Pool
    ) -> None:
        late = await take(pool, 5, 6, owner=1, ttl_s=0.001)
        await wait_for_end(server, pool, late)
        await take(pool, 6, 7, owner=2)

        assert not await pool.release(late)
        assert await states(pool) == "AAAAAAHHAAAAAAAAAAAA"

    async def test_a_claim_is_released_once(self, pool: Pool) -> None:
        claim = await take(pool, 5)

        assert sorted(await asyncio.gather(pool.release(claim), pool.release(claim))) == [False, True]
        assert await states(pool) == "A" * SIZE

    async def test_a_later_claim_on_a_unit_has_a_higher_fence(
        self, server: Implementation, pool: Pool
    ) -> None:
        fences = []
        for owner in range(3):
            outcome = await pool.claim([5], owner=owner, ttl_s=60)
            assert isinstance(outcome, Claimed)
            fences.append(outcome.fence)
            await pool.release(outcome.claim)
        await server.lose_all()
        outcome = await pool.claim([5], owner=4, ttl_s=60)
        assert isinstance(outcome, Claimed)

        assert fences == sorted(set(fences))
        assert outcome.fence > fences[-1]


class TestTheSameId:
    async def test_gives_the_same_claim_however_often(self, pool: Pool) -> None:
        outcomes = await asyncio.gather(
            *(pool.claim_any(2, owner=1, ttl_s=60, claim_id="once") for _ in range(10))
        )

        assert {claimed(outcome) for outcome in outcomes} == {Claim("once", 1, (0, 1))}
        assert await states(pool) == "HH" + "A" * 18

    async def test_of_another_owner_gives_nothing(self, pool: Pool) -> None:
        await take(pool, 1, owner=1, claim_id="once")

        assert await pool.claim([5], owner=2, ttl_s=60, claim_id="once") == UnitsTaken((1,))

    async def test_can_be_used_again_after_a_release(self, pool: Pool) -> None:
        await pool.release(await take(pool, 1, claim_id="again"))

        assert (await take(pool, 2, claim_id="again")).units == (2,)

    async def test_a_lost_reply_costs_no_second_set(self, server: Implementation, pool_id: int) -> None:
        """The request was carried out, and its reply was lost: the library sends it again by itself."""
        async with server.connect_losing_replies() as pools:
            pool = await pools.open(pool_id, size=SIZE)
            server.lose_a_reply()

            first = claimed(await pool.claim_any(2, owner=1, ttl_s=60))

            assert first.units == (0, 1)
            assert await states(pool) == "HH" + "A" * 18


class TestLimits:
    async def test_an_owner_gets_no_more_than_the_limit(self, pool: Pool) -> None:
        outcomes = await asyncio.gather(*(pool.claim_any(2, owner=1, ttl_s=60, limit=5) for _ in range(5)))

        assert len(won(outcomes)) == 2
        assert outcomes.count(LimitReached(4)) == 3

    async def test_committed_units_count_and_released_ones_do_not(self, pool: Pool) -> None:
        await pool.commit(await take(pool, 0, 1, 2))
        await pool.release(await take(pool, 3))

        assert await pool.claim([4, 5], owner=1, ttl_s=60, limit=4) == LimitReached(3)
        assert won([await pool.claim([4], owner=1, ttl_s=60, limit=4)])


class TestCommitting:
    async def test_committed_units_stay_until_they_are_freed(
        self, server: Implementation, pool: Pool
    ) -> None:
        claim = await take(pool, 5, 6, ttl_s=0.05)
        await pool.commit(claim)
        await wait_for_end(server, pool, await take(pool, 9, ttl_s=0.05))

        assert await states(pool) == "AAAAABBAAAAAAAAAAAAA"
        assert await pool.free(claim)
        assert not await pool.free(claim)
        assert await states(pool) == "A" * SIZE

    async def test_units_are_freed_without_their_claim(self, pool: Pool) -> None:
        await pool.commit(await take(pool, 5, 6))
        await pool.commit(await take(pool, 7))
        live = await take(pool, 8)

        assert await pool.free([6, 7, 8])

        assert await states(pool) == "AAAAABAAHAAAAAAAAAAA"
        assert await pool.claim([9, 10], owner=1, ttl_s=60, limit=3) == LimitReached(2)
        assert await pool.release(live)
        assert not await pool.free([6, 7, 8])

    async def test_the_durable_store_decides_against_a_live_claim(self, pool: Pool) -> None:
        """The first claim had ended before its row was written; the row counts all the same."""
        late = await take(pool, 5, 6, owner=1)
        await pool.release(late)
        other = await take(pool, 6, 7, owner=2)

        await pool.commit(late)

        assert await states(pool) == "AAAAABBAAAAAAAAAAAAA"
        assert not await pool.extend(other, ttl_s=60)


class TestWrongCalls:
    @pytest.mark.parametrize("units", [[], [-1], [SIZE], [0, SIZE]])
    async def test_units_that_the_pool_does_not_have(self, pool: Pool, units: list[int]) -> None:
        with pytest.raises(ValueError, match="name units from 0 to 19"):
            await pool.claim(units, owner=1, ttl_s=60)

    @pytest.mark.parametrize("claim_id", ["", "a|b", "a@b", "~a", "a" * 201])
    async def test_ids_with_another_meaning(self, pool: Pool, claim_id: str) -> None:
        with pytest.raises(ValueError, match="a claim id has"):
            await pool.claim([1], owner=1, ttl_s=60, claim_id=claim_id)

    async def test_a_time_or_a_count_or_an_owner_below_the_least(self, pool: Pool) -> None:
        with pytest.raises(ValueError, match="more than 0 seconds"):
            await pool.claim([1], owner=1, ttl_s=0)
        with pytest.raises(ValueError, match="cannot claim 0"):
            await pool.claim_any(0, owner=1, ttl_s=60)
        with pytest.raises(ValueError, match="an owner is"):
            await pool.claim([1], owner=-1, ttl_s=60)

    async def test_another_size(self, pools: Pools, server: Implementation, pool_id: int) -> None:
        pool = await pools.open(pool_id, size=SIZE)
        async with server.connect() as other:
            with pytest.raises(ValueError, match="has 20 units, not 30"):
                await other.open(pool_id, size=30)
        assert pool.size == SIZE

    async def test_rows_that_contradict_each_other(self, pools: Pools, pool_id: int, store: Store) -> None:
        store.contents = Contents(committed=[Claim("a", 1, (5,)), Claim("b", 2, (5,))])

        with pytest.raises(ValueError, match="has unit 5 twice"):
            await pools.open(pool_id, size=SIZE, load=store.load)
