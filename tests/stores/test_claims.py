"""N of a pool for a time, then committed or released: the mechanism beneath holds, on a real Valkey."""

import asyncio

import pytest

from holdfast.claim import (
    Action,
    Claim,
    Claimed,
    ClaimRequest,
    LimitReached,
    MapMissing,
    NotEnoughUnits,
    PoolClosed,
    Settlement,
    UnitsTaken,
)
from holdfast.engines.redis import Redis
from tests.support.claim_pool import HOUR_MS, Pool, a_pool

A_RELEASE = Settlement("release", Claim("x", 1, (1,)))


@pytest.fixture
async def pool(redis: Redis) -> Pool:
    pool = a_pool(redis)
    assert await pool.build()
    return pool


class TestClaiming:
    async def test_claimed_seats_are_shown_as_claimed(self, pool: Pool) -> None:
        claim = await pool.claim(3, 4, 9)

        assert claim.units == (3, 4, 9)
        assert await pool.states() == "AAAHHAAAAHAAAAAAAAAA"

    async def test_a_claim_names_the_epoch_of_its_map(self, redis: Redis) -> None:
        pool = a_pool(redis)
        await pool.build(epoch=41)

        outcome = await pool.ask(0)

        assert isinstance(outcome, Claimed)
        assert outcome.epoch == 41

    async def test_all_units_or_none(self, pool: Pool) -> None:
        await pool.claim(4, 5, owner=1)

        refused = await pool.ask(3, 4, 5, 6, owner=2)

        assert refused == UnitsTaken((4, 5))
        assert await pool.states() == "AAAAHHAAAAAAAAAAAAAA"
        assert await pool.has(2) == 0

    async def test_units_may_be_named_in_any_order(self, pool: Pool) -> None:
        await pool.claim(9, owner=1)

        assert await pool.ask(3, 9, 5, owner=2) == UnitsTaken((9,))
        assert (await pool.claim(5, 3, 4, owner=2)).units == (3, 4, 5)

    async def test_any_so_many_of_a_range_are_the_first_free_ones(self, pool: Pool) -> None:
        await pool.claim(11, 13)

        claim = await pool.claim(first=10, end=16, count=3)

        assert claim.units == (10, 12, 14)

    async def test_a_range_with_too_few_free_units_gives_none(self, pool: Pool) -> None:
        await pool.claim(10, 11)

        refused = await pool.ask(first=10, end=14, count=3, owner=2)

        assert refused == NotEnoughUnits(2)
        assert await pool.has(2) == 0

    async def test_callers_of_one_batch_are_served_in_their_order(self, pool: Pool) -> None:
        wishes = [ClaimRequest(f"in-turn-{owner}", owner, 60_000, 10, (7, 8)) for owner in (1, 2, 3)]

        outcomes = await pool.claims.claim_many(pool.pool_id, wishes)

        assert [type(one) for one in outcomes] == [Claimed, UnitsTaken, UnitsTaken]

    async def test_a_hundred_at_once_get_each_unit_once(self, pool: Pool) -> None:
        requests = [pool.ask(first=0, end=20, count=2, owner=owner) for owner in range(100)]
        outcomes = await asyncio.gather(*requests)

        won = [unit for one in outcomes if isinstance(one, Claimed) for unit in one.claim.units]
        assert sorted(won) == list(range(20))

    @pytest.mark.parametrize("window_ms", [(500, HOUR_MS), (-HOUR_MS, -1)])
    async def test_nothing_is_claimed_outside_the_window(
        self, redis: Redis, window_ms: tuple[int, int]
    ) -> None:
        pool = a_pool(redis)
        await pool.build(window_ms=window_ms)

        assert await pool.ask(1) == PoolClosed()
        assert await pool.states() == "A" * 20


class TestTheSameId:
    async def test_gives_the_same_claim_whatever_it_asks_for(self, pool: Pool) -> None:
        first = await pool.claim(1, 2, claim_id="once")

        again = await pool.claim(first=0, end=20, count=2, claim_id="once")

        assert again == first
        assert await pool.has(1) == 2

    async def test_twice_in_one_batch_is_one_claim(self, pool: Pool) -> None:
        wish = ClaimRequest("twin", 1, 60_000, 10, (), 0, 20, 2)

        first, second = await pool.claims.claim_many(pool.pool_id, [wish, wish])

        assert first == second
        assert await pool.states() == "HH" + "A" * 18

    async def test_is_free_again_once_its_claim_was_released(self, pool: Pool) -> None:
        first = await pool.claim(1, claim_id="again")
        await pool.settle("release", first)

        assert (await pool.claim(2, claim_id="again")).units == (2,)


class TestLimits:
    async def test_an_owner_is_refused_beyond_his_limit(self, pool: Pool) -> None:
        await pool.claim(0, 1, 2, owner=1, limit=4)

        refused = await pool.ask(3, 4, owner=1, limit=4)

        assert refused == LimitReached(3)
        assert await pool.has(1) == 3

    async def test_committed_units_count_too(self, pool: Pool) -> None:
        await pool.settle("commit", await pool.claim(0, 1, 2, owner=1))

        assert await pool.ask(3, 4, owner=1, limit=4) == LimitReached(3)

    async def test_released_seats_no_longer_count(self, pool: Pool) -> None:
        claim = await pool.claim(0, 1, 2, owner=1, limit=3)
        await pool.settle("release", claim)

        assert (await pool.claim(3, 4, 5, owner=1, limit=3)).units == (3, 4, 5)

    async def test_lapsed_claims_no_longer_count(self, pool: Pool) -> None:
        await pool.claim(0, 1, owner=1, ttl_ms=1)
        await asyncio.sleep(0.003)

        assert (await pool.claim(3, 4, owner=1, limit=2)).units == (3, 4)
        assert await pool.has(1) == 2


@pytest.mark.alone
class TestLapsing:
    async def test_a_claim_ends_at_its_end_and_not_before(self, pool: Pool) -> None:
        """Judged by the clock that decides: each try knows the time before and after it."""
        await pool.claim(5, owner=1, ttl_ms=150)
        ((_, end_ms),) = ((await pool.map()).claims or {}).items()

        while True:
            before = await pool.now_ms()
            outcome = await pool.ask(5, owner=2)
            if isinstance(outcome, Claimed):
                break
            assert before < end_ms
        assert await pool.now_ms() >= end_ms
        assert before >= end_ms - 50, "a request waited where none should"

    async def test_a_lapsed_claim_is_shown_as_free_without_a_request(self, pool: Pool) -> None:
        await pool.claim(5, ttl_ms=1)
        await asyncio.sleep(0.003)

        found = await pool.map()

        assert found.units == b"A" * 20
        assert found.claims == {}

    async def test_an_extended_claim_has_its_new_end(self, pool: Pool) -> None:
        claim = await pool.claim(5, ttl_ms=5_000)
        await pool.settle("extend", claim, 60_000)

        end_ms = ((await pool.map()).claims or {})[str(claim)]
        assert 59_000 < end_ms - await pool.now_ms() <= 60_000

    async def test_a_pinned_claim_does_not_end(self, pool: Pool) -> None:
        claim = await pool.claim(5, ttl_ms=300)
        await pool.settle("extend", claim, 0)
        await asyncio.sleep(0.32)

        assert await pool.ask(5, owner=2) == UnitsTaken((5,))
        assert (await pool.map()).claims == {str(claim): float("inf")}

    async def test_a_lapsed_claim_cannot_be_extended(self, pool: Pool) -> None:
        claim = await pool.claim(5, ttl_ms=1)
        await asyncio.sleep(0.003)
        await pool.settle("extend", claim, 60_000)

        assert await pool.states() == "A" * 20


class TestSettling:
    async def test_a_committed_claim_stays_for_good(self, pool: Pool) -> None:
        claim = await pool.claim(5, 6, ttl_ms=20)
        await pool.settle("commit", claim)
        await asyncio.sleep(0.03)

        assert await pool.states() == "AAAAABBAAAAAAAAAAAAA"
        assert await pool.has(1) == 2

    async def test_a_commit_is_written_though_its_claim_is_lost(self, pool: Pool) -> None:
        await pool.settle("commit", Claim("lost", 1, (5, 6)))

        assert await pool.states() == "AAAAABBAAAAAAAAAAAAA"
        assert await pool.has(1) == 2

    @pytest.mark.parametrize("claim_id", ["twice", "~twice"])
    async def test_a_commit_settled_twice_is_counted_once(self, pool: Pool, claim_id: str) -> None:
        claim = await pool.claim(5, 6, claim_id=claim_id)
        await pool.settle("commit", claim)
        await pool.settle("commit", claim)

        assert await pool.has(1) == 2

    @pytest.mark.parametrize("claim_id", ["freed", "~freed"])
    async def test_a_committed_unit_is_freed_when_the_ledger_lets_go(self, pool: Pool, claim_id: str) -> None:
        claim = await pool.claim(5, 6, claim_id=claim_id)
        await pool.settle("commit", claim)
        await pool.settle("free", claim)

        assert await pool.states() == "A" * 20
        assert await pool.has(1) == 0

    async def test_a_row_without_a_claim_is_adopted(self, pool: Pool) -> None:
        claim = Claim("row", 1, (5, 6))
        await pool.settle("adopt", claim, 60_000)

        assert await pool.states() == "AAAAAHHAAAAAAAAAAAAA"
        assert await pool.has(1) == 2
        assert await pool.claim(9, claim_id="row") == claim, "the same id, the same claim"

    async def test_adopting_an_existing_claim_changes_nothing(self, pool: Pool) -> None:
        claim = await pool.claim(5, 6)
        before = await pool.map()
        await pool.settle("adopt", claim, 1)

        assert await pool.map() == before

    async def test_a_claim_in_the_way_of_a_row_is_removed_with_all_its_units(self, pool: Pool) -> None:
        await pool.claim(6, 7, owner=2)
        await pool.settle("adopt", Claim("row", 1, (5, 6)), 60_000)

        assert await pool.states() == "AAAAAHHAAAAAAAAAAAAA"
        assert (await pool.has(1), await pool.has(2)) == (2, 0)

    async def test_blocked_units_have_no_owner_and_cannot_be_claimed(self, pool: Pool) -> None:
        await pool.settle("block", Claim("block1", 9, (5, 6)))

        assert await pool.states() == "AAAAAXXAAAAAAAAAAAAA"
        assert await pool.ask(6, 7) == UnitsTaken((6,))
        assert await pool.has(9) == 0

    async def test_unblocked_units_are_free(self, pool: Pool) -> None:
        block = Claim("block1", 9, (5, 6))
        await pool.settle("block", block)
        await pool.settle("unblock", block)

        assert await pool.states() == "A" * 20


class TestOnlyItsOwn:
    """A late settlement frees nothing that another owner has by now."""

    async def test_a_late_release_leaves_the_next_owner_alone(self, pool: Pool) -> None:
        late = await pool.claim(5, 6, owner=1, ttl_ms=1)
        await asyncio.sleep(0.003)
        await pool.claim(6, 7, owner=2)

        await pool.settle("release", late)

        assert await pool.states() == "AAAAAAHHAAAAAAAAAAAA"
        assert await pool.has(2) == 2

    async def test_a_release_settled_twice_is_counted_once(self, pool: Pool) -> None:
        gone = await pool.claim(5, owner=1)
        await pool.claim(6, owner=1)
        await pool.settle("release", gone)
        await pool.settle("release", gone)

        assert await pool.has(1) == 1

    @pytest.mark.parametrize("last_word", ["unblock", "free"])
    async def test_a_late_settlement_spares_the_next_owner(self, pool: Pool, last_word: Action) -> None:
        """The map was rebuilt after PostgreSQL released the row; then a settlement of the old map arrives."""
        gone = Claim("gone", 9, (5, 6))
        await pool.settle("block" if last_word == "unblock" else "commit", gone)
        await pool.build(epoch=2)
        await pool.claim(6, 7, owner=2)

        await pool.settle(last_word, gone)

        assert await pool.states() == "AAAAAAHHAAAAAAAAAAAA"
        assert await pool.has(2) == 2


class TestVersions:
    async def test_a_version_is_the_epoch_and_a_count_of_changes(self, redis: Redis) -> None:
        pool = a_pool(redis)
        await pool.build(epoch=7)
        first = (await pool.map()).version
        await pool.claim(1)
        await pool.claim(2)

        assert (first, (await pool.map()).version) == (7_000_000_000, 7_000_000_002)

    async def test_a_change_without_effect_makes_no_new_version(self, pool: Pool) -> None:
        await pool.claim(1)
        before = (await pool.map()).version
        await pool.ask(1, owner=2)
        await pool.settle("release", Claim("missing", 3, (9,)))

        assert (await pool.map()).version == before

    async def test_a_reader_that_is_up_to_date_gets_only_the_version(self, pool: Pool) -> None:
        await pool.claim(1)
        known = (await pool.map()).version

        assert await pool.claims.read(pool.pool_id, known=known) == known
        await pool.claim(2)
        assert await pool.claims.read(pool.pool_id, known=known) != known

    async def test_the_changes_lead_from_the_first_map_to_this_one(self, pool: Pool) -> None:
        letters = list(await pool.states())
        gone = await pool.claim(1, 2)
        await pool.claim(4, 6, ttl_ms=1)
        await asyncio.sleep(0.003)
        await pool.settle("commit", await pool.claim(8, 9))
        await pool.settle("release", gone)
        await pool.settle("block", Claim("block1", 9, (15, 17)))
        await pool.settle("adopt", Claim("row", 3, (11,)), 60_000)
        now = await pool.map()

        _, *changes = await pool.changes()

        for _, text in changes:
            for change in text.split(","):
                letters[int(change[:-1])] = change[-1]
        versions = [version for version, _ in changes]
        assert "".join(letters) == now.units.decode()
        assert versions == sorted(set(versions))
        assert versions[-1] == now.version

    async def test_a_new_map_begins_above_every_version_before(self, pool: Pool) -> None:
        await pool.claim(1)
        before = (await pool.map()).version

        assert await pool.build(epoch=2)

        assert (await pool.map()).version > before
        assert [version for version, _ in await pool.changes()] == [2_000_000_000]

    async def test_an_older_map_never_replaces_a_newer_one(self, pool: Pool) -> None:
        assert await pool.build("B" * 20, epoch=5)

        assert not await pool.build("A" * 20, epoch=5)
        assert not await pool.build("A" * 20, epoch=4)
        assert await pool.states() == "B" * 20


class TestALostMap:
    async def test_without_keys_nothing_is_published(self, redis: Redis) -> None:
        pool = a_pool(redis)

        assert await pool.ask(1) == MapMissing()
        assert await pool.claims.read(pool.pool_id) is None
        assert await pool.claims.settle_many(pool.pool_id, [A_RELEASE]) is None
        assert await pool.claims.epoch(pool.pool_id) == (0, False)

    async def test_a_map_of_another_server_is_not_trusted(self, pool: Pool) -> None:
        """The disk it came back from may be a second behind."""
        await pool.claim(1)
        await pool.redis.call("HSET", pool.key("meta"), "run_id", "another")

        assert await pool.ask(2) == MapMissing()
        assert await pool.claims.read(pool.pool_id) is None
        assert await pool.claims.settle_many(pool.pool_id, [A_RELEASE]) is None
        assert await pool.claims.epoch(pool.pool_id) == (1, False)

    async def test_every_key_of_a_pool_is_forgotten_in_the_end(self, pool: Pool) -> None:
        """Also those that were empty when the map was written, or in between."""
        await pool.settle("release", await pool.claim(1))
        await pool.claim(2)

        left_ms = [
            await pool.redis.call("PTTL", pool.key(name)) for name in ("units", "ends", "owners", "meta")
        ]

        assert all(0 < left <= HOUR_MS + 24 * 3600 * 1000 for left in left_ms), left_ms
