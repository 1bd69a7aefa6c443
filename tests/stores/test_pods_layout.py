"""The layout of a show that is sold in a pod is changed while it sells (R33, R36)."""

import asyncio
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.audit import HouseReport
from holdfast.catalogue.store import store_layout
from holdfast.cli.audit import run_audit
from holdfast.cli.pods import databases
from holdfast.pods import PodStore
from holdfast.pods.move import ShowMover
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.pod_house import PodHouse, a_pod_show, buys, holds, sql
from tests.support.shows import API, Fan, a_layout, problem

REVISION = "SELECT revision FROM sale WHERE show_id = $1"


@pytest.fixture(scope="module")
def app(pod_app: App) -> App:
    return pod_app


@pytest.fixture(scope="module")
def api(pod_api: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return pod_api


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


async def a_larger_hall(app: App) -> str:
    """Rows A and B as before, and a row C."""
    layout = a_layout(30)
    await store_layout(app.postgres, layout)
    return layout.hash


async def changes(admin: Fan, show: int, **change: Any) -> httpx2.Response:
    path = f"{API}/admin/shows/{show}/layout"
    return await admin.api.put(path, json=change, headers=admin.headers)


async def violations(app: App) -> HouseReport:
    return await run_audit(app, with_map=False, with_gateway=False, ends=None)


async def test_a_show_that_sells_gets_more_seats_and_loses_some(app: App, admin: Fan, alice: Fan) -> None:
    show = await a_pod_show(app, seats=20)
    pod = app.router.for_show(show)
    booking = await buys(alice, show, "A-1")
    layout, withdrawn = await a_larger_hall(app), ["B-10"]

    body = {"layout_hash": layout, "withdraw": withdrawn}
    compared = await admin.post(f"/admin/shows/{show}/layout/diff", body)
    changed = await changes(admin, show, layout_hash=layout, withdraw=withdrawn)

    assert compared.status_code == 200, compared.text
    assert (compared.json()["added_total"], compared.json()["removed"]) == (10, withdrawn)
    assert changed.status_code == 200, changed.text
    assert changed.json()["revision"] == await pod.postgres.fetchval(REVISION, show)
    assert show not in await PodStore(pod.postgres).fenced_shows()
    await holds(alice, show, "C-1")
    refused = await alice.holds(show, "B-10")
    assert problem(refused)["code"] == "seats_taken"
    (block,) = await pod.blocks.all(show)
    assert block.withdrawn, "no one can release it"
    seats = (await alice.get(f"/bookings/{booking}")).json()["seats"]
    assert [seat["label"] for seat in seats] == ["A-1"]
    assert (await violations(app)).total == 0


async def test_a_change_that_touches_a_sold_seat_is_refused_and_the_show_sells_on(
    app: App, admin: Fan, alice: Fan
) -> None:
    show = await a_pod_show(app, seats=20)
    pod = app.router.for_show(show).postgres
    await buys(alice, show, "A-1")
    before = await pod.fetchval(REVISION, show)

    body = {"withdraw": ["A-1"]}
    compared = (await admin.post(f"/admin/shows/{show}/layout/diff", body)).json()
    refused = await changes(admin, show, withdraw=["A-1"])

    assert (compared["is_safe"], [seat["label"] for seat in compared["in_use"]]) == (False, ["A-1"])
    assert problem(refused)["code"] == "layout_unsafe"
    await holds(alice, show, "A-2")
    assert await pod.fetchval(REVISION, show) == before


async def test_nothing_changes_while_the_pod_is_away_or_the_show_moves(
    app: App, app_without_east: App, api_without_east: httpx2.AsyncClient, admin: Fan, alice: Fan
) -> None:
    show = await a_show_in_the_east(app)
    pod = app.router.for_show(show).postgres
    await app_without_east.router.directory.follow()
    before = await app.postgres.fetchval(REVISION, show)

    stranded = Fan(admin.account_id, admin.token, api_without_east)
    away = await changes(stranded, show, withdraw=["A-2"])
    await pod.execute("SELECT fence_show($1, 1)", show)
    moving = await changes(admin, show, withdraw=["A-2"])
    fenced = await PodStore(pod).fenced_shows()
    await pod.execute("UPDATE show_copy SET epoch = 1 WHERE show_id = $1", show)

    for refused in (away, moving):
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True), refused.text
    assert show in fenced
    assert await app.postgres.fetchval(REVISION, show) == before
    await holds(alice, show, "A-2")


async def a_show_in_the_east(app: App) -> int:
    while True:
        show = await a_pod_show(app, seats=20)
        if app.router.directory.pod_of(show) == "east":
            return show


async def test_a_show_that_was_left_closed_opens_when_the_change_has_arrived(
    app: App, pod_house: PodHouse
) -> None:
    """A process dies after the commit at home. Opened before it arrives, the pod would sell the old hall."""
    show = await a_pod_show(app, seats=20)
    pod = app.router.directory.pod_of(show)
    close = ("SELECT fence_show($1, 1)", "ALTER SUBSCRIPTION holdfast_home DISABLE")
    await sql(pod_house, pod, *close, show=show)
    layout = await a_larger_hall(app)
    await app.postgres.execute("UPDATE show SET layout_hash = $2 WHERE id = $1", show, layout)
    mover = ShowMover(app.config.database_url, await databases(app))

    opening = asyncio.create_task(mover.move(show, pod))
    await asyncio.wait([opening], timeout=0.5)
    was_open = show not in await PodStore(app.router.for_show(show).postgres).fenced_shows()
    await sql(pod_house, pod, "ALTER SUBSCRIPTION holdfast_home ENABLE")
    await opening

    database = app.router.for_show(show).postgres
    assert not was_open
    assert show not in await PodStore(database).fenced_shows()
    assert await database.fetchval("SELECT layout_hash FROM show WHERE id = $1", show) == layout
