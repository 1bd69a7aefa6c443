"""Organisers connect systems of their own: webhooks and figures, each of their own events alone (R33)."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest

from holdfast.app import App
from holdfast.outbox import Consumer
from holdfast.outbox.relay import ConsumerWorker
from holdfast.reports.store import consumer as figure_consumer
from holdfast.web.caller import Role
from holdfast.webhooks_out.endpoint import ENDPOINTS_MAX
from holdfast.webhooks_out.jobs import consumer as hook_consumer
from holdfast.webhooks_out.store import GROUP
from tests.support.organiser import Organiser, a_stage, show_of, sign_in_organiser
from tests.support.shows import Fan, problem

HOOKS = "/webhook-endpoints"
URL = "https://hall.example.org/hooks"


@pytest.fixture
async def rival(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api)


def decode_ok(response: httpx2.Response) -> dict[str, Any]:
    return msgspec.json.decode(response.content, type=dict[str, Any])


async def consume_all(app: App, consumer: Consumer) -> None:
    await app.postgres.execute("UPDATE consumer_group SET lease_until = '-infinity'")
    await app.outbox.settle(1_000_000)
    consumer_worker = ConsumerWorker(app.outbox, consumer, app.config, wait_s=0.01)
    async with asyncio.timeout(60):
        while await consumer_worker.consume():
            pass


async def test_an_endpoint_is_created_once_per_idempotency_key(organiser: Organiser) -> None:
    """A retry after a lost answer must not leave a second endpoint that gets every delivery twice."""
    body, key = {"url": URL, "kinds": []}, {"Idempotency-Key": "one-endpoint"}

    first = await organiser.send("POST", HOOKS, body, headers=key)
    again = await organiser.send("POST", HOOKS, body, headers=key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(decode_ok(await organiser.send("GET", HOOKS))["endpoints"]) == 1


async def test_endpoints_are_listed_in_pages(organiser: Organiser) -> None:
    made = [
        (await organiser.create(HOOKS, {"url": f"{URL}/{n}", "kinds": []}))["endpoint"]["endpoint_id"]
        for n in range(3)
    ]

    first = decode_ok(await organiser.send("GET", f"{HOOKS}?size=2"))
    rest = decode_ok(await organiser.send("GET", f"{HOOKS}?size=2&before={first['next']}"))

    assert [page["endpoint_id"] for page in first["endpoints"]] == [made[2], made[1]]
    assert ([page["endpoint_id"] for page in rest["endpoints"]], rest["next"]) == ([made[0]], None)


async def test_a_secret_is_shown_once_and_an_endpoint_can_be_changed_and_removed(
    organiser: Organiser,
) -> None:
    made = await organiser.create(HOOKS, {"url": URL, "kinds": ["booking.confirmed"]})
    place = f"{HOOKS}/{made['endpoint']['endpoint_id']}"

    assert made["secret"].startswith("whsec_")
    assert "whsec_" not in (await organiser.send("GET", place)).text
    assert "whsec_" not in (await organiser.send("GET", HOOKS)).text
    changed = decode_ok(await organiser.send("PATCH", place, {"active": False}))
    assert (changed["active"], changed["url"], changed["kinds"]) == (False, URL, ["booking.confirmed"])
    again = await organiser.send("POST", f"{place}/secret")
    assert again.status_code == 201
    assert decode_ok(again)["secret"] != made["secret"]
    assert decode_ok(again)["endpoint"]["old_secret_until"] is not None
    assert (await organiser.send("DELETE", place)).status_code == 204
    assert (await organiser.send("GET", place)).status_code == 404


async def test_another_organiser_finds_no_endpoint_and_an_admin_finds_all(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, rival: Organiser
) -> None:
    made = await organiser.create(HOOKS, {"url": URL})
    place = f"{HOOKS}/{made['endpoint']['endpoint_id']}"
    since = {"since": datetime.now(UTC).isoformat()}
    requests: list[tuple[str, str, Any]] = [
        ("GET", place, None),
        ("PATCH", place, {"active": False}),
        ("DELETE", place, None),
        ("POST", f"{place}/secret", None),
        ("GET", f"{place}/deliveries", None),
        ("POST", f"{place}/deliveries/1/replay", None),
        ("POST", f"{place}/replay", since),
    ]

    for method, path, body in requests:
        assert problem(await rival.send(method, path, body))["code"] == "no_such_endpoint", path
    assert decode_ok(await rival.send("GET", HOOKS))["endpoints"] == []
    admin = await sign_in_organiser(app, api, Role.ADMIN)
    assert (await admin.send("GET", place)).status_code == 200


@pytest.mark.parametrize(
    "url",
    ["http://hall.example.org/", "https://127.0.0.1/", "https://2130706433/", "https://a@hall.example/"],
)
async def test_an_address_that_is_not_public_is_refused(organiser: Organiser, url: str) -> None:
    refused = await organiser.send("POST", HOOKS, {"url": url})
    assert (refused.status_code, problem(refused)["code"]) == (422, "bad_endpoint_url")

    made = await organiser.create(HOOKS, {"url": URL})
    changed = await organiser.send("PATCH", f"{HOOKS}/{made['endpoint']['endpoint_id']}", {"url": url})
    assert problem(changed)["code"] == "bad_endpoint_url"


async def test_an_endpoint_cannot_subscribe_to_an_internal_kind(organiser: Organiser) -> None:
    for kind in ("city.changed", "no.such"):
        refused = await organiser.send("POST", HOOKS, {"url": URL, "kinds": [kind]})
        assert (refused.status_code, problem(refused)["field"]) == (422, "kinds")


async def test_there_is_a_limit_and_two_at_once_do_not_get_past_it(organiser: Organiser) -> None:
    for _ in range(ENDPOINTS_MAX - 1):
        await organiser.create(HOOKS, {"url": URL})

    both = await asyncio.gather(*(organiser.send("POST", HOOKS, {"url": URL}) for _ in range(2)))

    assert sorted(one.status_code for one in both) == [201, 409]


async def test_fans_have_neither_webhooks_nor_figures(alice: Fan) -> None:
    for path in ("/admin/webhook-endpoints", "/admin/shows/1/figures", "/admin/events/1/figures.csv"):
        assert (await alice.get(path)).status_code == 403


async def test_deliveries_and_figures_are_visible_to_the_shows_organiser_only(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, rival: Organiser, alice: Fan
) -> None:
    for each in app.router.by_name.values():
        await each.outbox.settle(1_000_000)
        await each.outbox.add_group(GROUP, from_oldest=False)
    stage = await a_stage(app, api, organiser)
    show = (await organiser.create("/shows", show_of(stage, prices={"Gold": 0, "Silver": 0})))["id"]
    mine, theirs = [(await one.create(HOOKS, {"url": URL}))["endpoint"] for one in (organiser, rival)]
    assert (await alice.holds(show, "A-1", "Y-2")).status_code == 201
    await consume_all(app, hook_consumer(app.webhooks_out))
    await consume_all(app, figure_consumer(app.reports))

    log = decode_ok(
        await organiser.send("GET", f"{HOOKS}/{mine['endpoint_id']}/deliveries", params={"state": "queued"})
    )
    assert "booking.confirmed" in [one["kind"] for one in log["deliveries"]]
    webhook_id = log["deliveries"][0]["webhook_id"]
    again = await organiser.send("POST", f"{HOOKS}/{mine['endpoint_id']}/deliveries/{webhook_id}/replay")
    assert decode_ok(again)["state"] == "queued"
    nothing = decode_ok(await rival.send("GET", f"{HOOKS}/{theirs['endpoint_id']}/deliveries"))
    assert nothing == {"deliveries": [], "next": None, "complete": True, "missing_pods": []}

    of_show = decode_ok(await organiser.send("GET", f"/shows/{show}/figures"))
    assert of_show["figures"]["seats_sold"] == 2
    assert [one["category"] for one in of_show["figures"]["revenue"]] == ["Gold", "Silver"]
    of_event = decode_ok(await organiser.send("GET", f"/events/{stage.event_id}/figures"))
    assert [(one["show_id"], one["seats_sold"]) for one in of_event["shows"]] == [(show, 2)]
    for place in (f"/shows/{show}/figures", f"/events/{stage.event_id}/figures"):
        sheet = await organiser.send("GET", place + ".csv")
        assert sheet.headers["content-type"].startswith("text/csv")
        assert len(sheet.text.splitlines()) == 3
        for path in (place, place + ".csv"):
            assert (await rival.send("GET", path)).status_code == 404
