"""PostgreSQL that was put back to an earlier instant by its own means issues nothing a second time (R30).

60 purchases before the dump, 60 that are lost, 60 after the restore; 1 000 each with --full, an option of
tests/storms: name that folder, too, to have it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.app import App, open_app
from holdfast.bookings import public_id, reference
from holdfast.checkin.scan import Verdict
from holdfast.config import Config
from tests.support import shows as cast
from tests.support.door import Doorway
from tests.support.own_engines import hold
from tests.support.restorable_ledger import RestorableLedger, restorable_ledger
from tests.support.show_fixture import Till, an_owner


@dataclass(frozen=True)
class Purchase:
    booking_id: str
    reference: str
    code: str


@pytest.fixture
def purchases(pytestconfig: pytest.Config) -> int:
    return 1000 if pytestconfig.getoption("--full", default=False) else 60


@pytest.fixture
async def ledger(config: Config, tmp_path: Path) -> AsyncIterator[RestorableLedger]:
    async with restorable_ledger(config, tmp_path / "data") as made:
        yield made


async def buy(app: App, show: int, seats: range) -> list[Purchase]:
    async def one(seat: int) -> Purchase:
        booking = await hold(app, show, an_owner(), seat)
        (ticket,) = await app.tickets.of_booking(show, booking.number)
        code = await app.tickets.fixed_code(ticket)
        return Purchase(public_id(show, booking.number), reference(show, booking.number), code)

    return list(await asyncio.gather(*map(one, seats)))


async def test_no_code_id_or_reference_is_issued_twice_and_lost_tickets_are_refused_by_name(
    ledger: RestorableLedger, purchases: int, tmp_path: Path
) -> None:
    dump = tmp_path / "before.dump"
    async with open_app(ledger.config) as app:
        show = await cast.a_show(app, 3 * purchases, price_minor=0)
        before = await buy(app, show, range(purchases))
        await ledger.dump(dump)
        lost = await buy(app, show, range(purchases, 2 * purchases))

    await ledger.restore(dump)
    async with open_app(ledger.config) as app:
        await app.bookings.mark_map_stale(show)
        after = await buy(app, show, range(2 * purchases, 3 * purchases))
        everything = [*before, *lost, *after]
        for field in ("booking_id", "reference", "code"):
            assert len({getattr(one, field) for one in everything}) == 3 * purchases, field

        north = await Doorway(Till(app, show)).stand()
        verdicts = {
            name: {(await north.scans(one.code)).verdict for one in some[:20]}
            for name, some in (("before", before), ("lost", lost), ("after", after))
        }
    assert verdicts == {
        "before": {Verdict.ADMITTED},
        "lost": {Verdict.LOST_IN_RESTORE},
        "after": {Verdict.ADMITTED},
    }
