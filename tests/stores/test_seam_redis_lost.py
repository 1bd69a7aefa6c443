"""Rules 5 and 7: Redis empty, behind or wrong. Nothing held or booked ever shows as free or is sold again."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable

import pytest

from holdfast.bookings import Booking, BookingState
from holdfast.holds import Held, SeatsTaken
from holdfast.holds.comparison import MapDifference
from tests.support.own_engines import Stage, a_request, claims_of, hold, shown
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

SEAT_4 = "AAAAH" + "A" * 15


async def flushed(stage: Stage, till: Till) -> None:
    await stage.app.redis.call("FLUSHALL")


async def of_another_server(stage: Stage, till: Till) -> None:
    """What a restarted or a promoted server has: our keys, perhaps a second old, and another run id."""
    pool = stage.pool(till.show)
    await stage.app.redis.call("SETRANGE", pool.key("units"), 0, "A" * 20)
    await stage.app.redis.call("DEL", pool.key("ends"))
    await stage.app.redis.call("HSET", pool.key("meta"), "run_id", "another")


Loss = Callable[[Stage, Till], Awaitable[None]]
either_loss = pytest.mark.parametrize("lose", [flushed, of_another_server])


class TestRule5ALostMap:
    @either_loss
    async def test_nothing_held_booked_or_blocked_shows_as_free(self, stage: Stage, lose: Loss) -> None:
        """A map that came back empty or old would show sold seats as free."""
        till = await stage.till(price_minor=0)
        await hold(stage.app, till.show, an_owner(), 7)
        await stage.app.bookings.block(till.show, [9], "camera", an_owner())
        await till.opened(4, price_minor=1500)
        await lose(stage, till)

        assert await shown(stage.app, till.show) == "AAAAHAABAX" + "A" * 10

    @either_loss
    async def test_a_held_seat_cannot_be_held_again(self, stage: Stage, lose: Loss) -> None:
        """Selling from such a map sends a crowd to the ledger for seats that are gone."""
        till = await stage.till()
        first = await hold(stage.app, till.show, an_owner(), 4)
        before, _ = await stage.app.claims.epoch(till.show)
        await lose(stage, till)

        with pytest.raises(SeatsTaken):
            await hold(stage.app, till.show, an_owner(), 4, 5)

        assert await stage.app.claims.epoch(till.show) == (before + 1, True), "rebuilt before it sold"
        assert await till.taken() == {4: first.number}
        assert await stage.pool(till.show).has(first.owner_id) == 1, "the limit is in the new map too"

    @either_loss
    async def test_a_hold_goes_on_as_if_nothing_had_happened(self, stage: Stage, lose: Loss) -> None:
        till = await stage.till()
        await lose(stage, till)

        booking = await hold(stage.app, till.show, an_owner(), 4)

        assert booking.state is BookingState.HELD
        assert await shown(stage.app, till.show) == SEAT_4

    async def test_a_rebuilt_hold_ends_when_its_row_does(self, stage: Stage) -> None:
        till = await stage.till()
        booking = await hold(stage.app, till.show, an_owner(), 4)
        await till.lapse(booking.number, ago_ms=-8000)
        await flushed(stage, till)
        await shown(stage.app, till.show)

        assert 6000 < (await claims_of(stage, till.show))[str(booking.claim)] <= 8000

    async def test_a_lapsed_row_is_free_in_the_new_map(self, stage: Stage) -> None:
        till = await stage.till()
        booking = await hold(stage.app, till.show, an_owner(), 4)
        await till.lapse(booking.number)
        await flushed(stage, till)

        assert await shown(stage.app, till.show) == "A" * 20
        assert (await hold(stage.app, till.show, an_owner(), 4)).seats == (4,)

    async def test_a_server_restarted_with_older_data_is_not_trusted(self, stage: Stage) -> None:
        """Really stopped, its log put back to what it was before the last hold, and started again."""
        till = await stage.till()
        await hold(stage.app, till.show, an_owner(), 3)
        valkey, log = stage.engines.valkey, stage.folder / "valkey"
        await valkey.hold()
        shutil.copytree(log, stage.folder / "before")
        await stage.bring_valkey_back()
        late = await hold(stage.app, till.show, an_owner(), 4)

        await valkey.hold()
        shutil.rmtree(log)
        (stage.folder / "before").rename(log)
        await stage.bring_valkey_back()

        with pytest.raises(SeatsTaken):
            await hold(stage.app, till.show, an_owner(), 4)
        assert await shown(stage.app, till.show) == "AAAHH" + "A" * 15
        assert await till.taken() == {**await till.taken(), 4: late.number}


class TestRule5ARebuildAndAClaim:
    async def test_a_claim_from_before_a_rebuild_is_written_into_the_new_map(self, stage: Stage) -> None:
        """Claimed, not yet a row; the map is rebuilt without it; then the row comes. Without the rule
        the seat shows as free for as long as it is held."""
        till = await stage.till()
        async with stage.between(till.show):
            holding = asyncio.create_task(hold(stage.slow, till.show, an_owner(), 4))
            await _is_claimed(stage, till, 4)
            await flushed(stage, till)
            assert await shown(stage.app, till.show) == "A" * 20
        booking = await holding

        assert await till.taken() == {4: booking.number}
        assert await shown(stage.app, till.show) == SEAT_4
        assert str(booking.claim) in await claims_of(stage, till.show)

    async def test_two_claims_on_one_seat_in_two_maps_make_one_booking(self, stage: Stage) -> None:
        """The second claims in the new map what the first claimed in the old one: the ledger decides."""
        till = await stage.till()
        async with stage.between(till.show):
            late = asyncio.create_task(hold(stage.slow, till.show, an_owner(), 4, 5))
            await _is_claimed(stage, till, 4)
            await flushed(stage, till)
            winner = await hold(stage.app, till.show, an_owner(), 4)

        with pytest.raises(SeatsTaken):
            await late
        assert await till.taken() == {4: winner.number}
        assert await shown(stage.app, till.show) == SEAT_4

    async def test_a_claim_in_the_way_of_a_row_is_removed(self, stage: Stage) -> None:
        """The other way round: the second has claimed but is slower, and the first is adopted over it."""
        till = await stage.till()
        async with stage.between(till.show):
            first = asyncio.create_task(hold(stage.slow, till.show, an_owner(), 4))
            await _is_claimed(stage, till, 4)
            await flushed(stage, till)
            await shown(stage.app, till.show)
            second = await _claimed_only(stage, till, 4, 5)
        booking = await first

        assert await shown(stage.app, till.show) == SEAT_4
        assert list(await claims_of(stage, till.show)) == [str(booking.claim)]
        assert second == (4, 5)

    async def test_a_rebuild_waits_for_the_rows_that_are_being_written(self, stage: Stage) -> None:
        """Read without the lock, a row that commits a moment later would be in neither map."""
        till = await stage.till()
        async with till.postgres.transaction() as tx:
            await tx.execute("SELECT 1 FROM sale WHERE show_id = $1 FOR SHARE", till.show)  # as open has it
            await flushed(stage, till)
            rebuilding = asyncio.create_task(stage.app.seatmap.rebuild(till.show, "test"))
            await asyncio.sleep(0.1)
            assert not rebuilding.done()

        assert await rebuilding == (await stage.app.claims.epoch(till.show))[0]

    async def test_a_row_waits_for_the_map_that_is_being_written_and_learns_its_epoch(
        self, stage: Stage
    ) -> None:
        """Written meanwhile, the row is not in the new map; with the old epoch it would never get there."""
        till = await stage.till()
        async with till.postgres.transaction() as tx:
            await tx.execute(
                "SELECT 1 FROM sale WHERE show_id = $1 FOR UPDATE", till.show
            )  # as rebuild has it
            opening = asyncio.create_task(hold(stage.app, till.show, an_owner(), 4))
            await until(lambda: asyncio.sleep(0, stage.app.holds.locked_shows > 0))
            assert not opening.done()
            epoch = await tx.fetchval(
                "UPDATE sale SET epoch = epoch + 1 WHERE show_id = $1 RETURNING epoch", till.show
            )

        answer = await opening
        assert isinstance(answer, Booking)
        assert answer.sale_epoch == epoch

    async def test_two_processes_that_rebuild_at_once_write_one_map(self, stage: Stage) -> None:
        till = await stage.till()
        before, _ = await stage.app.claims.epoch(till.show)
        await flushed(stage, till)

        boxes = (stage.app, stage.slow)
        epochs = await asyncio.gather(*(app.seatmap.rebuild(till.show, "test") for app in boxes))

        assert set(epochs) == {before + 1}


class TestVersions:
    async def test_never_go_back_whatever_becomes_of_redis(self, stage: Stage) -> None:
        """A viewer with version 7 discards changes of version 6."""
        till = await stage.till()
        seen = [await _version(stage, till)]
        for seat in range(3):
            await hold(stage.app, till.show, an_owner(), seat)
            seen.append(await _version(stage, till))
            await flushed(stage, till)
            seen.append(await _version(stage, till))
        for seat in range(3, 8):
            await hold(stage.app, till.show, an_owner(), seat)
        seen.append(await _version(stage, till))
        await stage.engines.valkey.hold()
        seen.append(await _version(stage, till))
        await hold(stage.app, till.show, an_owner(), 10)
        await asyncio.sleep(1.1)
        seen.append(await _version(stage, till))
        await stage.bring_valkey_back()
        await hold(stage.app, till.show, an_owner(), 11)
        seen.append(await _version(stage, till))

        assert seen == sorted(set(seen))

    async def test_are_later_in_a_process_that_starts_afterwards(self, stage: Stage) -> None:
        """Not only because a process remembers what it has shown."""
        till = await stage.till()
        for seat in range(3):
            await hold(stage.app, till.show, an_owner(), seat)
        before = await _version(stage, till)
        await flushed(stage, till)

        assert (await stage.slow.seatmap.snapshot(till.show)).version > before


class TestRule7TheComparison:
    async def test_a_claim_without_a_row_is_freed(self, stage: Stage) -> None:
        """Its process died between the two engines: the seats would stay held without a buyer."""
        till = await stage.till()
        await _claimed_only(stage, till, 4, 5)

        (found,) = await stage.jobs(compare_pause_s=0).compare_show(till.show)

        assert (found.kind, found.seat) == ("claim without a row", 4)
        assert await shown(stage.app, till.show) == "A" * 20

    async def test_a_row_without_a_claim_is_claimed(self, stage: Stage) -> None:
        """The map was not updated: a held seat would show as free until its time is over."""
        till = await stage.till()
        booking = await hold(stage.app, till.show, an_owner(), 4)
        await stage.pool(till.show).settle("release", booking.claim)

        found = await stage.jobs(compare_pause_s=0).compare_show(till.show)

        assert {one.kind for one in found} == {"row without a claim", "booked seat not shown"}
        assert await shown(stage.app, till.show) == SEAT_4
        assert str(booking.claim) in await claims_of(stage, till.show)

    @pytest.mark.parametrize("letter", ["A", "H", "X"])
    async def test_a_booked_seat_that_does_not_say_so_is_corrected(self, stage: Stage, letter: str) -> None:
        till = await stage.till(price_minor=0)
        await hold(stage.app, till.show, an_owner(), 4)
        await stage.app.redis.call("SETRANGE", stage.pool(till.show).key("units"), 4, letter)

        (found,) = await stage.jobs(compare_pause_s=0).compare_show(till.show)

        assert (found.kind, found.seat) == ("booked seat not shown", 4)
        assert await shown(stage.app, till.show) == "AAAAB" + "A" * 15

    async def test_a_free_seat_that_shows_as_taken_is_corrected(self, stage: Stage) -> None:
        till = await stage.till()
        await hold(stage.app, till.show, an_owner(), 4)
        await stage.app.redis.call("SETRANGE", stage.pool(till.show).key("units"), 9, "B")

        (found,) = await stage.jobs(compare_pause_s=0).compare_show(till.show)

        assert found == MapDifference("seat shown taken", 9, "B")
        assert await shown(stage.app, till.show) == SEAT_4

    async def test_what_is_on_its_way_is_left_alone(self, stage: Stage) -> None:
        """A claim whose row is just being written is not a fault: only lasting differences are corrected."""
        till = await stage.till()
        await _claimed_only(stage, till, 4)
        jobs = stage.jobs()

        assert await jobs.compare_show(till.show) == []
        assert await jobs.compare_show(till.show) == []
        assert await shown(stage.app, till.show) == SEAT_4

    async def test_every_open_sale_has_its_turn_with_and_without_traffic(self, stage: Stage) -> None:
        """Nothing moves in a show whose last update was missed: it would stay wrong until its sale ends."""
        busy, quiet = await stage.till(), await stage.till()
        await busy.opened(9)
        for till in (busy, quiet):
            await _claimed_only(stage, till, 4)
        rounds = await till.postgres.fetchval("SELECT count(*) FROM sale")
        await stage.app.redis.call("DEL", "job:compare")

        worker = stage.jobs(compare_pause_s=0, shows_max=3)
        for _ in range(rounds):
            await worker.compare()

        assert await shown(stage.app, busy.show) == "A" * 9 + "H" + "A" * 10
        assert await shown(stage.app, quiet.show) == "A" * 20

    async def test_many_workers_that_find_a_difference_rebuild_the_map_once(self, stage: Stage) -> None:
        """Each rebuild sends the whole map to every viewer."""
        till = await stage.till()
        await _claimed_only(stage, till, 4)
        before, _ = await stage.app.claims.epoch(till.show)

        workers = [stage.jobs(compare_pause_s=0) for _ in range(5)]
        await asyncio.gather(*(worker.compare_show(till.show) for worker in workers))

        after, _ = await stage.app.claims.epoch(till.show)
        assert after == before + 2  # one mark, one rebuild
        assert await shown(stage.app, till.show) == "A" * 20

    async def test_one_worker_at_a_time_compares_and_another_takes_over(self, stage: Stage) -> None:
        till = await stage.till()
        await stage.app.redis.call("DEL", "job:compare")
        first, second = stage.jobs(compare_pause_s=0), stage.jobs(compare_pause_s=0)
        await first.compare()
        await _claimed_only(stage, till, 4)

        await second.compare()
        assert await shown(stage.app, till.show) == SEAT_4

        await stage.app.redis.call("DEL", "job:compare")  # the first one has died, and its lease has ended
        await second.compare()
        assert await shown(stage.app, till.show) == "A" * 20

    async def test_a_broken_map_does_not_stop_the_comparison_of_others(self, stage: Stage) -> None:
        broken, other = await stage.till(), await stage.till()
        await stage.app.redis.call("SET", stage.pool(broken.show).key("ends"), "not a sorted set")
        await _claimed_only(stage, other, 4)
        await stage.app.redis.call("DEL", "job:compare")

        worker = stage.jobs(compare_pause_s=0)
        await worker.compare()
        await worker.rebuild_stale()

        assert await shown(stage.app, other.show) == "A" * 20
        assert await stage.pool(broken.show).states() == "A" * 20


async def _is_claimed(stage: Stage, till: Till, seat: int) -> None:
    async def is_claimed() -> bool:
        return (await stage.pool(till.show).states())[seat] == "H"

    await until(is_claimed)


async def _claimed_only(stage: Stage, till: Till, *seats: int) -> tuple[int, ...]:
    """What a process leaves behind that dies before it gets to the ledger."""
    request = await a_request(stage.app, till.show, an_owner(), *seats)
    (outcome,) = await stage.app.hold_scripts.hold_many([request])
    assert isinstance(outcome, Held)
    return outcome.seats


async def _version(stage: Stage, till: Till) -> int:
    await shown(stage.app, till.show)
    return (await stage.app.seatmap.snapshot(till.show)).version
