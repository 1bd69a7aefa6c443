"""The map follows the ledger: what could not be written into it is found and corrected later (R19)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.holds import SeatsTaken
from holdfast.holds.jobs import SaleJobs
from tests.support.claim_pool import Pool
from tests.support.cuttable_link import Line, a_line_to_redis
from tests.support.ledger_payments import paying
from tests.support.opened import open_app
from tests.support.own_engines import hold
from tests.support.show_fixture import Till, a_till, an_owner


@dataclass(frozen=True)
class CutOff:
    """A process whose link to Redis can be cut; Redis and all other processes go on."""

    app: App
    line: Line


@pytest.fixture
async def cut_off(config: Config) -> AsyncIterator[CutOff]:
    async with a_line_to_redis(config) as line, open_app(line.config) as opened:
        yield CutOff(opened, line)


async def on_sale(app: App) -> Till:
    till = await a_till(app)
    await app.seatmap.rebuild(till.show, "test")
    return till


def pool(app: App, till: Till) -> Pool:
    return Pool(app.claims, app.redis, till.show)


class TestAnUpdateThatRedisDidNotGet:
    async def test_is_made_up_for_by_the_next_worker(self, app: App, cut_off: CutOff) -> None:
        """However late it comes: nothing has moved in the show since, and no one has looked at it."""
        till = await on_sale(app)
        booking = await hold(cut_off.app, till.show, an_owner(), 4)
        cut_off.line.cut()

        await cut_off.app.holds.cancel(booking)

        assert (await pool(app, till).states())[4] == "H"
        jobs = SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config)
        while (await pool(app, till).states())[4] != "A":
            assert await jobs.rebuild_stale() > 0, "the show is not among those that need a new map"

    async def test_is_made_up_for_by_the_next_hold_if_no_worker_runs(self, app: App, cut_off: CutOff) -> None:
        till = await on_sale(app)
        booking = await hold(cut_off.app, till.show, an_owner(), 4)
        cut_off.line.cut()
        await cut_off.app.holds.cancel(booking)

        await hold(app, till.show, an_owner(), 9)

        assert (await pool(app, till).states())[4] == "A"


class TestACorrection:
    async def test_of_a_seat_that_is_being_paid_for_has_no_end(self, app: App) -> None:
        """The payment decides, however long the gateway takes: with an end the seat would look free."""
        till = await on_sale(app)
        payment = await paying(app, till.show, 4)
        await pool(app, till).settle("release", payment.claim)

        with pytest.raises(SeatsTaken):
            await hold(app, till.show, an_owner(), 4)

        found = await pool(app, till).map()
        assert found.units[4:5] == b"H"
        assert (found.claims or {})[str(payment.claim)] == float("inf")


class TestAMapThatIsBroken:
    async def test_is_replaced_and_does_not_fail_the_holds_of_other_shows(self, app: App) -> None:
        """Shows are claimed in the same round trip."""
        broken, good = await on_sale(app), await on_sale(app)
        await _break(app, broken)

        both = await asyncio.gather(*(hold(app, till.show, an_owner(), 4) for till in (good, broken)))

        assert [booking.seats for booking in both] == [(4,), (4,)]

    async def test_does_not_fail_the_updates_of_other_shows(self, app: App) -> None:
        broken, good = await on_sale(app), await on_sale(app)
        bookings = [await hold(app, till.show, an_owner(), 4) for till in (broken, good)]
        await _break(app, broken)

        await asyncio.gather(*(app.holds.cancel(booking) for booking in bookings))

        assert (await pool(app, good).states())[4] == "A"
        sale = await app.bookings.sale(broken.show)
        assert sale is not None
        assert sale.map_stale
        await app.seatmap.rebuild(broken.show, "test")
        assert await pool(app, broken).states() == "A" * 50


async def _break(app: App, till: Till) -> None:
    """Its claims are not what the scripts expect."""
    ends = pool(app, till).key("ends")
    await app.redis.call("DEL", ends)
    await app.redis.call("SET", ends, "not a sorted set")
