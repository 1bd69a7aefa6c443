"""Offers of `examples/dispatch`: Valkey decides fast, the ledger decides for good (R41)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from examples.dispatch.city import City, Trip
from examples.dispatch.drivers import POOL_ID, DriverPool
from examples.dispatch.history import History
from examples.dispatch.ledger import Ledger, TurnLost, WaitingRide, open_ledger
from holdfast.claim import Pools, connect
from holdfast.engines.embedded import Engines
from tests.support.second_ledger import a_database

CITY = City(radius=1)
LONG_S = 60.0


@dataclass(frozen=True)
class Scene:
    """Four drivers, two waiting rides, and two workers' views of the drivers."""

    ledger: Ledger
    pools: Pools
    drivers: DriverPool
    others: DriverPool  # of another process

    async def take(self) -> list[WaitingRide]:
        """All rides, as a worker does whose lease ends at once."""
        rides = await self.ledger.take_rides(10, lease_s=0.0)
        return sorted(rides, key=lambda ride: ride.ride_id)

    async def offer(self, ride: WaitingRide, driver_id: int) -> bool:
        return await self.ledger.make_offer(ride, driver_id, offer_s=LONG_S, lease_s=0.0) is not None


@pytest.fixture
async def scene(running_engines: Engines) -> AsyncIterator[Scene]:
    redis_url = running_engines.redis_url
    async with (
        a_database(running_engines.database_url) as url,
        open_ledger(url, connections_max=2) as ledger,
        connect(redis_url, prefix="dispatch-test:") as pools,
        connect(redis_url, prefix="dispatch-test:") as other_pools,
    ):
        await ledger.create_tables()
        await ledger.add_drivers([CITY.centre] * 4)
        await ledger.request_rides([Trip(CITY.centre, CITY.cells[0])] * 2, patience_s=LONG_S)
        await pools.delete(POOL_ID)
        views = [DriverPool(one, ledger, 4, margin_s=1.0) for one in (pools, other_pools)]
        yield Scene(ledger, pools, *views)
        await pools.delete(POOL_ID)


async def test_a_second_ride_does_not_get_a_claimed_driver(scene: Scene) -> None:
    first, second = await scene.take()

    assert await scene.drivers.claim(first, 3, offer_s=LONG_S) == 3
    assert await scene.others.claim(second, 3, offer_s=LONG_S) is None
    assert await scene.others.claim(second, 2, offer_s=LONG_S) == 2


async def test_a_worker_that_takes_over_gets_the_driver_that_the_dead_one_had_claimed(scene: Scene) -> None:
    """The offer's id is the same for both, and the same id gives the same claim."""
    ride, _ = await scene.take()
    await scene.drivers.claim(ride, 3, offer_s=LONG_S)

    taken_over, _ = await scene.take()

    assert taken_over.turn == ride.turn + 1
    assert await scene.others.claim(taken_over, 1, offer_s=LONG_S) == 3


async def test_a_worker_that_lost_its_turn_makes_no_offer(scene: Scene) -> None:
    ride, _ = await scene.take()
    await scene.take()

    with pytest.raises(TurnLost):
        await scene.offer(ride, 3)


async def test_two_claims_on_one_driver_after_a_loss_end_as_one_offer(scene: Scene) -> None:
    """The map is lost between a claim and its row, so both rides have the driver; the key lets one win."""
    first, second = await scene.take()
    await scene.drivers.claim(first, 3, offer_s=LONG_S)
    await scene.pools.delete(POOL_ID)

    assert await scene.others.claim(second, 3, offer_s=LONG_S) == 3
    assert [await scene.offer(second, 3), await scene.offer(first, 3)] == [True, False]


async def test_without_the_key_of_the_ledger_the_oracle_finds_two_offers(scene: Scene) -> None:
    """The oracle of the storm can fail."""
    await scene.ledger.pool.execute("DROP INDEX one_live_offer_or_ride_per_driver")
    first, second = await scene.take()
    history = History(scene.ledger)

    assert [await scene.offer(second, 3), await scene.offer(first, 3)] == [True, True]
    while await history.read(settled_after_s=0):
        pass

    (violation,) = history.oracle.violations
    assert "two live offers or rides" in violation


async def test_a_lost_map_is_rebuilt_from_live_offers_and_rides(scene: Scene) -> None:
    first, second = await scene.take()
    await scene.offer(first, 3)
    await scene.offer(second, 2)
    assert await scene.ledger.accept_offers([second.next_offer_id]) == {second.next_offer_id}
    await scene.ledger.request_rides([Trip(CITY.centre, CITY.cells[0])], patience_s=LONG_S)
    third = (await scene.take())[-1]

    claims = [await scene.drivers.claim(third, driver_id, offer_s=LONG_S) for driver_id in (3, 2, 1)]

    assert claims == [None, None, 1]


async def test_a_second_accept_changes_nothing_and_a_decided_ride_gets_no_offer(scene: Scene) -> None:
    ride, _ = await scene.take()
    await scene.offer(ride, 3)
    offer_id = ride.next_offer_id

    assert await scene.ledger.accept_offers([offer_id]) == {offer_id}
    assert await scene.ledger.accept_offers([offer_id]) == set()
    with pytest.raises(TurnLost):
        await scene.offer(ride, 1)
