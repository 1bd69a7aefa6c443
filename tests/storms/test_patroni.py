"""Patroni promotes the synchronous standby during a sale, behind PgBouncer in transaction mode (R19).

With --full only: a machine that is gone leads for twenty seconds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tests.support.box_office import office
from tests.support.patroni_pair import Member, a_patroni_pair
from tests.support.repeated_sales import RepeatedSales
from tests.support.retrying_payer import Payer

PEOPLE = 20
BOUGHT = 300  # before each kill, and after it
LEASE_S = 20.0  # of Patroni, the shortest that it allows
PATIENCE_S = 60.0
# What is killed, and how soon something must be sold again: a dead machine still leads until its lease ends.
KILLS: dict[str, tuple[Callable[[Member], Awaitable[None]], float]] = {
    "PostgreSQL": (Member.kill_postgres, 10.0),
    "the machine": (Member.kill_machine, LEASE_S + 10.0),
}


async def test_the_sale_goes_on_at_the_standby_that_patroni_promotes() -> None:
    async with a_patroni_pair() as pair:
        async with office(
            web=1,
            database_url=pair.pooler,
            database_direct_url=pair.direct,
            gateway="sandbox",
            ledger_standbys_min=1,
            compare_pause_s=1,
        ) as stage:
            show = await stage.a_show(seats=10_000, owner_seats_max=1000)
            sales = RepeatedSales(show)
            payers = [Payer(fan, patience_s=PATIENCE_S) for fan in await stage.fans(PEOPLE)]
            buying = [asyncio.create_task(sales.buy(payer)) for payer in payers]
            pauses = {}
            for what, (kill, within_s) in KILLS.items():
                await sales.reach(len(sales.confirmed) + BOUGHT)
                old, new = await pair.in_role("primary"), await pair.in_role("sync")
                killed_at = time.monotonic()
                await kill(old)
                await sales.reach(len(sales.confirmed) + BOUGHT)
                pauses[what] = sales.longest_pause_after(killed_at), within_s
                assert await new.is_in_role("primary")
                await old.come_back()
                await pair.in_role("sync")
            for task in buying:
                task.cancel()
            ends = await asyncio.gather(*buying, return_exceptions=True)

            words = ", ".join(f"{what} killed: {pause_s:.1f} s" for what, (pause_s, _) in pauses.items())
            print(f"longest pause: {words}; {len(sales.held)} holds, {len(sales.confirmed)} sales")
            assert {type(end) for end in ends} == {asyncio.CancelledError}, ends
            assert await sales.missing(stage) == []
            await stage.settled()
    assert {what: pause_s for what, (pause_s, within_s) in pauses.items() if pause_s > within_s} == {}
