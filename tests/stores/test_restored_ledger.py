"""PostgreSQL that was put back to an earlier instant by its own means issues nothing a second time (R30).

60 purchases before the dump, 60 that are lost, 60 after the restore; 1 000 each with --full, an option of
tests/storms: name that folder, too, to have it.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App, open_app
from holdfast.backup import LedgerMark, find_restore, finish_restore, refuse_other_ledger, take_redis_over
from holdfast.backup.mark import WentBack
from holdfast.bookings import public_id, reference
from holdfast.checkin.scan import Verdict
from holdfast.cli.doctor import findings
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import require_row
from holdfast.engines.startup_checks import connect
from holdfast.errors import TokenInvalid
from holdfast.runtime.check_settings import Severity
from holdfast.web.caller import Caller, Role
from holdfast.web_jobs import build_ledger_mark
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.door import Doorway
from tests.support.own_engines import hold
from tests.support.restorable_ledger import RestorableLedger, restorable_ledger
from tests.support.second_ledger import empty_valkey
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
    (tmp_path / "data").mkdir()
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


async def test_a_running_process_notices_that_the_ledger_went_back(
    ledger: RestorableLedger, tmp_path: Path
) -> None:
    """A standby that lagged was promoted: no process of the box office restarts."""
    dump = tmp_path / "before.dump"
    folder = tmp_path / "empty"
    folder.mkdir()
    async with open_app(ledger.config) as app:
        mark = LedgerMark(app.postgres, app.redis, folder)
        await mark.beat()
        await ledger.dump(dump)
        await mark.beat()
        assert await gone_back(app, ledger, folder) is None

        await ledger.restore(dump)
        await mark.beat()
        await mark.beat()  # which does not hide it

        found = await gone_back(app, ledger, folder)
        assert found is not None
        assert found.to < found.seen
        assert await gone_back(app, ledger, tmp_path / "of another machine") == found  # Valkey has it, too


async def gone_back(app: App, ledger: RestorableLedger, folder: Path) -> WentBack | None:
    return await find_restore(app.postgres, ledger.config.redis_url, folder)


async def test_a_ledger_that_went_back_is_not_served_before_the_restore_is_completed(
    ledger: RestorableLedger, tmp_path: Path
) -> None:
    dump = tmp_path / "before.dump"
    env = {
        "HOLDFAST_DATABASE_URL": ledger.config.database_url,
        "HOLDFAST_REDIS_URL": ledger.config.redis_url,
        "HOLDFAST_DATA_DIR": ledger.config.data_dir,
        "HOLDFAST_GATEWAY": "sandbox",
    }
    async with open_app(ledger.config) as app:
        await ledger.dump(dump)
        show = await cast.a_show(app)
        lost = app.accounts.access_token(Caller(await sign_up(app), Role.FAN, 1))
        await build_ledger_mark(app).beat()

    await ledger.restore(dump)
    refused = await run_holdfast("prepare", **env)
    found = await run_holdfast("doctor", "--json", **env)
    completed = await run_holdfast("after-restore", "--json", **env)
    served = await run_holdfast("prepare", **env)

    assert (refused.code, "holdfast after-restore" in refused.words) == (2, True), refused
    assert [one["health"] for one in found.page if one["what"] == "ledger's history"] == ["fail"], found
    assert (completed.code, served.code) == (0, 0), (completed, served)
    async with open_app(ledger.config) as app:
        assert await cast.a_show(app) > show + 1000
        with pytest.raises(TokenInvalid):
            app.accounts.verify(f"Bearer {lost}")


async def sign_up(app: App) -> int:
    (account_id,) = await app.accounts.add_many([NewAccount("lost@example.com", "Lost")])
    return account_id


async def test_completing_a_restore_distrusts_everything_outside_of_the_ledger(
    ledger: RestorableLedger,
) -> None:
    async with open_app(ledger.config) as app:
        show = await cast.a_show(app)
        await app.seatmap.rebuild(show, "test")
        known = "SELECT epoch, map_stale, name FROM sale, fact_log"
        before = require_row(await app.postgres.fetchrow(known))

        connection = await connect(ledger.config.database_url)
        await finish_restore(connection)
        await finish_restore(connection)  # safe to repeat
        await connection.close()

        after = require_row(await app.postgres.fetchrow(known))
    assert (before["map_stale"], after["map_stale"]) == (False, True)
    assert after["epoch"] > before["epoch"] + 1000
    assert after["name"] != before["name"]


async def test_processes_that_share_a_data_folder_raise_the_mark_at_once(
    ledger: RestorableLedger,
) -> None:
    """Web workers and jobs of one machine: none fails, and none takes another's beat for a restore."""
    async with open_app(ledger.config) as app:
        marks = [build_ledger_mark(app) for _ in range(8)]
        for _ in range(5):
            await asyncio.gather(*(mark.beat() for mark in marks))

        assert await gone_back(app, ledger, Path(ledger.config.data_dir)) is None


async def test_a_second_ledger_on_one_database_of_redis_is_refused_until_it_replaces_the_first(
    ledger: RestorableLedger, config: Config
) -> None:
    """Shows of both have the same numbers, and would be sold from one map."""
    url = ledger.config.redis_url
    first, second = await connect(ledger.config.database_url), await connect(config.database_url)
    await refuse_other_ledger(first, url)
    await refuse_other_ledger(first, url)  # its second process

    with pytest.raises(OperatorError, match="a database of its own"):
        await refuse_other_ledger(second, url)
    checked = {one.what: one async for one in findings(replace(config, redis_url=url))}
    assert checked["seat maps"].health is Severity.FAIL

    await take_redis_over(second, url)
    await refuse_other_ledger(second, url)
    with pytest.raises(OperatorError):
        await refuse_other_ledger(first, url)
    await asyncio.gather(first.close(), second.close())


async def test_a_ledger_whose_redis_lost_its_data_owns_it_again(
    ledger: RestorableLedger, config: Config
) -> None:
    url = ledger.config.redis_url
    first, second = await connect(ledger.config.database_url), await connect(config.database_url)
    await refuse_other_ledger(first, url)

    await empty_valkey(url)
    async with open_app(ledger.config) as app:
        await build_ledger_mark(app).beat()

    await refuse_other_ledger(first, url)
    with pytest.raises(OperatorError):
        await refuse_other_ledger(second, url)
    await asyncio.gather(first.close(), second.close())
