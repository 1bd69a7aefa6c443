"""What an upgrade, a repeated set-up and a new subscription of a pod must not lose (R36)."""

import asyncio
from functools import partial

import asyncpg
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.engines.migrate import migrate
from holdfast.engines.startup_checks import connect
from holdfast.pods import Directory, require_show_here
from holdfast.pods.setup import SHARES, prepare_database
from holdfast.pods.tables import NUMBERED
from tests.support.cli_process import run_holdfast
from tests.support.dead_mover import two_shows_of_one_pod
from tests.support.own_engines import hold
from tests.support.pod_house import PodHouse, a_pod_show, environment, fetch, shows_in_pods, sql
from tests.support.second_ledger import a_ledger
from tests.support.show_fixture import an_owner
from tests.support.wait import until

FACTS = "SELECT kind FROM outbox WHERE show_id = {} ORDER BY id"
REOPEN = "UPDATE sale SET closes_at = closes_at + interval '1 h', revision = revision + 1 WHERE show_id = $1"


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


async def has_fact(house: PodHouse, pod: str, show_id: int, kind: str) -> bool:
    return kind in [row["kind"] for row in await fetch(house, pod, FACTS.format(show_id))]


async def a_past_sale(app: App, house: PodHouse) -> int:
    """A show of east with seat 3 sold, whose seat keys retention has deleted."""
    show = (await shows_in_pods(app, price_minor=0))["east"]
    await hold(app.router.for_show(show), show, an_owner(), 3)
    reduce = "UPDATE sale SET archived_at = now(), purged_at = now() WHERE show_id = $1"
    await sql(house, "east", "DELETE FROM taken_seat WHERE show_id = $1", reduce, show=show)
    return show


async def taken_seats(house: PodHouse, show_id: int) -> list[int]:
    rows = await fetch(house, "east", "SELECT show_id, seat FROM taken_seat")
    return [row["seat"] for row in rows if row["show_id"] == show_id]


class TestUpgrade:
    """Every upgrade replaces all functions and triggers, in pods too."""

    @pytest.fixture(autouse=True)
    async def upgraded(self, pod_house: PodHouse) -> None:
        await sql(pod_house, "east", "DELETE FROM schema_functions")
        east = await connect(pod_house.url_of("east"))
        assert await migrate(east)
        await east.close()

    async def test_changes_that_come_from_home_are_facts_of_the_pod(
        self, app: App, pod_house: PodHouse
    ) -> None:
        """Without facts its buyers get no mail that their show begins at another time, or is cancelled."""
        show = (await shows_in_pods(app))["east"]
        change = "UPDATE sale SET revision = revision + 1{} WHERE show_id = $1"

        await app.postgres.execute(change.format(""), show)
        await until(partial(has_fact, pod_house, "east", show, "show.changed"))
        await app.postgres.execute(change.format(", cancelled = true"), show)
        await until(partial(has_fact, pod_house, "east", show, "show.cancelled"))

    async def test_a_past_sale_that_is_opened_again_has_its_seats(
        self, app: App, pod_house: PodHouse
    ) -> None:
        """Otherwise all of them would be free, and sold a second time."""
        show = await a_past_sale(app, pod_house)

        await app.postgres.execute(REOPEN, show)

        async def is_open() -> bool:
            row = f"SELECT FROM sale WHERE show_id = {show} AND revision > 1 AND archived_at IS NULL"
            return bool(await fetch(pod_house, "east", row))

        await until(is_open)
        assert await taken_seats(pod_house, show) == [3]


class TestNumbers:
    async def test_a_number_that_is_drawn_meanwhile_is_not_drawn_again(self, shared_config: Config) -> None:
        """The command that adds the first pod runs while home sells."""
        async with a_ledger(shared_config.database_url) as url:
            buyer, command, later = [await asyncpg.connect(url) for _ in range(3)]
            await buyer.execute("SELECT setval('booking_move_id_seq', 1000)")
            buying = buyer.transaction()
            await buying.start()
            await buyer.execute("LOCK TABLE booking_move IN ROW EXCLUSIVE MODE")
            preparing = asyncio.create_task(prepare_database(command, 0))
            await until(partial(waits_for_lock, later))
            drawn = await buyer.fetchval(
                "SELECT max(nextval('booking_move_id_seq')) FROM generate_series(1, 100)"
            )
            await buying.rollback()
            await preparing
            number = await later.fetchval("SELECT nextval('booking_move_id_seq')")
            await prepare_database(command, 0)
            next_number = await later.fetchval("SELECT nextval('booking_move_id_seq')")
            for connection in (buyer, command, later):
                await connection.close()
        assert (drawn, number, next_number) == (1100, 2 * SHARES, 3 * SHARES)

    async def test_a_database_that_is_prepared_already_is_not_locked(self, pod_house: PodHouse) -> None:
        """Every command that repeats it would stop the sale for a moment."""
        buyer = await asyncpg.connect(pod_house.url_of(""))
        command = await asyncpg.connect(pod_house.url_of(""))
        async with buyer.transaction():
            for table in NUMBERED:
                await buyer.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
            await asyncio.wait_for(prepare_database(command, 0), 5)
        await buyer.close()
        await command.close()


async def waits_for_lock(connection: asyncpg.Connection) -> bool:
    return bool(await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))


class TestResync:
    async def test_what_changed_while_nothing_was_received_is_a_fact_and_maps_are_rebuilt(
        self, app: App, pod_house: PodHouse
    ) -> None:
        changed, same = await two_shows_of_one_pod(app, "east")
        east = app.router.for_show(changed)
        for show in (changed, same):
            await east.seatmap.rebuild(show, "marked")
        await sql(pod_house, "east", "ALTER SUBSCRIPTION holdfast_home DISABLE")
        await app.postgres.execute("UPDATE sale SET revision = revision + 1 WHERE show_id = $1", changed)

        ended = await run_holdfast("pod", "resync", "east", **environment(pod_house.config))

        assert ended.code == 0, ended.words
        rows = await fetch(pod_house, "east", "SELECT show_id, map_stale FROM sale")
        assert {row["map_stale"] for row in rows if row["show_id"] in (changed, same)} == {True}
        assert await has_fact(pod_house, "east", changed, "show.changed")
        assert not await has_fact(pod_house, "east", same, "show.changed")
        await hold(east, same, an_owner(), 5)

    async def test_a_past_sale_that_was_opened_again_meanwhile_has_its_seats(
        self, app: App, pod_house: PodHouse
    ) -> None:
        """The first copy inserts rows: the trigger of an update, which returns the seats, does not run."""
        show = await a_past_sale(app, pod_house)
        past = await a_past_sale(app, pod_house)
        await sql(pod_house, "east", "ALTER SUBSCRIPTION holdfast_home DISABLE")
        await app.postgres.execute(REOPEN, show)

        ended = await run_holdfast("pod", "resync", "east", **environment(pod_house.config))

        assert ended.code == 0, ended.words
        assert await taken_seats(pod_house, show) == [3]
        assert await taken_seats(pod_house, past) == []  # still over
        rows = await fetch(pod_house, "east", "SELECT show_id FROM sale WHERE archived_at IS NULL")
        assert show in [row["show_id"] for row in rows]
        assert past not in [row["show_id"] for row in rows]


class TestDirectory:
    async def test_a_change_with_an_earlier_time_is_found_after_a_minute(self, app: App) -> None:
        """Of a transaction that took long, or of a server with another clock that took over."""
        now = 0.0
        directory = Directory(app.postgres, monotonic=lambda: now)
        await directory.follow()
        show = 9_000_000_000
        await app.postgres.execute(
            "INSERT INTO show_pod (show_id, pod, changed_at) VALUES ($1, 'east', now() - interval '1 day')",
            show,
        )
        await directory.follow()
        before, now = directory.pod_of(show), 61.0
        await directory.follow()
        found = directory.pod_of(show)
        await app.postgres.execute("DELETE FROM show_pod WHERE show_id = $1", show)
        now = 122.0
        await directory.follow()
        assert (before, found, directory.pod_of(show)) == ("", "east", "")


class TestDecisionsAtHome:
    async def test_a_show_does_not_move_while_its_layout_changes(self, app: App, pod_house: PodHouse) -> None:
        """Its new database would sell a seat that the change has found free and removes."""
        show = await a_pod_show(app)
        pod = app.router.for_show(show)
        mover = await asyncpg.connect(pod_house.url_of(app.router.directory.pod_of(show)))
        await mover.execute("SET lock_timeout = '100ms'")
        async with pod.postgres.transaction() as tx:
            await require_show_here(tx, show)
            with pytest.raises(asyncpg.LockNotAvailableError):
                await mover.execute("SELECT fence_show($1, 1)", show)
        await mover.close()
