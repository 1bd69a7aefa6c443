"""Home and pods backed up, restored, migrated and cleaned up as one house (R36)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

import asyncpg
import pytest

from holdfast.accounts import NewAccount
from holdfast.app import App, open_app
from holdfast.background import build_retention
from holdfast.backup import HouseUrls, name_moment
from holdfast.checkin.scan import Verdict
from holdfast.cli.audit import run_audit
from holdfast.config import Config
from holdfast.errors import Refusal
from holdfast.pods import parse_pods
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.door import Doorway
from tests.support.own_engines import hold
from tests.support.pod_house import (
    PODS,
    PodHouse,
    a_sold_show,
    environment,
    fetch,
    move,
    other_than,
    sql,
    url_of,
    wait_for_show,
    without_pod,
)
from tests.support.postgres_server import Server, servers
from tests.support.second_ledger import empty_valkey
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

SECOND_REDIS = 12  # database of Valkey
_people = count(1)


@pytest.fixture(scope="module")
def house(pod_house: PodHouse) -> PodHouse:
    return pod_house


@pytest.fixture(scope="module")
async def app(house: PodHouse) -> AsyncIterator[App]:
    async with open_app(house.config) as opened:
        yield opened


@dataclass
class Buyers:
    """New people buy free seats in turn, in every show, until they are stopped."""

    app: App
    shows: list[int]
    acknowledged: list[tuple[int, int]] = field(default_factory=list)  # (show, booking)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for show in self.shows:
                group.create_task(self._buy(show))

    async def _buy(self, show: int) -> None:
        for seat in count():
            if self.stop.is_set():
                return
            name = f"buyer{next(_people)}@example.com"
            (person,) = await self.app.accounts.add_many([NewAccount(name, name, Role.FAN)])
            try:
                booking = await hold(self.app.router.for_show(show), show, person, seat)
            except Refusal:  # its show is moving
                continue
            self.acknowledged.append((show, booking.number))
            await asyncio.sleep(0.01)


async def bookings_of(config: Config, server: Server) -> set[tuple[int, int]]:
    house = PodHouse(config, server)
    rows = [await fetch(house, pod, "SELECT show_id, number FROM booking") for pod in ("", *PODS)]
    return {(row["show_id"], row["number"]) for some in rows for row in some}


async def strangers(config: Config, server: Server) -> int:
    """Bookings of people whom the home database does not know; tests' own owners are above 7 million."""
    house = PodHouse(config, server)
    people = {row["id"] for row in await fetch(house, "", "SELECT id FROM account")}
    owners = [
        row["owner_id"] for pod in PODS for row in await fetch(house, pod, "SELECT owner_id FROM booking")
    ]
    return len([owner for owner in owners if owner < 7_000_000 and owner not in people])


async def configure(config: Config, server: Server, folder: Path) -> Config:
    """The house on another server, with empty databases of Valkey."""
    urls = [config.redis_url.partition("?")[0] + f"?db={SECOND_REDIS + i}" for i in range(len(PODS) + 1)]
    for url in urls:
        await empty_valkey(url)
    pods = " ".join(f"{name}={url_of(server, name)},{url}" for name, url in zip(PODS, urls[1:], strict=True))
    return replace(config, database_url=server.url, redis_url=urls[0], pods=pods, data_dir=str(folder))


@dataclass(frozen=True)
class Restored:
    config: Config
    server: Server
    before: set[tuple[int, int]]  # acknowledged before the backup began
    all: set[tuple[int, int]]
    moving: int  # a show that moved all the time
    started: list[Server]


@pytest.fixture(scope="module")
async def restored(
    app: App, house: PodHouse, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Restored]:
    """A backup that was made while people bought and a show moved, on another server."""
    folder = tmp_path_factory.mktemp("restored")
    *shows, moving = [await cast.a_show(app, 2000, price_minor=0) for _ in range(3)]
    for show in (*shows, moving):
        await wait_for_show(app, show)
    buyers = Buyers(app, [*shows, moving])
    async with asyncio.TaskGroup() as group:
        group.create_task(buyers.run())
        await until(lambda: asyncio.sleep(0.01, len(buyers.acknowledged) > 20))
        before = {*buyers.acknowledged}
        backup = group.create_task(
            run_holdfast("backup", "create", str(folder / "file"), **environment(house.config))
        )
        while not backup.done():
            await move(app, moving, other_than(app.router.directory.pod_of(moving)))
        buyers.stop.set()
    assert backup.result().code == 0, backup.result().words
    async with servers() as started:
        (server,) = started
        await server.start(wal_level="logical", max_connections="100", max_wal_senders="20")
        for name in ("holdfast", *PODS):
            await sql(PodHouse(house.config, server), "postgres", f"CREATE DATABASE {name}")
        config = await configure(house.config, server, folder)
        ended = await run_holdfast("backup", "restore", str(folder / "file"), **environment(config))
        assert ended.code == 0, ended.words
        yield Restored(config, server, before, {*buyers.acknowledged}, moving, started)


class TestOneMoment:
    async def test_what_was_sold_before_is_there_and_everything_fits_together(
        self, restored: Restored
    ) -> None:
        """No booking of a person whom home does not know, no show in two databases or in none."""
        found = await bookings_of(restored.config, restored.server)
        async with open_app(restored.config) as app:
            report = await run_audit(app, with_map=False, with_gateway=False, ends=None)
            show = next(iter(restored.before))[0]
            await hold(app.router.for_show(show), show, an_owner(), 1999)
            new = await a_sold_show(app)

        assert restored.before <= found
        assert await strangers(restored.config, restored.server) == 0
        assert (report.total, report.unseen) == (0, {})
        assert new[1] in PODS
        assert len(found & restored.all) < len(restored.all), "people bought after the backup, too"

    async def test_a_moment_waits_for_facts_that_are_being_written(self, house: PodHouse) -> None:
        """Home could have an effect of a fact whose commit the pod's snapshot does not see."""
        places = parse_pods(house.config.pods)
        urls = HouseUrls(house.config.database_url, {place.name: place.database_url for place in places})
        writer = await asyncpg.connect(house.url_of("west"))
        writing = writer.transaction()
        await writing.start()
        await writer.execute("INSERT INTO outbox (show_id, kind) VALUES (1, 'test')")

        naming = asyncio.create_task(name_moment(urls, "waited-for"))
        await until(partial(waits_for_facts, house, "west"))
        assert not naming.done()
        await writing.rollback()
        await writer.close()

        assert set(await naming) == {"", *PODS}

    async def test_a_named_moment_is_recovered_in_every_database(
        self, restored: Restored, tmp_path: Path
    ) -> None:
        """As an operator does: base backup, a named moment, recovery to it, `holdfast after-restore`."""
        server = restored.server
        base = server.beside("recovered")
        restored.started.append(base)
        await server.run(f"pg_basebackup --pgdata={base.data} --dbname={server.url} --checkpoint=fast")
        async with open_app(restored.config) as app:
            shows = [(await a_sold_show(app))[0] for _ in range(2)]
            earlier = {show: await buy(app, show, 7) for show in shows}
            named = await run_holdfast(
                "backup", "moment", "evening", "--json", **environment(restored.config)
            )
            assert named.code == 0, named.words
            before = await bookings_of(restored.config, server)
            codes = {show: [await buy(app, show, seat) for seat in (8, 9)] for show in shows}
            await move(app, shows[0], other_than(app.router.directory.pod_of(shows[0])))
        await server.stop()
        with (base.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {server.data}/pg_wal/%f %p'\n")
            settings.write("recovery_target_name = 'evening'\nrecovery_target_action = promote\n")
        await base.run(f"touch {base.data}/recovery.signal")
        await base.start(wal_level="logical", max_connections="100", max_wal_senders="20")
        await until(lambda: is_primary(base))
        config = await configure(restored.config, base, tmp_path)

        ended = await run_holdfast("after-restore", **environment(config))

        assert ended.code == 0, ended.words
        assert set(named.page["positions"]) == {"home", *PODS}
        assert await bookings_of(config, base) == before
        async with open_app(config) as app:
            report = await run_audit(app, with_map=False, with_gateway=False, ends=None)
            for show in shows:
                assert await scan(app, show, earlier[show], *codes[show]) == [
                    Verdict.ADMITTED,
                    Verdict.LOST_IN_RESTORE,
                    Verdict.LOST_IN_RESTORE,
                ]
                await hold(app.router.for_show(show), show, an_owner(), 9)
        assert (report.total, report.unseen) == (0, {})


async def waits_for_facts(house: PodHouse, pod: str) -> bool:
    waiting = (
        "SELECT FROM pg_locks WHERE relation = 'outbox'::regclass AND mode = 'ShareLock' AND NOT granted"
    )
    return bool(await fetch(house, pod, waiting))


async def buy(app: App, show: int, seat: int) -> str:
    """The code of a ticket."""
    pod = app.router.for_show(show)
    booking = await hold(pod, show, an_owner(), seat)
    (ticket,) = await pod.tickets.of_booking(show, booking.number)
    return await pod.tickets.fixed_code(ticket)


async def scan(app: App, show: int, *codes: str) -> list[Verdict]:
    """At a gate of the pod, with a pass of the home database."""
    pod = app.router.for_show(show)
    stand = await Doorway(Till(app, show)).stand()

    async def has_pass() -> bool:
        return bool(await pod.postgres.fetchval("SELECT true FROM gate_pass WHERE id = $1", stand.pass_id))

    await until(has_pass)
    return [(await replace(stand, app=pod).scans(code)).verdict for code in codes]


async def is_primary(server: Server) -> bool:
    return not await server.sql("SELECT pg_is_in_recovery()")


class TestRestoredPod:
    async def test_a_pod_alone_receives_again_and_shows_that_left_it_stay_closed(
        self, app: App, house: PodHouse
    ) -> None:
        """The pod went back to before a show left it: its rows are there, and are not sold."""
        show, pod = await a_sold_show(app)
        await move(app, show, "")
        went_back = ("DELETE FROM show_copy WHERE show_id = $1", "DELETE FROM price WHERE show_id = $1")
        decided = "UPDATE sale SET has_waitlist = true WHERE show_id = $1"
        await sql(house, pod, *went_back, decided, show=show)

        ended = await run_holdfast("after-restore", "--pod", pod, **environment(house.config))

        assert ended.code == 0, ended.words
        rows = await fetch(
            house, pod, "SELECT show_id, has_waitlist, show_is_here(show_id) AS here FROM sale"
        )
        assert [(row["has_waitlist"], row["here"]) for row in rows if row["show_id"] == show] == [
            (True, False)
        ]
        report = await run_audit(app, with_map=False, with_gateway=False, ends=None)
        assert (report.between.total, report.unseen) == (0, {})
        await sql(house, pod, "SELECT fence_show($1, 1)", show=show)  # as the move had left it


class TestMigrate:
    async def test_what_pods_receive_and_guard_follows_the_program(self, app: App, house: PodHouse) -> None:
        await sql(house, "", "ALTER PUBLICATION holdfast_pods DROP TABLE refund_limit, sale")
        await sql(house, "", "ALTER PUBLICATION holdfast_pods ADD TABLE sale (show_id, opens_at)")
        await sql(house, "east", "DROP TRIGGER refuse_elsewhere_insert ON ticket")

        ended = await run_holdfast("migrate", **environment(house.config))

        published = (
            "SELECT FROM pg_publication_tables"
            " WHERE tablename = 'refund_limit' OR tablename = 'sale' AND 'filed_at' = ANY (attnames)"
        )
        guarded = (
            "SELECT FROM pg_trigger WHERE tgname = 'refuse_elsewhere_insert' AND tgrelid = 'ticket'::regclass"
        )
        assert ended.code == 0, ended.words
        assert len(await fetch(house, "", published)) == 2
        assert len(await fetch(house, "east", guarded)) == 1

    async def test_a_pod_that_is_away_is_named(self, house: PodHouse) -> None:
        ended = await run_holdfast("migrate", **environment(without_pod(house.config, "west")))

        assert ended.code == 2
        assert "west was not reached" in ended.output


class TestRetention:
    async def test_a_guest_who_bought_in_a_pod_stays_and_another_one_goes_everywhere(
        self, app: App, house: PodHouse
    ) -> None:
        guests = [f"g{next(_people)}@guest.invalid" for _ in range(2)]
        buyer, other = await app.accounts.add_many([NewAccount(one, "Guest", Role.FAN) for one in guests])
        show = await cast.a_show(app, 10, price_minor=0)
        pod = await wait_for_show(app, show)
        await hold(pod, show, buyer, 1)
        await sql(house, "", "UPDATE account SET created_at = now() - interval '1 year'")
        retention = build_retention(app)
        await sql(house, "", "UPDATE retention_pass SET due_at = now(), reached = 0")
        while await retention.delete_batch():
            pass
        assert "accounts.guests" not in build_retention(pod)._rules

        async def has_gone() -> bool:
            rows = await fetch(house, app.router.directory.pod_of(show), "SELECT id FROM account")
            return other not in {row["id"] for row in rows}

        await until(has_gone)
        left = {row["id"] for row in await fetch(house, "", "SELECT id FROM account")}
        assert buyer in left
        assert other not in left
