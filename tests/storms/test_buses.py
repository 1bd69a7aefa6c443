"""The bus away, relays and consumers killed under a sale, on every bus: each fact is acted on once (R28).

The killed process is in turn a production worker (`holdfast work`: relay, figures, notices, search, hooks)
and one of the tests. A bus that stores nothing on disk restarts empty: its facts are delivered again.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from holdfast.app import App
from holdfast.outbox.store import RELAY
from tests.support.box_office import Office, jobs, office
from tests.support.bus_servers import BUSES, Server, a_server
from tests.support.fact_recorder import other_outbox
from tests.support.killed_consumers import Workers, two_workers
from tests.support.own_engines import hold
from tests.support.paid_bookings import payment_request
from tests.support.result_tables import Table
from tests.support.shows import Fan, a_layout
from tests.support.wait import until

LAST = "SELECT coalesce(max(id), 0) FROM outbox"
CHECKPOINTS = "SELECT name, checkpoint FROM consumer_group"
LETTERS = """
SELECT number, count(notice.id) FILTER (WHERE notice.kind = 'tickets') AS letters
  FROM booking LEFT JOIN notice USING (show_id, number)
 WHERE show_id = $1 AND booking.state = 'confirmed'
 GROUP BY number
"""
PEOPLE = 20


@dataclass(frozen=True)
class Size:
    bookings: int
    kills: int
    away_s: float
    drained_within_s: float
    buyers: int
    pause_s: float  # between two bookings of a buyer


SMALL = Size(60, 3, 1.0, drained_within_s=60, buyers=4, pause_s=0.3)
FULL = Size(2_000, 20, 60.0, drained_within_s=120, buyers=8, pause_s=0.4)


@pytest.fixture(scope="module")
def size(is_full: bool) -> Size:
    return FULL if is_full else SMALL


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config, size: Size) -> Table:
    """Printed when all tests are over."""
    title = f"the bus away for {size.away_s:.0f} s, {size.kills} kills under {size.bookings} bookings"
    made = Table(title)
    pytestconfig.pluginmanager.register(made, "a storm on every bus")
    return made


@pytest.fixture(scope="module")
async def shop() -> AsyncIterator[Office]:
    """Without jobs: they are started for each bus."""
    async with office(web=1, work=False) as opened:
        yield opened


@dataclass
class Sale:
    """Buyers that pay, cancel or are declined, one after the other."""

    app: App
    show_id: int
    size: Size
    people: list[Fan]
    made: int = 0
    _seats: int = field(default=0, init=False)

    async def run(self) -> None:
        await asyncio.gather(*(self._buy() for _ in range(self.size.buyers)))

    async def _buy(self) -> None:
        while self._seats < self.size.bookings:
            seat, self._seats = self._seats, self._seats + 1
            owner = self.people[seat % len(self.people)].account_id
            booking = await hold(self.app, self.show_id, owner, seat)
            match seat % 3:
                case 0:
                    await self.app.saga_runner.pay(payment_request(booking))
                case 1:
                    await self.app.holds.cancel(booking)
                case _:
                    await self.app.saga_runner.pay(payment_request(booking, "tok_declined"))
                    await self.app.saga_runner.pay(payment_request(booking))
            self.made += 1
            await asyncio.sleep(self.size.pause_s)

    async def has_made(self, count: int) -> bool:
        return self.made >= count


async def away(server: Server, size: Size, sale: Sale) -> None:
    """Killed when a fifth is sold, and started again after its time."""
    await until(partial(sale.has_made, size.bookings // 5), within_s=120)
    await server.kill()
    await asyncio.sleep(size.away_s)
    await server.start()


async def kills(shop: Office, workers: Workers, size: Size, sale: Sale) -> int:
    """In turn, while the sale goes on; how many there were."""
    for i in range(size.kills):
        await until(partial(sale.has_made, size.bookings * i // size.kills), within_s=300)
        if i % 2:
            await workers.kill_one()
        else:
            await shop.back("work-1", after=shop.kill("work-1"), within_s=60)
    return size.kills


@asynccontextmanager
async def at_work(shop: Office, server: Server, folder: Path) -> AsyncIterator[Workers]:
    async with (
        jobs(shop.folder, bus_url=server.url),
        two_workers(shop, folder, server.url, news_only=True) as workers,
    ):
        yield workers


async def all_have_passed(app: App, last: int, group: str) -> bool:
    found = {row["name"]: row["checkpoint"] for row in await app.postgres.fetch(CHECKPOINTS)}
    return {RELAY, "reports", "notifications", "search", "webhooks", group} <= found.keys() and (
        min(found.values()) >= last
    )


@pytest.mark.parametrize("bus", BUSES)
async def test_every_fact_is_acted_on_once_and_in_order_whatever_dies(
    bus: str, shop: Office, size: Size, table: Table, tmp_path: Path
) -> None:
    app = shop.app
    show_id = await shop.a_show(layout=a_layout(size.bookings, row=50), owner_seats_max=1000)
    await app.seatmap.rebuild(show_id, "storm")
    sale, first = Sale(app, show_id, size, await shop.fans(PEOPLE)), int(await app.postgres.fetchval(LAST))
    async with a_server(bus, tmp_path) as server, at_work(shop, server, tmp_path) as workers:
        await until(partial(all_have_passed, app, first, workers.group), within_s=size.drained_within_s)
        async with asyncio.TaskGroup() as storm:
            storm.create_task(sale.run())
            storm.create_task(away(server, size, sale))
            killed = storm.create_task(kills(shop, workers, size, sale))
        began, last = time.monotonic(), int(await app.postgres.fetchval(LAST))
        await until(partial(all_have_passed, app, last, workers.group), within_s=size.drained_within_s)
        drained_s = time.monotonic() - began
        bus_has = await last_on(app, server)
        consumed = await workers.load_consumed(shop, first, last)

    letters = {row["number"]: row["letters"] for row in await app.postgres.fetch(LETTERS, show_id)}
    figures_before = await app.reports.of_show(show_id, None)
    await app.reports.rebuild_show(show_id)
    behind = {row["name"]: (row["parked"], row["dead"]) for row in await app.outbox.groups()}
    for what, count in {
        "bookings": sale.made,
        "facts written": len(consumed.facts),
        "consumed": len({fact_id for _, fact_id in consumed.delivered}),
        "delivered again": consumed.again,
        "effects": len(consumed.acted),
        "out of order": len(consumed.shuffled),
        "tickets sent": sum(letters.values()),
        "kills": killed.result(),
        "drained in": f"{drained_s:.1f} s",
        "bus storage": "all, on disk" if server.keeps else "nothing",
    }.items():
        table.note(bus, what, count)
    assert consumed.undelivered == set()
    assert len(consumed.acted) == len(consumed.facts) > size.bookings * 2
    assert consumed.shuffled == []
    assert bus_has >= last
    assert set(letters.values()) == {1}
    assert len(letters) == sum(seat % 3 != 1 for seat in range(size.bookings))
    assert await app.reports.of_show(show_id, None) == figures_before
    assert set(behind.values()) == {(0, 0)}, behind


async def last_on(app: App, server: Server) -> int:
    elsewhere = other_outbox(app, bus_url=server.url)
    try:
        return await (await elsewhere.bus()).last()
    finally:
        await elsewhere.close()
