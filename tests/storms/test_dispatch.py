"""Ride dispatch on `holdfast.claim`: workers and Valkey die, and no driver gets two offers (R41)."""

from dataclasses import replace

from examples.dispatch.city import Trip
from examples.dispatch.rules import Rules
from tests.support.box_office import Office
from tests.support.dispatch_storm import Size, a_storm
from tests.support.second_ledger import empty_valkey

QUICK = Rules(
    offer_s=0.5, patience_s=10, rings_max=4, lease_s=0.6, refresh_s=0.1, retry_s=0.1, claim_margin_s=0.3
)
SMALL = Size(rides=300, drivers=120, rides_per_s=150, workers=3, rules=QUICK, ride_s=(0.1, 0.4))
FULL = Size(
    rides=10_000,
    drivers=2_000,
    rides_per_s=400,
    workers=3,
    rules=replace(QUICK, offer_s=2, patience_s=60, rings_max=6),
    ride_s=(0.5, 2.0),
)
RUSH = replace(SMALL, rides=20, drivers=20, rides_per_s=1000, rules=replace(QUICK, offer_s=0.3))


async def test_no_driver_has_two_offers_and_no_ride_is_lost_whatever_dies(
    stage: Office, is_full: bool
) -> None:
    size = FULL if is_full else SMALL
    async with a_storm(stage, size) as storm:
        async with storm.riding():
            await storm.reach(size.rides // 8)
            await storm.kill_worker()
            await storm.reach(size.rides // 4)
            killed = stage.kill("valkey")
            await stage.back("valkey", after=killed)
            await storm.reach(size.rides // 3)
            await storm.kill_worker()
            await empty_valkey(stage.app.config.redis_url)
            if is_full:
                await storm.reach(size.rides // 2)
                await storm.kill_worker()
                killed = stage.kill("valkey")
                await stage.back("valkey", after=killed)
        await storm.free_drivers()
        history = await storm.check()
        print(await storm.describe(), dict(history.totals))

    assert history.oracle.violations == []
    assert history.oracle.find_lost(storm.requested) == []
    assert len(storm.requested) == size.rides
    assert history.totals["assigned"] > size.rides / 2
    assert min(history.totals[state] for state in ("declined", "lapsed")) > 0


async def test_without_valkey_the_key_of_the_ledger_decides_alone(stage: Office) -> None:
    switch = stage.folder.run / "valkey.hold"
    async with a_storm(stage, RUSH) as storm:
        rush = [Trip(storm.plan.city.centre, storm.plan.city.cells[0])] * RUSH.rides
        switch.touch()
        try:
            killed = stage.kill("valkey")
            async with storm.riding(rush):
                pass
            history = await storm.check()
        finally:
            switch.unlink()
        await stage.back("valkey", after=killed)

    assert history.oracle.violations == []
    assert history.oracle.find_lost(storm.requested) == []
    assert history.totals["assigned"] > 0
