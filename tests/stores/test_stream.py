"""Live maps on real engines: what viewers receive, and what they see when Redis loses its data (R8)."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.bookings import VERSIONS_PER_EPOCH
from holdfast.catalogue import NoSuchShow
from holdfast.errors import Busy
from holdfast.seatmap.errors import TooManyStreams, TooManyViewers
from holdfast.seatmap.live import LINGER_S, LiveMaps
from tests.support.claim_pool import Pool
from tests.support.live_viewer import Eyes, live_maps, watch
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

SEEN_WITHIN_S = 1.0


@pytest.fixture
async def live(stage: Stage) -> AsyncIterator[LiveMaps]:
    async with live_maps(stage.app) as maps:
        yield maps


@pytest.fixture
async def moving(stage: Stage) -> AsyncIterator[LiveMaps]:
    async with live_maps(stage.app, is_running=True) as maps:
        yield maps


@pytest.fixture
async def till(stage: Stage) -> Till:
    return await stage.till()


@pytest.fixture
def pool(stage: Stage, till: Till) -> Pool:
    return stage.pool(till.show)


async def sees(eyes: Eyes, letters: str, within_s: float = 5.0) -> None:
    async def is_so() -> bool:
        return eyes.map == letters

    await until(is_so, within_s=within_s)


class TestEveryChange:
    async def test_is_sent_with_the_version_after_it(self, live: LiveMaps, pool: Pool) -> None:
        eyes = await watch(live, pool.pool_id)
        ((first, version),) = eyes.events
        claim = await pool.claim(4, 5)
        await live.follow()
        await pool.settle("commit", claim)
        other = await pool.claim(7)
        await pool.settle("release", other)
        await live.follow()

        assert first == "snapshot"
        assert eyes.events[1:] == [("change", version + n) for n in (1, 2, 3, 4)]
        assert eyes.map == await pool.states() == "AAAABB" + "A" * 14

    async def test_is_sent_to_every_viewer_in_the_same_bytes(self, live: LiveMaps, pool: Pool) -> None:
        crowd = [await watch(live, pool.pool_id) for _ in range(300)]
        await pool.claim(4)
        await live.follow()

        assert len({eyes.received for eyes in crowd}) == 1
        assert crowd[0].map == await pool.states()

    async def test_of_other_shows_is_not_sent(self, stage: Stage, live: LiveMaps, pool: Pool) -> None:
        other = stage.pool((await stage.till()).show)
        eyes, others = await watch(live, pool.pool_id), await watch(live, other.pool_id)
        await other.claim(4)
        await live.follow()

        assert (len(eyes.events), len(others.events)) == (1, 2)

    async def test_of_a_show_that_does_not_exist_is_refused(self, live: LiveMaps) -> None:
        with pytest.raises(NoSuchShow):
            await live.watch(9_999_999, 0)

    @pytest.mark.alone
    async def test_of_an_expired_hold_is_sent_without_a_request(self, moving: LiveMaps, pool: Pool) -> None:
        eyes = await watch(moving, pool.pool_id)
        await pool.claim(4, ttl_ms=1200)
        ends_at = time.monotonic() + 1.2
        await sees(eyes, "AAAAH" + "A" * 15)
        await sees(eyes, "A" * 20)

        assert time.monotonic() - ends_at < SEEN_WITHIN_S

    @pytest.mark.alone
    async def test_of_a_short_hold_too(self, moving: LiveMaps, pool: Pool) -> None:
        """It ends before the next poll."""
        eyes = await watch(moving, pool.pool_id)
        feed = await moving.watch(pool.pool_id, 0)

        async def was_looked_at() -> bool:
            return feed.look_at > time.monotonic() + 1.5

        await until(was_looked_at)
        await pool.claim(4, ttl_ms=50)
        ends_at = time.monotonic() + 0.05
        await sees(eyes, "AAAAH" + "A" * 15)
        await sees(eyes, "A" * 20)

        assert time.monotonic() - ends_at < SEEN_WITHIN_S


class TestComingBack:
    async def test_goes_on_from_the_version_seen(self, live: LiveMaps, pool: Pool) -> None:
        first = await watch(live, pool.pool_id)
        (_, version), *_ = first.events
        await pool.claim(4)
        await pool.claim(5)
        await live.follow()
        back = await watch(live, pool.pool_id, since=version + 1)
        await pool.claim(6)
        await live.follow()

        assert back.events == [("change", version + 2), ("change", version + 3)]

    async def test_to_a_process_that_has_just_begun_misses_nothing(self, stage: Stage, pool: Pool) -> None:
        version = (await pool.map()).version
        for seat in range(5):
            await pool.claim(seat, owner=an_owner())
        async with live_maps(stage.app) as begun:
            here = await watch(begun, pool.pool_id)
            back = await watch(begun, pool.pool_id, since=version + 2)
            at_once = await watch(begun, pool.pool_id, since=version + 5)

        assert here.events == [("snapshot", version + 5)]
        assert back.events == [("change", version + n) for n in (3, 4, 5)]
        assert at_once.events == []

    async def test_too_late_gets_the_whole_map(self, stage: Stage, live: LiveMaps, pool: Pool) -> None:
        version = (await pool.map()).version
        for seat in range(5):
            await pool.claim(seat, owner=an_owner())
        await stage.app.redis.call("XTRIM", pool.key("changes"), "MAXLEN", 2)
        back = await watch(live, pool.pool_id, since=version + 1)
        near = await watch(live, pool.pool_id, since=version + 3)

        assert back.events == [("snapshot", version + 5)]
        assert near.events == [("change", version + 4), ("change", version + 5)]

    async def test_having_seen_more_than_this_process_waits_for_it(self, live: LiveMaps, pool: Pool) -> None:
        early = await watch(live, pool.pool_id)
        (_, version), *_ = early.events
        await pool.claim(4)
        await pool.claim(5)
        back = await watch(live, pool.pool_id, since=version + 1)
        first_events = back.events
        await live.follow()
        await pool.claim(6)
        await live.follow()

        assert first_events == []
        assert back.events == [("change", version + 2), ("change", version + 3)]

    async def test_with_an_invented_version_gets_the_map_in_the_end(
        self, moving: LiveMaps, pool: Pool
    ) -> None:
        back = await watch(moving, pool.pool_id, since=900 * VERSIONS_PER_EPOCH)

        await sees(back, "A" * 20, within_s=30)


class TestRedisLost:
    async def test_a_map_rebuilt_is_sent_as_a_whole(self, stage: Stage, live: LiveMaps, till: Till) -> None:
        eyes = await watch(live, till.show)
        (_, version), *_ = eyes.events
        await till.opened(4)
        await stage.app.bookings.mark_map_stale(till.show)
        await stage.app.seatmap.rebuild(till.show, "test")
        await live.follow()

        assert [event for event, _ in eyes.events] == ["snapshot", "snapshot"]
        assert eyes.events[1][1] // VERSIONS_PER_EPOCH > version // VERSIONS_PER_EPOCH
        assert eyes.map == "AAAAH" + "A" * 15

    @pytest.mark.alone
    async def test_an_emptied_redis_is_found_out_without_a_request(
        self, stage: Stage, moving: LiveMaps, till: Till
    ) -> None:
        eyes = await watch(moving, till.show)
        await till.opened(4)
        await stage.app.redis.call("FLUSHALL")

        await sees(eyes, "AAAAH" + "A" * 15, within_s=5)

    async def test_while_redis_is_down_the_ledger_answers(
        self, stage: Stage, moving: LiveMaps, till: Till
    ) -> None:
        eyes = await watch(moving, till.show)
        await stage.engines.valkey.hold()
        try:
            await hold(stage.app, till.show, an_owner(), 4)
            await sees(eyes, "AAAAH" + "A" * 15)
            await hold(stage.app, till.show, an_owner(), 7)
            await sees(eyes, "AAAAHAAH" + "A" * 12)
        finally:
            await stage.bring_valkey_back()
        await hold(stage.app, till.show, an_owner(), 9)
        await sees(eyes, "AAAAHAAHAH" + "A" * 10)

        versions = [version for _, version in eyes.events]
        assert versions == sorted(set(versions)), "a version went back"


class TestLimits:
    async def test_a_process_has_room_for_so_many(self, stage: Stage) -> None:
        live = LiveMaps(stage.app.seatmap, replace(stage.app.config, viewers_max=2))
        live.take_place("192.0.2.1")
        live.take_place("192.0.2.2")

        with pytest.raises(TooManyViewers) as refused:
            live.take_place("192.0.2.3")
        live.give_place_back("192.0.2.1")
        live.take_place("192.0.2.3")

        assert refused.value.details["retry_after_s"] == 5

    async def test_an_address_has_so_many(self, stage: Stage) -> None:
        live = LiveMaps(stage.app.seatmap, replace(stage.app.config, viewers_per_address_max=1))
        live.take_place("192.0.2.1")
        live.take_place("192.0.2.2")

        with pytest.raises(TooManyStreams):
            live.take_place("192.0.2.1")
        live.give_place_back("192.0.2.1")
        live.take_place("192.0.2.1")

    async def test_draining_sends_viewers_away_at_different_times_and_admits_none(
        self, live: LiveMaps, pool: Pool
    ) -> None:
        crowd = [await watch(live, pool.pool_id) for _ in range(4)]
        live.drain()

        assert len({eyes.last_words for eyes in crowd}) == 4
        assert all((eyes.last_words or b"").startswith(b"retry: ") for eyes in crowd)
        with pytest.raises(Busy):
            live.take_place("192.0.2.1")

    async def test_a_show_without_viewers_is_dropped_after_a_while(self, live: LiveMaps, pool: Pool) -> None:
        eyes = Eyes()
        feed = await live.watch(pool.pool_id, 0)
        live.join(feed, eyes)
        live.leave(feed, eyes)
        still = await live.follow()
        feed.left_at -= LINGER_S + 1
        later = await live.follow()

        assert (still, later) == (1, 0)
