"""Rule 6 and its mirror: Redis away, and the sale goes on; the ledger away, and nothing is sold or lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from holdfast.app import open_app
from holdfast.bookings import BookingState
from holdfast.errors import Busy
from holdfast.holds import OverLimit, SeatsTaken, SoldOut
from tests.support.own_engines import Stage, hold, shown
from tests.support.show_fixture import an_owner
from tests.support.shows import API, Fan, a_layout, a_show, problem
from tests.support.wait import until


@pytest.fixture
async def without_redis(stage: Stage) -> AsyncIterator[None]:
    """Valkey is stopped, and is not started again before the test is over."""
    await stage.engines.valkey.hold()
    yield
    await stage.bring_valkey_back()


class TestRedisAway:
    @pytest.mark.usefixtures("without_redis")
    async def test_the_sale_goes_on(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20)

        named = await hold(stage.app, show, an_owner(), 4)
        chosen = await hold(stage.app, show, an_owner(), best=2)

        assert named.state is BookingState.HELD
        assert len(chosen.seats) == 2
        assert 4 not in chosen.seats

    @pytest.mark.usefixtures("without_redis")
    async def test_standing_places_too(self, stage: Stage) -> None:
        show = await a_show(stage.app, layout=a_layout(2, standing=3))
        await hold(stage.app, show, an_owner(), places=2)

        with pytest.raises(SoldOut):
            await hold(stage.app, show, an_owner(), places=2)

    @pytest.mark.usefixtures("without_redis")
    async def test_a_seat_is_sold_once_and_the_limits_hold(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20, owner_seats_max=2)
        owner = an_owner()
        await hold(stage.app, show, owner, 4, 5)

        with pytest.raises(SeatsTaken):
            await hold(stage.app, show, an_owner(), 5, 6)
        with pytest.raises(OverLimit):
            await hold(stage.app, show, owner, 9)

    @pytest.mark.usefixtures("without_redis")
    async def test_a_crowd_that_wants_the_best_gets_different_seats(self, stage: Stage) -> None:
        """All choose from the same map, a second old: the ledger sends the losers to the next best."""
        show = await a_show(stage.app, 20)
        holds = [hold(stage.app, show, an_owner(), best=2) for _ in range(4)]
        found = await asyncio.gather(*holds, return_exceptions=True)

        held = [one for one in found if not isinstance(one, BaseException)]
        seats = [seat for booking in held for seat in booking.seats]
        assert len(held) >= 3, found
        assert len(seats) == len(set(seats))

    @pytest.mark.usefixtures("without_redis")
    async def test_the_map_comes_from_the_ledger_at_most_once_a_second(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20)
        await hold(stage.app, show, an_owner(), 4)
        first = await shown(stage.app, show)
        await hold(stage.app, show, an_owner(), 5)
        at_once = await shown(stage.app, show)
        await asyncio.sleep(1.05)

        assert first == at_once == "A" * 20 or first == at_once == "AAAAH" + "A" * 15
        assert await shown(stage.app, show) == "AAAAHH" + "A" * 14

    @pytest.mark.usefixtures("without_redis")
    async def test_only_so_many_at_once_are_let_through_to_the_ledger(self, stage: Stage) -> None:
        """Requests that Redis no longer refuses would overload the ledger."""
        show = await a_show(stage.app, 20)
        async with open_app(replace(stage.app.config, ledger_only_max=1, postgres_pool_max=2)) as narrow:
            await narrow.catalogue.show_on_sale(show)
            await narrow.waiting_rooms.guard.refresh()
            async with narrow.postgres.lease(), narrow.postgres.lease():
                first = asyncio.create_task(hold(narrow, show, an_owner(), 4))
                await asyncio.sleep(0.05)
                with pytest.raises(Busy):
                    await hold(narrow, show, an_owner(), 5)

            assert (await first).state is BookingState.HELD

    @pytest.mark.usefixtures("without_redis")
    async def test_a_request_is_answered_once_here_too(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20)
        owner = an_owner()

        first = await hold(stage.app, show, owner, best=2, request_id="away")
        again = await hold(stage.app, show, owner, best=2, request_id="away")

        assert again.number == first.number


class TestRedisBack:
    async def test_the_map_is_rebuilt_before_it_is_sold_from(self, stage: Stage) -> None:
        """What the ledger sold alone is in no map: without the mark it would be claimed again."""
        till = await stage.till()
        await hold(stage.app, till.show, an_owner(), 3)
        await stage.engines.valkey.hold()
        await hold(stage.app, till.show, an_owner(), 4)
        sale = await stage.app.bookings.sale(till.show)
        await stage.bring_valkey_back()

        with pytest.raises(SeatsTaken):
            await hold(stage.slow, till.show, an_owner(), 4)

        assert sale is not None
        assert sale.map_stale
        assert await shown(stage.app, till.show) == "AAAHH" + "A" * 15
        assert (await stage.app.bookings.sale(till.show)).map_stale is False  # type: ignore[union-attr]

    async def test_a_server_that_only_did_not_answer_is_caught_too(self, stage: Stage) -> None:
        """A pause, not a restart: same run id, same keys, and a map that missed what the ledger sold."""
        till = await stage.till()
        await _unreachable_for(stage, 3000)
        alone = await hold(stage.app, till.show, an_owner(), 4)
        during = await hold(stage.app, till.show, an_owner(), 9)
        await _is_back(stage)

        with pytest.raises(SeatsTaken):
            await hold(stage.slow, till.show, an_owner(), 4)
        after = await hold(stage.slow, till.show, an_owner(), 5)

        assert await till.taken() == {4: alone.number, 5: after.number, 9: during.number}
        assert await shown(stage.slow, till.show) == "AAAAHHAAAH" + "A" * 10
        assert await till.violations() == []

    async def test_the_job_writes_marked_maps_without_a_request(self, stage: Stage) -> None:
        """A seat sold meanwhile would show as free to every viewer."""
        till = await stage.till()
        await _unreachable_for(stage, 3000)
        await hold(stage.app, till.show, an_owner(), 4)
        away = await stage.jobs().rebuild_stale()
        await _is_back(stage)

        assert away == 0
        assert await stage.jobs().rebuild_stale() >= 1
        assert (await stage.pool(till.show).states())[4] == "H"


class TestTheLedgerAway:
    async def test_holds_are_refused_with_a_retry_time_and_browsing_works(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20)
        (fan,) = await stage.fans(1)
        pages = (f"/shows/{show}", f"/shows/{show}/seats", f"/shows/{show}/layout", "/events")
        for path in pages:
            assert (await stage.api.get(API + path)).status_code == 200, path
        await stage.engines.postgres.hold()

        refused = await fan.holds(show, "A-5")
        looks = [(await stage.api.get(API + path)).status_code for path in pages]
        await stage.engines.postgres.release()

        assert (refused.status_code, problem(refused)["code"]) == (503, "engine_down")
        assert int(refused.headers["retry-after"]) >= 1
        assert looks == [200] * len(pages)
        await _sells_again(stage, fan, show, "A-5")

    async def test_a_claim_that_could_not_become_a_row_is_released(self, stage: Stage) -> None:
        """Refused, its seats would otherwise be blocked until its time is over."""
        show = await a_show(stage.app, 20)
        (fan,) = await stage.fans(1)
        await stage.api.get(f"{API}/shows/{show}/seats")
        await stage.engines.postgres.hold()

        refused = [await fan.holds(show, "A-5") for _ in range(2)]
        letters = (await stage.api.get(f"{API}/shows/{show}/seats")).json()["states"]
        await stage.engines.postgres.release()

        assert [one.status_code for one in refused] == [503, 503]
        assert letters == "A" * 20
        await _sells_again(stage, fan, show, "A-5")

    async def test_acknowledged_holds_survive_a_postgres_crash(self, stage: Stage) -> None:
        show = await a_show(stage.app, 20)
        alice, bob = await stage.fans(2)
        held = await alice.holds(show, "A-5")
        stage.engines.postgres.kill()
        await asyncio.wait_for(stage.engines.postgres.up(), 20)
        await _sells_again(stage, bob, show, "A-6")

        refused = await bob.holds(show, "A-5")
        mine = await alice.get(f"/bookings/{held.json()['booking_id']}")

        assert (refused.status_code, refused.json()["code"]) == (409, "seats_taken")
        assert mine.json()["state"] == "held"


async def _unreachable_for(stage: Stage, ms: int) -> None:
    """The server is up and has its data, but does not answer for a while."""
    await stage.app.redis.call("CLIENT", "PAUSE", ms, "ALL")


async def _is_back(stage: Stage) -> None:
    await asyncio.sleep(0.9)
    await stage.bring_valkey_back()


async def _sells_again(stage: Stage, fan: Fan, show: int, label: str) -> None:
    async def is_held() -> bool:
        return bool((await fan.holds(show, label)).status_code == 201)

    await until(is_held, within_s=10)
