"""A show that a dead mover has left closed, a deleted one, a restored one: other shows go on, nothing is sold
twice, and no command makes it worse (R36)."""

import httpx2
import pytest

from holdfast.app import App
from holdfast.background import build_retention
from holdfast.cli.audit import run_audit
from holdfast.engines.errors import OperatorError
from holdfast.organisers.jobs import BlockJobs
from holdfast.waitingroom.jobs import RoomJobs
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.dead_mover import fenced, set_directory, two_shows_of_one_pod
from tests.support.gates import PUBLIC, a_pass, made
from tests.support.own_engines import hold
from tests.support.paid_bookings import payment_request
from tests.support.pod_house import PODS, PodHouse, a_sold_show, count_rows, fetch, move, other_than, sql
from tests.support.show_fixture import an_owner
from tests.support.shows import API, Fan
from tests.support.waiting_room import a_room

LAPSE = "UPDATE booking SET expires_at = now() - interval '{}' WHERE show_id = ANY ($1) AND state = '{}'"


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


class TestJobs:
    """The guard refuses a statement with a row of a closed show: those of other shows must not wait."""

    async def test_holds_of_other_shows_expire(self, app: App) -> None:
        closed, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(other)
        held = {show: (await hold(pod, show, an_owner(), 1)).number for show in (closed, other)}
        await pod.postgres.execute(LAPSE.format("1 hour", "held"), [closed, other])

        async with fenced(app, closed):
            swept = await pod.bookings.sweep(1000)
            again = await pod.bookings.sweep(1000)
        later = await pod.bookings.sweep(1000)

        assert (other, held[other]) in swept
        assert again == []
        assert (closed, held[closed]) in later

    async def test_payments_and_webhooks_of_other_shows_are_carried_on(self, app: App) -> None:
        """Otherwise buyers would be charged, and none of the pod's bookings be confirmed by the job."""
        closed, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(other)
        for show in (closed, other):
            booking = await hold(pod, show, an_owner(), 1)
            await pod.saga_runner.pay(payment_request(booking, "tok_stuck"))
        due = (
            "UPDATE payment SET due_at = now() - interval '1 s' WHERE show_id = ANY ($1) AND ended_at IS NULL"
        )
        await pod.postgres.execute(due, [closed, other])

        async with fenced(app, closed):
            taken = await pod.payments.take_due(64)
            await pod.webhooks_in.take_due(64)
            await pod.refund_store.take_due(64)

        assert other in {one.show_id for one in taken}
        assert closed not in {one.show_id for one in taken}

    async def test_waiting_rooms_of_other_shows_are_opened(self, app: App) -> None:
        closed, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(other)
        for show in (closed, other):
            await a_room(pod, show, draw_at=None)
        assert closed < other, "rooms have their turns in the order of their shows"

        async with fenced(app, closed):
            await RoomJobs(pod.postgres, pod.bookings).step()
            await BlockJobs(pod.blocks).release()

        states = await pod.postgres.fetch(
            "SELECT show_id, state::text FROM queue WHERE show_id = ANY ($1)", [closed, other]
        )
        assert {row["show_id"]: row["state"] for row in states} == {closed: "open", other: "admitting"}

    async def test_old_rows_of_other_shows_are_deleted(self, app: App) -> None:
        """A rule that met a closed show was always the next one, and none of the others had its turn."""
        closed, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(other)
        for show in (closed, other):
            await hold(pod, show, an_owner(), 1)
        await pod.postgres.execute(LAPSE.format("1 hour", "held"), [closed, other])
        await pod.bookings.sweep(1000)
        await pod.postgres.execute(LAPSE.format("900 days", "expired"), [closed, other])
        await pod.postgres.execute("DELETE FROM outbox WHERE show_id = ANY ($1)", [closed, other])
        retention = build_retention(pod)
        await retention.delete_batch()
        await pod.postgres.execute("UPDATE retention_pass SET due_at = now() - interval '1 s', reached = 0")

        async with fenced(app, closed):
            while await retention.delete_batch():
                continue

        left = "SELECT coalesce(array_agg(show_id), '{}') FROM booking WHERE show_id = ANY ($1)"
        assert await pod.postgres.fetchval(left, [closed, other]) == [closed]
        await pod.postgres.execute("UPDATE retention_pass SET due_at = now() - interval '1 s', reached = 0")
        while await retention.delete_batch():
            continue
        assert await pod.postgres.fetchval(left, [closed, other]) == []


class TestDeletedShow:
    async def test_it_stays_closed_and_nothing_complains(self, app: App, admin: Fan) -> None:
        """The fence stays for good: no operator can do anything about it."""
        show, other = await two_shows_of_one_pod(app)
        pod = app.router.for_show(show)
        for each in (show, other):
            await hold(pod, each, an_owner(), 1)
        await pod.postgres.execute(LAPSE.format("1 hour", "held"), [show, other])
        gone = await admin.delete(f"/admin/shows/{show}")
        assert gone.status_code == 204, gone.text

        swept = await pod.bookings.sweep(1000)
        report = await run_audit(app, with_map=False, with_gateway=False, ends=None)

        assert other in {show_id for show_id, _ in swept}
        assert [one for _, some in report.reports for one in some.violations if one.show_id == show] == []

    async def test_the_door_fetches_its_pack_without_it(self, app: App, admin: Fan) -> None:
        show, other = await two_shows_of_one_pod(app)
        made_pass = await made(admin, a_pass(show, shows=[show, other]))
        login = {"code": made_pass["code"], "device_key": PUBLIC}
        signed_in = (await admin.api.post(f"{API}/gate/login", json=login)).json()
        device = Fan(0, signed_in["access_token"], admin.api)
        assert (await admin.delete(f"/admin/shows/{show}")).status_code == 204

        pack, counts = await device.get("/gate/pack"), await device.get("/gate/counts")

        assert pack.status_code == 200, pack.text
        assert [one["show_id"] for one in counts.json()["shows"]] == [other]


class TestRestored:
    """A database that is of another moment than the directory has other rows, or none: they are not sold, and
    a move must not make them the show's only ones."""

    async def test_a_show_that_came_after_the_backup_of_its_pod_is_not_opened_empty(
        self, app: App, house: PodHouse
    ) -> None:
        show, source = await a_sold_show(app)
        target = other_than(source)
        await move(app, show, target)
        await sql(house, target, "UPDATE show_copy SET epoch = 1 WHERE show_id = $1", show=show)

        for to in ("", source, target):
            with pytest.raises(OperatorError, match="does not have the rows"):
                await move(app, show, to)

        assert await sellers(house, show) == []
        await sql(house, target, "UPDATE show_copy SET epoch = 2 WHERE show_id = $1", show=show)

    async def test_a_home_that_forgot_a_move_does_not_cost_the_bookings(
        self, app: App, house: PodHouse
    ) -> None:
        show, source = await a_sold_show(app)
        target = other_than(source)
        await move(app, show, target)
        await set_directory(house, show, source, 1, *PODS)

        for to in ("", source, target):
            with pytest.raises(OperatorError, match="does not have the rows"):
                await move(app, show, to)

        assert await sellers(house, show) == []
        assert await count_rows(house, target, "booking", show) == 2
        await set_directory(house, show, target, 2, *PODS)
        assert await sellers(house, show) == [target]


async def sellers(house: PodHouse, show_id: int) -> list[str]:
    """The databases that would sell it."""
    here = f"SELECT show_is_here({show_id}) AS is_here"
    return [name for name in ("", *PODS) if (await fetch(house, name, here))[0]["is_here"]]


@pytest.fixture(scope="module")
def house(pod_house: PodHouse) -> PodHouse:
    return pod_house
