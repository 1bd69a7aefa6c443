"""What organisers list and repeat, whichever database has it: the audit log, webhooks (R36)."""

import csv
import io
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx2
import pytest

from holdfast.app import App, asgi_app
from holdfast.web.caller import Role
from holdfast.webhooks_out.delivery import DeliveryResult
from tests.conftest import started
from tests.support import shows as cast
from tests.support.browser_session import Visitor, a_visitor
from tests.support.cli_process import run_holdfast
from tests.support.desk import sit_down
from tests.support.pod_house import PODS, PodHouse, buys, drain, environment, shows_in_pods
from tests.support.shows import API, Fan, problem
from tests.support.wait import until

ORGANISER = 1  # of the shows of tests


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def organiser(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ORGANISER))[0]


@pytest.fixture
async def browser(pod_house: PodHouse) -> AsyncIterator[Visitor]:
    application = asgi_app(pod_house.config)
    async with started(application), a_visitor(application) as visitor:
        yield visitor


def stranded(fan: Fan, api_without_east: httpx2.AsyncClient) -> Fan:
    """The same person at a machine that does not reach the pod `east`."""
    return Fan(fan.account_id, fan.token, api_without_east)


class TestAuditLog:
    """Each database has a chain of the changes that were made in it; `holdfast audit` checks each of them."""

    async def refund_in_every_pod(self, app: App, admin: Fan, alice: Fan) -> None:
        for show in (await shows_in_pods(app)).values():
            booking = await buys(alice, show, "A-1")
            body = {"amount": 100, "reason": "test"}
            given = await admin.post(f"/admin/bookings/{booking}/refunds", body, key=booking)
            assert given.status_code in (201, 202), given.text

    async def test_changes_in_every_pod_are_one_list_page_by_page(
        self, app: App, admin: Fan, alice: Fan, api_without_east: httpx2.AsyncClient
    ) -> None:
        await self.refund_in_every_pod(app, admin, alice)
        wanted = {"organisation": ORGANISER, "actor": admin.account_id}

        page = (await admin.get("/admin/audit-log", **wanted)).json()
        first = (await admin.get("/admin/audit-log", **wanted, size=1)).json()
        second = (await admin.get("/admin/audit-log", **wanted, size=1, before=first["next"])).json()
        part = (await stranded(admin, api_without_east).get("/admin/audit-log", **wanted)).json()

        assert [(one["pod"], one["action"]) for one in page["entries"]] == [
            ("west", "refund.given"),
            ("east", "refund.given"),
        ]
        assert page["entries"][0]["actor"]["account_id"] == admin.account_id
        assert [*first["entries"], *second["entries"]] == page["entries"]
        assert (page["next"], second["next"], page["complete"]) == (None, None, True)
        for name in PODS:
            head = await app.router.by_name[name].audit_log.head(ORGANISER)
            assert head is not None
            assert page["pod_heads"][name] == {"number": head.number, "hash": head.hash}
        assert [one["pod"] for one in part["entries"]] == ["west"]
        assert (part["complete"], part["missing_pods"]) == (False, ["east"])

    async def test_a_sheet_has_all_of_them_or_is_refused(
        self, app: App, admin: Fan, alice: Fan, api_without_east: httpx2.AsyncClient
    ) -> None:
        await self.refund_in_every_pod(app, admin, alice)
        wanted = {"organisation": ORGANISER, "actor": admin.account_id}

        sheet = await admin.get("/admin/audit-log.csv", **wanted)
        refused = await stranded(admin, api_without_east).get("/admin/audit-log.csv", **wanted)

        rows = list(csv.DictReader(io.StringIO(sheet.text)))
        assert [(row["pod"], row["action"]) for row in rows] == [
            ("", "audit_log.exported"),
            ("west", "refund.given"),
            ("east", "refund.given"),
        ]
        assert refused.status_code == 503
        assert "retry-after" in refused.headers

    async def test_the_desk_shows_them(
        self, app: App, organiser: Fan, alice: Fan, browser: Visitor, admin: Fan
    ) -> None:
        shows = await shows_in_pods(app)
        await give(app, organiser, *shows.values())
        for show in shows.values():
            booking = await buys(alice, show, "A-1")
            await admin.post(f"/admin/bookings/{booking}/refunds", {"amount": 1, "reason": "x"}, key=booking)
        await sit_down(app, browser, organiser.account_id)

        await browser.goes(f"/desk/{organiser.account_id}/audit-log?action=refund.given")

        assert browser.status == 200
        assert "#east-1<" in browser.text
        assert "#west-1<" in browser.text

    async def test_each_chain_is_audited(self, app: App, pod_house: PodHouse, admin: Fan, alice: Fan) -> None:
        await self.refund_in_every_pod(app, admin, alice)
        spoil = "UPDATE audit_entry SET subject_name = $1 WHERE chain = 1 AND number = 1"
        east = app.router.by_name["east"].postgres
        name = await east.fetchval("SELECT subject_name FROM audit_entry WHERE chain = 1 AND number = 1")
        trigger = "ALTER TABLE audit_entry {} TRIGGER audit_entries_stay"

        for value, found in (("another name", 1), (name, 0)):
            await east.execute(trigger.format("DISABLE"))
            await east.execute(spoil, value)
            await east.execute(trigger.format("ENABLE"))
            page = (await run_holdfast("audit", "--json", **environment(pod_house.config))).page
            assert page["pods"]["east"]["audit_log_is_whole"] == found, page
            assert page["pods"]["west"]["audit_log_is_whole"] == 0


async def give(app: App, organiser: Fan, *shows: int) -> None:
    """The shows are this organiser's, in every database."""
    await app.postgres.execute(
        "UPDATE event SET organiser_id = $1 WHERE id IN (SELECT event_id FROM show WHERE id = ANY ($2))",
        *(organiser.account_id, list(shows)),
    )
    count = (
        "SELECT count(*) FROM show JOIN event ON event.id = show.event_id"
        " WHERE organiser_id = $1 AND show.id = ANY ($2)"
    )
    for each in app.router.by_name.values():
        await until(partial(_counts, each, len(shows), count, organiser.account_id, list(shows)))


async def _counts(each: App, wanted: int, query: str, *values: Any) -> bool:
    return bool(await each.postgres.fetchval(query, *values) == wanted)


async def an_endpoint(app: App, organiser: Fan) -> int:
    """In every database."""
    body = {"url": "https://hooks.example.org/x", "kinds": ["booking.confirmed"]}
    made = await organiser.post("/admin/webhook-endpoints", body)
    assert made.status_code == 201, made.text
    endpoint: int = made.json()["endpoint"]["endpoint_id"]
    count = "SELECT count(*) FROM webhook_endpoint WHERE id = $1"
    for each in app.router.by_name.values():
        await until(partial(_counts, each, 1, count, endpoint))
    return endpoint


@pytest.fixture
async def no_deliveries(app: App) -> AsyncIterator[None]:
    """A test leaves none that another one would be given."""
    yield
    for each in app.router.by_name.values():
        await each.postgres.execute("DELETE FROM webhook_delivery")


@pytest.mark.usefixtures("no_deliveries")
class TestWebhooks:
    """An organiser sees one list of deliveries and repeats each by its id, without knowing about pods."""

    async def sell(self, app: App, organiser: Fan, fan: Fan) -> int:
        """An endpoint with a delivery in each pod, the newest in the west."""
        shows = await shows_in_pods(app)
        await give(app, organiser, *shows.values())
        endpoint = await an_endpoint(app, organiser)
        for show in shows.values():
            await buys(fan, show, "A-1")
            await drain(app, show)
        return endpoint

    async def test_deliveries_of_every_pod_are_one_list_and_are_repeated_by_their_ids(
        self, app: App, organiser: Fan, alice: Fan, api_without_east: httpx2.AsyncClient
    ) -> None:
        path = f"/admin/webhook-endpoints/{await self.sell(app, organiser, alice)}"

        listed = (await organiser.get(f"{path}/deliveries")).json()
        first = (await organiser.get(f"{path}/deliveries", size=1)).json()
        second = (await organiser.get(f"{path}/deliveries", size=1, before=first["next"])).json()
        east = (await organiser.get(f"{path}/deliveries", pod="east")).json()
        part = (await stranded(organiser, api_without_east).get(f"{path}/deliveries")).json()

        assert [one["pod"] for one in listed["deliveries"]] == ["west", "east"]
        assert [*first["deliveries"], *second["deliveries"]] == listed["deliveries"]
        assert (listed["next"], second["next"], listed["missing_pods"]) == (None, None, [])
        assert east["deliveries"] == listed["deliveries"][1:]
        assert part["deliveries"] == listed["deliveries"][:1]
        assert (part["complete"], part["missing_pods"]) == (False, ["east"])
        for each in app.router.by_name.values():
            await each.postgres.execute("UPDATE webhook_delivery SET state = 'done', due_at = NULL")
        for one in listed["deliveries"]:
            again = await organiser.post(f"{path}/deliveries/{one['webhook_id']}/replay")
            assert (again.status_code, again.json()["webhook_id"]) == (200, one["webhook_id"]), again.text
            assert again.json()["state"] == "queued"
        for unknown in ("north-1", "east-0", "east", f"east-{2**63}"):
            refused = await organiser.post(f"{path}/deliveries/{unknown}/replay")
            assert problem(refused)["code"] == "no_such_delivery", unknown

    async def test_an_endpoint_that_a_pod_has_switched_off_is_shown_so(
        self, app: App, organiser: Fan, alice: Fan, api_without_east: httpx2.AsyncClient
    ) -> None:
        endpoint = await self.sell(app, organiser, alice)
        path = f"/admin/webhook-endpoints/{endpoint}"
        east = app.router.by_name["east"].webhooks_out
        due = [one for one in await east.take_due(50, 50, is_failing=False) if one.endpoint_id == endpoint]
        await east.end(due[0], DeliveryResult(status=410, took_ms=1, reason="HTTP 410"))

        page = (await organiser.get(path)).json()
        listed = (await organiser.get("/admin/webhook-endpoints")).json()["endpoints"]
        part = (await stranded(organiser, api_without_east).get(path)).json()
        again = await organiser.post(f"{path}/replay", {"since": "2020-01-01T00:00:00Z"})
        refused = await organiser.post(f"{path}/deliveries/east-{due[0].fact_id}/replay")

        assert (page["active"], page["off_in"]) == (True, {"east": "gone: HTTP 410"})
        assert listed == [page]
        assert (part["off_in"], part["missing_pods"]) == ({}, ["east"])
        assert (again.json()["deliveries"], again.json()["off_in"]) == (1, ["east"])
        assert problem(refused)["code"] == "endpoint_off"

        changed = await organiser.api.patch(API + path, json={"active": True}, headers=organiser.headers)
        assert changed.status_code == 200, changed.text
        await until(lambda: self.is_on_everywhere(organiser, path))

    async def is_on_everywhere(self, organiser: Fan, path: str) -> bool:
        return bool((await organiser.get(path)).json()["off_in"] == {})

    async def test_deliveries_of_a_deleted_endpoint_are_deleted_in_every_pod(
        self, app: App, organiser: Fan, alice: Fan
    ) -> None:
        """Replication deletes the endpoint alone: what is left would count as queued, and spoil a backup."""
        endpoint = await self.sell(app, organiser, alice)
        deliveries = "SELECT count(*) FROM webhook_delivery WHERE endpoint_id = $1"
        endpoints = "SELECT count(*) FROM webhook_endpoint WHERE id = $1"

        assert (await organiser.delete(f"/admin/webhook-endpoints/{endpoint}")).status_code == 204

        for name in PODS:
            pod = app.router.by_name[name]
            await until(partial(_counts, pod, 0, endpoints, endpoint))
            assert await pod.webhooks_out.forget(1000) >= 1
            assert await pod.postgres.fetchval(deliveries, endpoint) == 0

    async def test_the_desk_lists_resends_and_switches_on(
        self, app: App, organiser: Fan, alice: Fan, browser: Visitor
    ) -> None:
        endpoint = await self.sell(app, organiser, alice)
        east = app.router.by_name["east"].webhooks_out
        due = [one for one in await east.take_due(50, 50, is_failing=False) if one.endpoint_id == endpoint]
        await sit_down(app, browser, organiser.account_id)
        path = f"/desk/{organiser.account_id}/webhooks/{endpoint}"

        await browser.goes(path)
        await browser.sends(f"/deliveries/east-{due[0].fact_id}/resend")
        assert browser.status == 200
        of_east = await organiser.get(f"/admin/webhook-endpoints/{endpoint}/deliveries", pod="east")
        (queued,) = of_east.json()["deliveries"]
        assert queued["state"] == "queued"

        due = [one for one in await east.take_due(50, 50, is_failing=False) if one.endpoint_id == endpoint]
        await east.end(due[0], DeliveryResult(status=410, took_ms=1, reason="HTTP 410"))
        await browser.goes(path)
        assert browser.says("Switched off in east: sales there are not delivered. gone: HTTP 410")
        await browser.sends("/switch")
        await until(lambda: self.is_on_everywhere(organiser, f"/admin/webhook-endpoints/{endpoint}"))
