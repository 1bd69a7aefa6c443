"""Shows in several databases: each is sold by exactly one, whatever a router believes (R36)."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from holdfast.app import App, asgi_app, open_app
from holdfast.bookings import from_public_id
from holdfast.cli.pods import databases
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Queries
from holdfast.errors import Busy
from holdfast.pods import parse_pods
from holdfast.pods.directory import Ownership
from holdfast.pods.move import ShowMover
from holdfast.pods.tables import OF_A_SHOW
from tests.conftest import started
from tests.support.own_engines import hold
from tests.support.pod_house import PODS, PodHouse, a_pod_house, add_pods, buys, count_rows, holds, move
from tests.support.pod_house import a_pod_show as a_show
from tests.support.shows import Fan
from tests.support.wait import until

Q = Queries("holdfast.pods")
WRITES = "UPDATE ticket SET seat = seat WHERE show_id = $1"
# The statement that switches a show fails. A mover cannot know whether it did before or after the commit.
LOSES_THE_REPLY = """
CREATE OR REPLACE FUNCTION lose_reply() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN RAISE EXCEPTION USING ERRCODE = ''connection_failure''; END';
CREATE TRIGGER lose_reply BEFORE UPDATE ON show_pod FOR EACH ROW EXECUTE FUNCTION lose_reply();
"""


@pytest.fixture(scope="module")
async def house(shared_config: Config) -> AsyncIterator[PodHouse]:
    async with a_pod_house(shared_config) as made:
        yield made


@pytest.fixture(scope="module")
async def app(house: PodHouse) -> AsyncIterator[App]:
    async with open_app(house.config) as opened:
        yield opened


@pytest.fixture(scope="module")
async def api(house: PodHouse) -> AsyncIterator[httpx2.AsyncClient]:
    application = asgi_app(house.config)
    async with started(application):
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
            yield client


class TestSpread:
    """New shows go to the pods in turn, and are sold, paid and listed as anywhere else."""

    async def test_new_shows_go_to_the_pod_with_the_fewest(self, app: App) -> None:
        shows = [await a_show(app) for _ in range(4)]
        pods = [app.router.directory.pod_of(show) for show in shows]
        assert sorted(pods) == ["east", "east", "west", "west"]

    async def test_a_purchase_is_in_the_database_of_its_pod_alone(
        self, app: App, house: PodHouse, alice: Fan
    ) -> None:
        show = await a_show(app)
        await buys(alice, show, "A-1", "A-2")
        owner = app.router.directory.pod_of(show)
        counts = {pod: await count_rows(house, pod, "ticket", show) for pod in ("", *PODS)}
        assert counts == dict.fromkeys(("", *PODS), 0) | {owner: 2}

    async def test_my_bookings_come_from_every_pod(self, app: App, alice: Fan) -> None:
        shows = [await a_show(app) for _ in range(2)]
        assert {app.router.directory.pod_of(show) for show in shows} == set(PODS)
        bought = [await buys(alice, show, "B-1") for show in shows]
        listed = (await alice.get("/bookings")).json()
        newest_first = sorted(bought, key=lambda one: from_public_id(one)[1], reverse=True)
        assert [one["booking_id"] for one in listed["bookings"]][:2] == newest_first
        assert listed["complete"]
        tickets = (await alice.get("/tickets")).json()["tickets"]
        assert {one["show_id"] for one in tickets} >= set(shows)

    async def test_the_change_of_a_price_reaches_the_pod_with_its_revision(self, app: App) -> None:
        show = await a_show(app)
        pod = app.router.for_show(show)
        before = await pod.bookings.sale(show)
        await app.postgres.execute("UPDATE sale SET revision = revision + 1 WHERE show_id = $1", show)

        async def has_changed() -> bool:
            after = await pod.bookings.sale(show)
            return after is not None and before is not None and after.revision == before.revision + 1

        await until(has_changed)
        after = await pod.bookings.sale(show)
        assert before is not None
        assert after is not None
        assert after.map_stale, "Redis would sell from a map with old prices"


class TestGuard:
    """The ledger of a pod sells its own shows only: a router with an old directory cannot sell."""

    async def test_another_pod_and_home_refuse(self, app: App, house: PodHouse, alice: Fan) -> None:
        show = await a_show(app)
        owner = app.router.directory.pod_of(show)
        for other in {"", *PODS} - {owner}:
            app.router.directory._shows[show] = Ownership(other, 1)
            response = await _hold_in_process(app, alice, show)
            assert response is None
            assert await count_rows(house, other, "booking", show) == 0
        app.router.directory._shows[show] = Ownership(owner, 1)
        assert await _hold_in_process(app, alice, show) is not None

    async def test_a_restored_pod_does_not_sell_a_show_that_was_moved_away(
        self, app: App, house: PodHouse, alice: Fan
    ) -> None:
        """Its own rows say that the show is there; the directory has a later epoch."""
        show = await a_show(app)
        owner = app.router.directory.pod_of(show)
        await move(app, show, "")
        restored = await asyncpg.connect(house.url_of(owner))
        await restored.execute("DELETE FROM show_copy WHERE show_id = $1", show)
        assert not await restored.fetchval("SELECT show_is_here($1)", show)
        await restored.close()

    @pytest.mark.parametrize("ended", ["COMMIT; BEGIN", "ROLLBACK TO before"])
    async def test_a_show_is_looked_at_again_once_its_lock_is_gone(
        self, app: App, house: PodHouse, alice: Fan, ended: str
    ) -> None:
        """With the transaction, or with a savepoint of it: a fence may have come in between."""
        show = await a_show(app)
        await buys(alice, show, "A-1")
        url = house.url_of(app.router.directory.pod_of(show))
        writer, mover = [await asyncpg.connect(url) for _ in range(2)]
        await writer.execute("BEGIN; SAVEPOINT before")
        await writer.execute(WRITES, show)
        await writer.execute(ended)
        await mover.execute("SELECT fence_show($1, 2)", show)
        with pytest.raises(asyncpg.LockNotAvailableError):
            await writer.execute(WRITES, show)
        await asyncio.gather(writer.close(), mover.close())


async def _hold_in_process(app: App, fan: Fan, show_id: int) -> int | None:
    """The number of the booking; None: refused as busy."""
    try:
        booking = await hold(app.router.for_show(show_id), show_id, fan.account_id, 3)
    except Busy:
        return None
    return booking.number


class TestMove:
    """A show moves with everything it has, while it sells."""

    async def test_everything_moves_and_nothing_is_left(
        self, app: App, house: PodHouse, alice: Fan, bob: Fan
    ) -> None:
        show = await a_show(app)
        source = app.router.directory.pod_of(show)
        target = next(pod for pod in PODS if pod != source)
        paid = await buys(alice, show, "A-1", "A-2")
        held = await holds(bob, show, "B-1")
        written = [table for table in OF_A_SHOW if not table.startswith("report_")]  # these follow facts
        before = {table: await count_rows(house, source, table, show) for table in written}
        report = await move(app, show, target)
        assert {table: await count_rows(house, target, table, show) for table in written} == before
        assert await count_rows(house, target, "report_seat", show) == 2
        assert report.rows > sum(before.values()) > 0
        left = [table for table in OF_A_SHOW if await count_rows(house, source, table, show)]
        assert left == []
        await until(lambda: _is_state(alice, paid, "confirmed"))
        assert (await bob.post(f"/bookings/{held}/pay", {"method": "tok_ok"}, key="p")).status_code == 200
        refused = await bob.holds(show, "A-1")
        assert refused.status_code == 409

    async def test_it_moves_home_and_back(self, app: App, alice: Fan) -> None:
        show = await a_show(app)
        pod = app.router.directory.pod_of(show)
        await buys(alice, show, "A-1")
        for to in ("", pod, ""):
            await move(app, show, to)
            assert app.router.directory.pod_of(show) == to
        row = await app.postgres.fetchrow("SELECT pod, epoch FROM show_pod WHERE show_id = $1", show)
        assert row is not None
        assert tuple(row) == ("", 4)
        await buys(alice, show, "A-2")

    async def test_buyers_who_hold_meanwhile_lose_nothing(
        self, app: App, house: PodHouse, alice: Fan, bob: Fan
    ) -> None:
        show = await a_show(app, seats=200, owner_seats_max=200)
        source = app.router.directory.pod_of(show)
        acknowledged: list[str] = []
        done = asyncio.Event()

        async def buyer(fan: Fan, row: int) -> None:
            seats = iter([f"{chr(65 + row + i // 10)}-{i % 10 + 1}" for i in range(100)])
            seat = next(seats)
            while not done.is_set():
                response = await fan.holds(show, seat)
                if response.status_code == 201:
                    acknowledged.append(response.json()["booking_id"])
                    seat = next(seats)
                else:
                    assert response.status_code == 503, response.text
                    assert "retry-after" in response.headers
                await asyncio.sleep(0.02)

        async with asyncio.TaskGroup() as buyers:
            buyers.create_task(buyer(alice, 0))
            buyers.create_task(buyer(bob, 10))
            await until(lambda: asyncio.sleep(0.01, len(acknowledged) > 10))
            target = next(pod for pod in PODS if pod != source)
            await move(app, show, target)
            moved_at = len(acknowledged)
            await until(lambda: asyncio.sleep(0.01, len(acknowledged) > moved_at + 5))
            done.set()
        assert await count_rows(house, source, "booking", show) == 0
        assert await count_rows(house, target, "booking", show) == len(acknowledged)

    async def test_one_mover_at_a_time(self, app: App, house: PodHouse, alice: Fan) -> None:
        """The one that gives up would take away the fence behind which the other copies."""
        show = await a_show(app)
        mover = await asyncpg.connect(house.url_of(""))
        assert await mover.fetchval(Q.try_lock_place, show)

        with pytest.raises(OperatorError, match="is being moved or deleted by another command"):
            await move(app, show, "")

        await mover.close()
        await until(lambda: _is_moved(app, show, ""))
        await buys(alice, show, "A-1")

    async def test_a_lost_reply_to_the_switch_leaves_the_fence(
        self, app: App, house: PodHouse, alice: Fan
    ) -> None:
        """The old pod has not received its new epoch yet: without the fence both would sell the show."""
        show = await a_show(app)
        owner = app.router.directory.pod_of(show)
        target = next(pod for pod in PODS if pod != owner)
        old = await asyncpg.connect(house.url_of(owner))
        await old.execute("ALTER SUBSCRIPTION holdfast_home DISABLE")
        home = await asyncpg.connect(house.url_of(""))
        await home.execute(LOSES_THE_REPLY)

        with pytest.raises(asyncpg.PostgresError):
            await move(app, show, target)

        assert not await old.fetchval("SELECT show_is_here($1)", show)
        await home.execute("DROP TRIGGER lose_reply ON show_pod")
        await move(app, show, owner)
        assert await old.fetchval("SELECT show_is_here($1)", show)
        await old.execute("ALTER SUBSCRIPTION holdfast_home ENABLE")
        await buys(alice, show, "A-1")
        for connection in (home, old):
            await connection.close()


async def _is_moved(app: App, show_id: int, to: str) -> bool:
    """Once the server has noticed that the other mover is gone."""
    try:
        await move(app, show_id, to)
    except OperatorError:
        return False
    return True


async def _is_state(fan: Fan, booking_id: str, state: str) -> bool:
    response = await fan.get(f"/bookings/{booking_id}")
    return response.status_code == 200 and response.json()["state"] == state


class TestMovers:
    async def test_one_command_at_a_time_moves_a_show(self, app: App, house: PodHouse) -> None:
        """Of two with the same fence, one that fails would open the show while the other copies it."""
        show = await a_show(app)
        other = await asyncpg.connect(house.url_of(""))
        await other.fetchval("SELECT pg_advisory_lock(39, $1::int)", show)
        with pytest.raises(OperatorError, match="by another command"):
            await ShowMover(app.config.database_url, await databases(app)).move(show, "")
        await other.close()
        assert (await move(app, show, "")).rows >= 0


class TestAdding:
    async def test_it_can_be_repeated(self, house: PodHouse) -> None:
        await add_pods(house.config)

    @pytest.mark.parametrize(
        ("setting", "complaint"),
        [
            ("East=postgresql://x/y,redis://z", "is not the name of a pod"),
            ("home=postgresql://x/y,redis://z", "is not the name of a pod"),
            ("east=redis://z", "are incomplete"),
            ("east=postgresql://x/y", "are incomplete"),
            ("a=postgresql://x/y,redis://z a=postgresql://x/q,redis://r", "twice"),
        ],
    )
    def test_a_setting_that_cannot_be_read_is_refused(self, setting: str, complaint: str) -> None:
        with pytest.raises(OperatorError, match=complaint):
            parse_pods(setting)
