"""Rules in the ledger: history is not rewritten, one bad show stops no other, Redis is not needed (R33)."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from msgspec.structs import replace

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.holds.errors import PriceChanged
from holdfast.organisers.jobs import PriceJobs
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.pricing.rules import DemandStep, EarlyStep, PriceRule, PriceRules
from holdfast.web.caller import Scope
from tests.support.opened import engines_of
from tests.support.own_engines import Stage, a_request
from tests.support.paid_bookings import bought
from tests.support.show_fixture import an_owner
from tests.support.shows import a_show as a_show_in

Show = Callable[..., Awaitable[int]]
RULE = PriceRule(category="Standard", base_minor=1500, floor_minor=1000, ceiling_minor=2500)


def early(change_minor: int = -300) -> PriceRules:
    step = EarlyStep(until=datetime.now(UTC) + timedelta(hours=5), change_minor=change_minor)
    return PriceRules(currency="EUR", rules=(replace(RULE, early=(step,)),))


def by_demand(percent: int, change_minor: int) -> PriceRules:
    step = DemandStep(sold_percent=percent, change_minor=change_minor)
    return PriceRules(currency="EUR", rules=(replace(RULE, demand=(step,)),))


def rules_store(app: App) -> PriceRulesStore:
    scope = Scope(1, is_admin=True)
    return PriceRulesStore(app.postgres, app.catalogue, scope, pause_s=3600, count_seats=app.count_seats)


def jobs(app: App) -> PriceJobs:
    return PriceJobs(app.postgres, app.catalogue, pause_s=3600, count_seats=app.count_seats)


async def due(app: App, *show_ids: int) -> None:
    sql = "UPDATE price_plan SET due_at = now() WHERE show_id = ANY ($1)"
    await app.postgres.execute(sql, list(show_ids))


async def price(app: App, show_id: int) -> int:
    return int(await app.postgres.fetchval("SELECT price_minor FROM price WHERE show_id = $1", show_id))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE price_change SET price_minor = 1 WHERE show_id = $1",
        "DELETE FROM price_change WHERE show_id = $1",
    ],
)
async def test_past_prices_of_a_show_cannot_be_overwritten(app: App, a_show: Show, statement: str) -> None:
    show_id = await a_show()
    await rules_store(app).put(show_id, early())

    with pytest.raises(asyncpg.CheckViolationError, match="is history"):
        await app.postgres.execute(statement, show_id)


async def test_a_step_leaves_the_map_as_it_is(app: App, a_show: Show) -> None:
    """No rebuild in the middle of a sale: the map knows no prices."""
    show_id = await a_show()
    epoch = await app.seatmap.rebuild(show_id, "test")

    await rules_store(app).put(show_id, early())

    sale = await app.bookings.sale(show_id)
    assert sale is not None
    assert (sale.epoch, sale.map_stale) == (epoch, False)


async def test_a_price_follows_sales_up_and_down(app: App, a_show: Show) -> None:
    show_id = await a_show(10)
    await rules_store(app).put(show_id, by_demand(30, 400))
    booking = await bought(app, show_id, 0, 1, 2)
    await due(app, show_id)
    await jobs(app).step()
    dear = await price(app, show_id)

    await app.refunds.cancel(booking, None)
    await due(app, show_id)
    await jobs(app).step()

    assert (dear, await price(app, show_id)) == (1900, 1500)
    assert booking.prices_minor == (1500,) * 3


async def test_blocked_seats_do_not_count_for_the_share_sold(app: App, a_show: Show) -> None:
    show_id = await a_show(10)
    await app.holds.block(show_id, range(5, 10), "sponsor", 1)
    await rules_store(app).put(show_id, by_demand(40, 400))

    await bought(app, show_id, 0, 1)  # two of five
    await due(app, show_id)
    await jobs(app).step()

    assert await price(app, show_id) == 1900


async def test_holds_move_no_price(app: App, a_show: Show) -> None:
    """Holding is free, so it must not move prices."""
    show_id = await a_show(10)
    await rules_store(app).put(show_id, by_demand(10, 400))
    await app.holds.hold(await a_request(app, show_id, an_owner(), 0, 1, 2, 3))

    await due(app, show_id)
    await jobs(app).step()

    assert await price(app, show_id) == 1500


async def test_a_show_that_cannot_be_priced_does_not_stop_others(app: App, a_show: Show) -> None:
    broken, sound = await a_show(10), await a_show(10)
    for show_id in (broken, sound):
        await rules_store(app).put(show_id, by_demand(10, 400))
        await bought(app, show_id, 0)
    await app.postgres.execute("""UPDATE price_plan SET rules = '{"rules": []}' WHERE show_id = $1""", broken)
    await due(app, broken, sound)

    await jobs(app).step()

    assert (await price(app, broken), await price(app, sound)) == (1500, 1900)
    is_put_off = "SELECT due_at > now() + interval '30 s' FROM price_plan WHERE show_id = $1"
    assert await app.postgres.fetchval(is_put_off, broken)


async def test_workers_at_once_make_one_step(app: App, a_show: Show) -> None:
    show_id = await a_show(10)
    await rules_store(app).put(show_id, by_demand(10, 400))
    await bought(app, show_id, 0)
    await due(app, show_id)

    await asyncio.gather(*(jobs(app).step() for _ in range(5)))

    steps = "SELECT count(*) FROM price_change WHERE show_id = $1 AND why = 'step'"
    assert await app.postgres.fetchval(steps, show_id) == 1
    assert await app.postgres.fetchval("SELECT revision FROM show WHERE id = $1", show_id) == 2


async def test_every_set_of_rules_is_recorded_with_its_author(app: App, a_show: Show) -> None:
    show_id = await a_show()
    await rules_store(app).put(show_id, early())
    await rules_store(app).put(show_id, early(-400))
    await rules_store(app).remove(show_id)
    await rules_store(app).remove(show_id)

    rows = await app.postgres.fetch(
        "SELECT rules IS NULL AS gone, actor_id FROM price_rules_history WHERE show_id = $1 ORDER BY id",
        show_id,
    )

    assert [(row["gone"], row["actor_id"]) for row in rows] == [(False, 1), (False, 1), (True, 1)]
    assert await price(app, show_id) == 1500


async def test_an_operator_sees_prices_and_the_reasons_for_changes(app: App, a_show: Show) -> None:
    show_id = await a_show()
    await rules_store(app).put(show_id, early())
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    env = engines_of(app.config)

    outputs = []
    for options in ((), ("--json",)):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", "show", "prices", str(show_id), *options),
            env=ours | env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        outputs.append(output.decode())

    assert "12.00 EUR  by rules until" in outputs[0]
    assert "Standard: 15.00 EUR to 12.00 EUR  rules" in outputs[0]
    assert json.loads(outputs[1])["changes"][0]["price_minor"] == 1200


class TestRedisAway:
    @pytest.fixture
    async def show_id(self, stage: Stage) -> AsyncIterator[int]:
        show_id = await a_show_in(stage.app, 20)
        await stage.app.catalogue.show_on_sale(show_id)
        await stage.engines.valkey.hold()
        yield show_id
        await stage.bring_valkey_back()

    async def test_a_buyer_with_an_expected_total_is_charged_that_or_refused(
        self, stage: Stage, show_id: int
    ) -> None:
        app, owner = stage.app, an_owner()
        order = replace(await a_request(app, show_id, owner, 4), expected_minor=1500)
        await rules_store(stage.slow).put(show_id, early())  # another process: ours knows the old price

        with pytest.raises(PriceChanged) as refused:
            await app.holds.hold(order)
        again = replace(await a_request(app, show_id, owner, 4), expected_minor=1200)
        booking = await app.holds.hold(again)

        assert refused.value.details["total_minor"] == 1200
        assert (booking.state, booking.amount_minor) == (BookingState.HELD, 1200)
