"""An organiser's lists over shows of several databases: merged, or marked as incomplete (R36)."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.cli.payments import find_cancelled
from holdfast.organisers.jobs import PriceJobs
from holdfast.pods import PodStore
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.paid_bookings import refund_jobs
from tests.support.pod_house import a_pod_show, buys, drain, holds, shows_in_pods
from tests.support.shows import API, Fan, problem
from tests.support.wait import until


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
def stranded(admin: Fan, api_without_east: httpx2.AsyncClient) -> Fan:
    """The same person at a machine that does not reach the pod `east`."""
    return Fan(admin.account_id, admin.token, api_without_east)


async def email_of(app: App, fan: Fan) -> str:
    return str(await app.postgres.fetchval("SELECT email FROM account WHERE id = $1", fan.account_id))


async def gives_back(admin: Fan, booking: str, amount: int = 100, key: str = "k") -> dict[str, Any]:
    body = {"amount": amount, "reason": "test"}
    given = await admin.post(f"/admin/bookings/{booking}/refunds", body, key=f"{key}-{booking}")
    assert given.status_code in (201, 202), given.text
    found: dict[str, Any] = given.json()
    return found


async def _have_limit(pods: list[App]) -> bool:
    return all([await pod.postgres.fetchval("SELECT count(*) = 1 FROM refund_limit") for pod in pods])


class TestBookings:
    async def test_they_are_found_in_every_pod_page_by_page(
        self, app: App, admin: Fan, stranded: Fan, alice: Fan
    ) -> None:
        shows = await shows_in_pods(app)
        bought = [await buys(alice, show, "A-1") for show in shows.values()]
        newest_first = sorted(bought, key=lambda one: from_public_id(one)[1], reverse=True)
        email = await email_of(app, alice)
        found = (await admin.get("/admin/bookings", q=email)).json()
        assert [one["booking_id"] for one in found["bookings"]] == newest_first
        assert (found["next"], found["complete"], found["missing_pods"]) == (None, True, [])
        first = (await admin.get("/admin/bookings", q=email, size=1)).json()
        second = (await admin.get("/admin/bookings", q=email, size=1, before=first["next"])).json()
        assert [one["booking_id"] for one in (*first["bookings"], *second["bookings"])] == newest_first
        of_show = (await admin.get("/admin/bookings", show=shows["east"])).json()["bookings"]
        assert [one["booking_id"] for one in of_show] == bought[:1]
        part = (await stranded.get("/admin/bookings", q=email)).json()
        assert [one["booking_id"] for one in part["bookings"]] == bought[1:]
        assert (part["complete"], part["missing_pods"]) == (False, ["east"])

    async def test_a_sheet_has_all_of_them_or_is_refused(
        self, app: App, admin: Fan, stranded: Fan, alice: Fan
    ) -> None:
        bought = [await buys(alice, show, "A-1") for show in (await shows_in_pods(app)).values()]
        email = await email_of(app, alice)
        sheet = await admin.get("/admin/bookings.csv", q=email)
        assert [line.split(",")[1].strip('"') for line in sheet.text.splitlines()[1:]] == sorted(
            bought, key=lambda one: from_public_id(one)[1], reverse=True
        )
        refused = await stranded.get("/admin/bookings.csv", q=email)
        assert refused.status_code == 503
        assert "retry-after" in refused.headers


class TestMoney:
    async def test_refunds_of_every_pod_are_one_list(
        self, app: App, admin: Fan, stranded: Fan, alice: Fan
    ) -> None:
        bookings = [await buys(alice, show, "A-1") for show in (await shows_in_pods(app)).values()]
        given = [(await gives_back(admin, booking))["refund"]["refund_id"] for booking in bookings]
        listed = (await admin.get("/admin/refunds", size=2)).json()
        assert [one["refund_id"] for one in listed["refunds"]] == given[::-1]
        first = (await admin.get("/admin/refunds", size=1)).json()
        second = (await admin.get("/admin/refunds", size=1, before=first["next"])).json()
        assert second["refunds"][0]["refund_id"] == given[0]
        settled = await admin.post(f"/admin/refunds/{given[0]}/done-by-hand", {"note": "cash"})
        assert problem(settled)["code"] == "wrong_move", "it was found in its pod, and is not one of these"
        part = (await stranded.get("/admin/refunds", size=1)).json()
        assert (part["refunds"][0]["refund_id"], part["missing_pods"]) == (given[1], ["east"])

    async def test_a_proposal_is_approved_in_its_pod(
        self, app: App, api: httpx2.AsyncClient, admin: Fan, alice: Fan
    ) -> None:
        second = (await cast.fans(app, api, 1, Role.ADMIN))[0]
        shows = await shows_in_pods(app)
        await app.postgres.execute(
            "INSERT INTO refund_limit (organiser_id, currency, amount_minor) VALUES (1, 'EUR', 500)"
        )
        await until(lambda: _have_limit([app.router.for_show(show) for show in shows.values()]))
        bookings = [await buys(alice, show, "A-1") for show in shows.values()]
        made = [(await gives_back(admin, booking, 900))["proposal_id"] for booking in bookings]
        await app.postgres.execute("DELETE FROM refund_limit")
        listed = (await admin.get("/admin/refund-proposals", state="pending")).json()
        assert {one["proposal_id"] for one in listed["proposals"]} == set(made)
        approved = await second.post(f"/admin/refund-proposals/{made[0]}/approve")
        rejected = await second.post(f"/admin/refund-proposals/{made[1]}/reject")
        assert (approved.status_code, rejected.status_code) == (200, 200), approved.text + rejected.text
        unknown = await second.post("/admin/refund-proposals/999999999/approve")
        assert problem(unknown)["code"] == "no_such_proposal"

    async def test_chargebacks_of_every_pod_are_one_list(
        self, app: App, admin: Fan, stranded: Fan, alice: Fan
    ) -> None:
        bookings = [await buys(alice, show, "A-1") for show in (await shows_in_pods(app)).values()]
        for booking in bookings:
            show, number = from_public_id(booking)
            await app.router.for_show(show).postgres.execute(
                "SELECT record_chargeback($1, $2, 1, $3, 'open', 1500, 'fraudulent', false)",
                *(show, number, f"dp_{booking}"),
            )
        listed = (await admin.get("/admin/chargebacks", size=2)).json()
        assert [one["booking_id"] for one in listed["chargebacks"]] == bookings[::-1]
        later = (await admin.get("/admin/chargebacks", size=1, page=2)).json()
        assert [one["booking_id"] for one in later["chargebacks"]] == bookings[:1]
        part = (await stranded.get("/admin/chargebacks", size=1)).json()
        assert (part["chargebacks"][0]["booking_id"], part["missing_pods"]) == (bookings[1], ["east"])

    async def test_figures_of_an_event_add_up_its_pods(
        self, app: App, admin: Fan, stranded: Fan, alice: Fan
    ) -> None:
        shows = await shows_in_pods(app)
        event = await app.postgres.fetchval("SELECT event_id FROM show WHERE id = $1", shows["east"])
        await app.postgres.execute("UPDATE show SET event_id = $1 WHERE id = $2", event, shows["west"])
        west = app.router.for_show(shows["west"]).postgres
        await until(
            lambda: west.fetchval("SELECT event_id = $1 FROM show WHERE id = $2", event, shows["west"])
        )
        await buys(alice, shows["east"], "A-1")
        await buys(alice, shows["west"], "A-1", "A-2")
        await drain(app, *shows.values())
        found = (await admin.get(f"/admin/events/{event}/figures")).json()
        assert (found["figures"]["seats_sold"], found["figures"]["funnel"]["confirmed"]) == (3, 2)
        assert [(one["seats"], one["amount_minor"]) for one in found["figures"]["revenue"]] == [(3, 4500)]
        assert {one["show_id"]: one["seats_sold"] for one in found["shows"]} == {
            shows["east"]: 1,
            shows["west"]: 2,
        }
        sheet = (await admin.get(f"/admin/events/{event}/figures.csv")).text.splitlines()
        assert len(sheet) == 4
        part = (await stranded.get(f"/admin/events/{event}/figures")).json()
        assert (part["figures"]["seats_sold"], part["missing_pods"]) == (2, ["east"])
        assert (await stranded.get(f"/admin/events/{event}/figures.csv")).status_code == 503

    async def test_a_cancelled_show_refunds_in_its_pod(self, app: App, admin: Fan, alice: Fan) -> None:
        show = await a_pod_show(app)
        await buys(alice, show, "A-1", "A-2")
        path = f"/admin/shows/{show}"
        body, headers = {"cancelled": True}, admin.headers
        cancelled = await admin.api.patch(API + path, json=body, headers=headers)
        assert cancelled.status_code == 200, cancelled.text
        pod = await find_cancelled(app, show)
        assert pod is app.router.for_show(show)
        jobs = refund_jobs(pod)
        await until(lambda: _refunds(pod, show))
        await jobs.carry_out()
        await jobs.wait_until_idle()
        state = (await admin.get(f"{path}/cancellation")).json()
        assert (state["bookings"], state["refunded"]) == (1, 1)

    async def test_a_pod_does_not_take_payments_of_another_for_differences(
        self, app: App, alice: Fan
    ) -> None:
        keys = set()
        for show in (await shows_in_pods(app)).values():
            place = from_public_id(await buys(alice, show, "A-1"))
            payment = await app.router.for_show(show).payments.payment(*place, 1)
            assert payment is not None
            keys.add(payment.key)
        since = datetime.now(UTC) - timedelta(hours=1)
        for each in app.router.by_name.values():
            found = (await each.reconciliation.compare(since)).differences
            assert [one for one in found if one.key in keys] == []


async def _refunds(pod: App, show: int) -> bool:
    await pod.refunds.cancel_batch(show)
    return bool(await pod.postgres.fetchval("SELECT count(*) FROM refund WHERE show_id = $1", show))


class TestPrices:
    async def test_they_follow_the_demand_in_the_pod(self, app: App, admin: Fan, alice: Fan) -> None:
        show = await a_pod_show(app, seats=10)
        rule = {"category": "Standard", "base_minor": 1500, "floor_minor": 1000, "ceiling_minor": 3000}
        steps = [{"sold_percent": 20, "change_minor": 700}]
        body = {"currency": "EUR", "rules": [{**rule, "demand": steps}]}
        put = await admin.api.put(f"{API}/admin/shows/{show}/price-rules", json=body, headers=admin.headers)
        assert put.status_code == 200, put.text
        await buys(alice, show, "A-1", "A-2", "A-3")
        await app.postgres.execute("UPDATE price_plan SET due_at = now() WHERE show_id = $1", show)
        assert await PriceJobs(app.postgres, app.catalogue, 3600, app.count_seats).step() == 1

        async def costs_more() -> bool:
            page = (await alice.get(f"/shows/{show}")).json()
            return [one["price_minor"] for one in page["prices"]] == [2200]

        await until(costs_more)
        sold = "SELECT sold, seats FROM price_change WHERE show_id = $1 AND why = 'step'"
        row = await app.postgres.fetchrow(sold, show)
        assert row is not None
        assert tuple(row) == (3, 10)

    async def test_prices_of_a_pod_that_is_away_stay(self, app: App, app_without_east: App) -> None:
        shows = await shows_in_pods(app, seats=10)
        rules = (
            '{"currency": "EUR", "rules": [{"category": "Standard", "base_minor": 1600,'
            ' "floor_minor": 1000, "ceiling_minor": 3000}]}'
        )
        for show in shows.values():
            await app.postgres.execute(
                "INSERT INTO price_plan (show_id, rules, due_at) VALUES ($1, $2::text::jsonb, now())",
                *(show, rules),
            )
        await app_without_east.router.directory.follow()
        jobs = PriceJobs(app.postgres, app.catalogue, 3600, app_without_east.count_seats)
        assert await jobs.step() == 1, "the other pod goes on"
        prices = "SELECT price_minor FROM price WHERE show_id = $1"
        found = [await app.postgres.fetchval(prices, show) for show in shows.values()]
        assert found == [1500, 1600]


class TestDeletion:
    """A show is sold or deleted, never both, though the two are decided in different databases."""

    async def test_a_show_without_sales_is_deleted(self, app: App, admin: Fan, alice: Fan) -> None:
        show = await a_pod_show(app)
        gone = await admin.delete(f"/admin/shows/{show}")
        assert gone.status_code == 204, gone.text
        assert (await alice.holds(show, "A-1")).status_code in (403, 404, 503)
        pod = app.router.for_show(show)
        assert await pod.postgres.fetchval("SELECT count(*) FROM booking WHERE show_id = $1", show) == 0
        assert show not in await PodStore(pod.postgres).fenced_shows()

    async def test_a_show_with_a_hold_stays_and_sells(self, app: App, admin: Fan, alice: Fan) -> None:
        show = await a_pod_show(app)
        await holds(alice, show, "A-1")
        refused = await admin.delete(f"/admin/shows/{show}")
        assert problem(refused)["code"] == "something_sold"
        await holds(alice, show, "A-2")

    async def test_a_show_that_moves_is_not_deleted_and_not_opened(self, app: App, admin: Fan) -> None:
        show = await a_pod_show(app)
        pod = app.router.for_show(show).postgres
        await pod.execute("SELECT fence_show($1, 1)", show)
        refused = await admin.delete(f"/admin/shows/{show}")
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        assert await PodStore(pod).fenced_shows() == [show]
        await pod.execute("UPDATE show_copy SET epoch = 1 WHERE show_id = $1", show)


class TestWebhooks:
    async def test_facts_with_equal_numbers_have_different_ids(
        self, app: App, admin: Fan, alice: Fan
    ) -> None:
        """A receiver skips an id that it has seen. Every database counts its own facts."""
        shows = await shows_in_pods(app)
        await app.postgres.execute(
            "UPDATE event SET organiser_id = $1 WHERE id IN (SELECT event_id FROM show WHERE id = ANY ($2))",
            *(admin.account_id, list(shows.values())),
        )
        body = {"url": "https://hooks.example.org/x", "kinds": ["booking.confirmed"]}
        made = await admin.post("/admin/webhook-endpoints", body)
        assert made.status_code == 201, made.text
        endpoint = made.json()["endpoint"]["endpoint_id"]
        ids = []
        for name, show in shows.items():
            pod = app.router.for_show(show)
            await until(partial(_knows, pod, endpoint, admin.account_id))
            await buys(alice, show, "A-1")
            await drain(app, show)
            (due,) = await pod.webhooks_out.take_due(10, 10, is_failing=False)
            assert (due.message_id, due.pod) == (f"{name}-{due.fact_id}", name)
            assert json.loads(due.payload)["data"]["pod"] == name
            listed = (await admin.get(f"/admin/webhook-endpoints/{endpoint}/deliveries", pod=name)).json()
            assert [(one["fact_id"], one["pod"]) for one in listed["deliveries"]] == [(due.fact_id, name)]
            ids.append(due.fact_id)
        path = f"/admin/webhook-endpoints/{endpoint}"
        again = await admin.post(f"{path}/deliveries/{ids[0]}/replay?pod=east")
        assert again.status_code == 200, again.text
        all_again = await admin.post(f"{path}/replay", {"since": "2020-01-01T00:00:00Z"})
        assert all_again.json()["deliveries"] == 2
        unknown = await admin.get(f"{path}/deliveries", pod="north")
        assert problem(unknown)["code"] == "no_such_delivery"


async def _knows(pod: App, endpoint: int, organiser_id: int) -> bool:
    """The endpoint, and whose show it is."""
    known = (
        "SELECT (SELECT count(*) FROM webhook_endpoint WHERE id = $1) = 1"
        " AND EXISTS (SELECT FROM event WHERE organiser_id = $2)"
    )
    return bool(await pod.postgres.fetchval(known, endpoint, organiser_id))
