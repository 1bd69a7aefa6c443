"""The primary of the ledger is killed during a sale, and its synchronous standby takes over (R19)."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.support.box_office import office
from tests.support.postgres_server import Server, a_pair, url_of
from tests.support.repeated_sales import RepeatedSales
from tests.support.retrying_payer import Payer

PEOPLE, PEOPLE_FULL = 8, 60
BOUGHT, BOUGHT_FULL = 25, 1000  # before the kill, and after it
SELLS_AGAIN_WITHIN_S = 10.0


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Server, Server]]:
    async with a_pair() as made:
        yield made


async def test_nothing_acknowledged_is_lost_when_the_primary_dies(
    pair: tuple[Server, Server], is_full: bool
) -> None:
    primary, standby = pair
    people, bought = (PEOPLE_FULL, BOUGHT_FULL) if is_full else (PEOPLE, BOUGHT)
    hosts = url_of(primary, standby)
    async with office(
        web=1, database_url=hosts, gateway="sandbox", ledger_standbys_min=1, compare_pause_s=1
    ) as stage:
        show = await stage.a_show(seats=10_000 if is_full else 1000, owner_seats_max=1000)
        sales = RepeatedSales(show)
        buying = [asyncio.create_task(sales.buy(Payer(fan))) for fan in await stage.fans(people)]
        await sales.reach(bought)

        killed_at = time.monotonic()
        await primary.kill()
        await standby.promote()
        promoted_at = time.monotonic()
        await sales.reach(len(sales.confirmed) + bought)
        for task in buying:
            task.cancel()
        ends = await asyncio.gather(*buying, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}, ends

        first_hold, first_sale = (
            min(at for at in acknowledged.values() if at > promoted_at) - promoted_at
            for acknowledged in (sales.held, sales.confirmed)
        )
        print(
            f"promoted {promoted_at - killed_at:.2f} s after the kill; first hold after {first_hold:.2f} s, "
            f"first sale {first_sale:.2f} s; {len(sales.held)} holds and {len(sales.confirmed)} sales in all"
        )
        assert first_sale < SELLS_AGAIN_WITHIN_S
        assert await sales.missing(stage) == []
        await stage.settled()
