"""One show never slows another: a show whose rows are locked makes only its own buyers wait.

Rebuilds, price changes and every other change of a show lock its sale. Holds of all shows share their round
trips, so without care each of these locks would be felt in the whole house.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.app import App, open_app
from holdfast.bookings import Booking, OpeningRefused
from holdfast.config import Config
from holdfast.errors import Busy
from tests.support.claim_pool import Pool
from tests.support.own_engines import hold
from tests.support.show_fixture import Till, a_till, an_owner, other_ledger
from tests.support.wait import until

LOCKED = OpeningRefused("locked")


@asynccontextmanager
async def locked(
    till: Till, sql: str = "SELECT 1 FROM sale WHERE show_id = $1 FOR UPDATE"
) -> AsyncIterator[None]:
    """Another session has the lock that a rebuild or a change of the show takes."""
    elsewhere, _ = other_ledger(till.app)
    try:
        async with elsewhere.transaction() as tx:
            await tx.execute(sql, till.show)
            yield
    finally:
        await elsewhere.close()


async def two_tills(app: App) -> tuple[Till, Till]:
    tills = await a_till(app), await a_till(app)
    for till in tills:
        await app.seatmap.rebuild(till.show, "test")
    return tills


async def test_a_hold_does_not_wait_for_the_lock_of_another_show(app: App) -> None:
    changed, other = await two_tills(app)

    async with locked(changed):
        waiting = [asyncio.create_task(hold(app, changed.show, an_owner(), seat)) for seat in range(3)]
        for seat in range(5):
            booking = await hold(app, other.show, an_owner(), seat)
            assert booking.show_id == other.show
        assert not any(task.done() for task in waiting)

    assert {(await task).show_id for task in waiting} == {changed.show}
    assert sorted(await changed.taken()) == [0, 1, 2]


async def test_a_batch_skips_the_locked_show_and_opens_the_others(app: App) -> None:
    changed, other = await two_tills(app)
    openings = [till.opening(seat, owner_id=an_owner()) for seat in (1, 2) for till in (changed, other)]

    async with locked(changed):
        outcomes = await other.open_many(openings)

    assert [type(outcome) for outcome in outcomes[1::2]] == [Booking, Booking]
    assert outcomes[::2] == [LOCKED, LOCKED]
    assert await changed.taken() == {}
    assert await changed.violations() == await other.violations() == []


async def test_a_lock_on_another_row_of_a_show_stops_that_show_alone(app: App) -> None:
    """A refund has the counter of one owner: the batch is split, and the other show's part is opened."""
    changed, other = await two_tills(app)
    await changed.opened(9)

    async with locked(changed, "SELECT 1 FROM owner_count WHERE show_id = $1 FOR UPDATE"):
        waiting = asyncio.create_task(hold(app, changed.show, changed.owner, 1))
        booking = await hold(app, other.show, an_owner(), 1)
        assert not waiting.done()

    assert booking.show_id == other.show
    assert (await waiting).seats == (1,)


async def test_a_buyer_who_cannot_wait_longer_gets_the_seats_back_into_the_sale(config: Config) -> None:
    """Refused as busy; a claim that stayed would keep the seat from everyone for ten minutes."""
    async with open_app(replace(config, sale_lock_wait_ms=50)) as hasty:
        till = await a_till(hasty)
        await hasty.seatmap.rebuild(till.show, "test")
        async with locked(till):
            with pytest.raises(Busy):
                await hold(hasty, till.show, an_owner(), 4)

        assert await Pool(hasty.claims, hasty.redis, till.show).states() == "A" * 50
        assert (await hold(hasty, till.show, an_owner(), 4)).seats == (4,)


async def test_a_show_that_stays_locked_gives_its_place_back_when_it_is_free_again(app: App) -> None:
    """After the lock its holds travel with all others again."""
    changed, other = await two_tills(app)
    async with locked(changed):
        waiting = asyncio.create_task(hold(app, changed.show, an_owner(), 1))
        await hold(app, other.show, an_owner(), 1)
    await waiting

    await until(lambda: asyncio.sleep(0, app.holds.locked_shows == 0))
    both = await asyncio.gather(*(hold(app, till.show, an_owner(), 2) for till in (changed, other)))
    assert [booking.seats for booking in both] == [(2,), (2,)]
