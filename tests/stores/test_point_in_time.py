"""The ledger restored to a second named in advance, with the commands of docs/operating/backup.md."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from holdfast.app import App, open_app
from holdfast.audit import audit
from holdfast.checkin.scan import Verdict
from holdfast.config import Config
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.documented_commands import documented_commands
from tests.support.door import Doorway
from tests.support.own_engines import hold
from tests.support.postgres_server import Server, a_primary
from tests.support.second_ledger import beside
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

BUYERS = 3
SEATS = 5000
NAMED_AHEAD_S, SOLD_AFTER_S = 1, 0.7
PAUSE_S = 0.02  # of a buyer, between two purchases


@dataclass(frozen=True)
class Purchase:
    begun: datetime
    acked_at: datetime
    code: str


@pytest.fixture
async def started() -> AsyncIterator[list[Server]]:
    async with a_primary() as servers:
        yield servers


async def sell_until(app: App, show: int, end: datetime) -> list[Purchase]:
    seats, sold = count(), []

    async def buy() -> None:
        while (begun := datetime.now(UTC)) < end:
            booking = await hold(app, show, an_owner(), next(seats))
            acked_at = datetime.now(UTC)
            (ticket,) = await app.tickets.of_booking(show, booking.number)
            sold.append(Purchase(begun, acked_at, await app.tickets.fixed_code(ticket)))
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(buy() for _ in range(BUYERS)))
    return sold


async def test_tickets_of_a_named_second_are_valid_and_later_ones_are_refused_by_name(
    started: list[Server], shared_config: Config
) -> None:
    (ledger,) = started
    archive, base = (ledger.beside(name).data for name in ("archive", "base"))
    restored = ledger.beside("restored")
    started.append(restored)
    set_up, back_up, recover, is_recovering = documented_commands(
        "operating/backup.md", "Point-in-time recovery"
    )
    folders = {"LEDGER": ledger.url, "ARCHIVE": str(archive), "BASE": str(base), "PGDATA": str(restored.data)}
    config = await beside(shared_config, ledger.url, 9)

    await ledger.run(set_up, **folders)
    await ledger.stop()
    await ledger.start()
    async with open_app(config) as app:
        show = await cast.a_show(app, SEATS, price_minor=0)
        await ledger.run(back_up, **folders)
        second = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1 + NAMED_AHEAD_S)
        sold = await sell_until(app, show, second + timedelta(seconds=SOLD_AFTER_S))
    segment = await ledger.sql("SELECT pg_walfile_name(pg_switch_wal())")
    await until(lambda: asyncio.to_thread((archive / segment).exists))
    await ledger.stop()

    await restored.run(recover, **folders, SECOND=f"{second:%Y-%m-%d %H:%M:%S} UTC")
    await restored.start()
    query = folders | {"LEDGER": restored.url}

    async def is_ready() -> bool:
        return (await restored.run(is_recovering, **query)).strip() == "f"

    await until(is_ready)
    own = replace(config, database_url=restored.url)
    env = {"HOLDFAST_DATABASE_URL": own.database_url, "HOLDFAST_REDIS_URL": own.redis_url}
    completed = await run_holdfast("after-restore", **env)
    assert completed.code == 0, completed.words

    before = [one for one in sold if one.acked_at < second]
    after = [one for one in sold if one.begun > second]
    print(f"{len(before)} tickets before {second:%H:%M:%S}, {len(after)} after it")
    assert before
    assert after
    async with open_app(own) as app:
        report = await audit(app.postgres, app.bookings)
        north = await Doorway(Till(app, show)).stand()
        verdicts = [{(await north.scans(one.code)).verdict for one in some} for some in (before, after)]
        await hold(app, show, an_owner(), SEATS - 1)  # it sells on
    assert report.violations == []
    assert verdicts == [{Verdict.ADMITTED}, {Verdict.LOST_IN_RESTORE}]
