"""Staff at the door with accounts of their own: only members of the organisation have passes for it (R30)."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.gates import PUBLIC, a_pass, a_ticket, made, scan
from tests.support.shows import Fan, problem


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(30, price_minor=0, owner_seats_max=30))


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


async def an_organisation(app: App, api: httpx2.AsyncClient, show: int) -> Fan:
    """The owner of the organisation that the show belongs to."""
    (owner,) = await cast.fans(app, api, 1, Role.ORGANISER)
    await app.postgres.execute(
        "UPDATE event SET organiser_id = $1 WHERE id = (SELECT event_id FROM show WHERE id = $2)",
        owner.account_id,
        show,
    )
    return owner


async def joins_the_door(app: App, owner: Fan, who: Fan) -> None:
    await app.organisations.add_member(owner.account_id, who.account_id, ["door"])


async def test_gate_staff_can_scan_with_their_own_account(
    app: App, api: httpx2.AsyncClient, admin: Fan, alice: Fan, show: int
) -> None:
    (gita,), house = await cast.fans(app, api, 1), await an_organisation(app, api, show)
    await joins_the_door(app, house, gita)
    email = (await gita.get("/me")).json()["email"]
    body = await made(admin, a_pass(show, email=email))
    ticket = await a_ticket(alice, show, "A-4")

    bound = await gita.post("/gate/device", {"device_key": PUBLIC})
    scanned = await scan(gita, code=ticket["code"])

    assert body["code"] is None
    assert bound.json()["pass_id"] == body["gate_pass"]["pass_id"]
    assert scanned["verdict"] == "admitted"


async def test_another_organisation_cannot_give_a_pass_to_staff_who_have_not_joined(
    app: App, api: httpx2.AsyncClient, show: int, a_show: Callable[..., Any]
) -> None:
    """It would change what the steward's device does at the door where they work."""
    (gita,), house = await cast.fans(app, api, 1, Role.GATE), await an_organisation(app, api, show)
    elsewhere = await a_show(20, price_minor=0)
    rival = await an_organisation(app, api, elsewhere)
    await joins_the_door(app, house, gita)
    email = (await gita.get("/me")).json()["email"]
    await made(house, a_pass(show, email=email))
    await gita.post("/gate/device", {"device_key": PUBLIC})

    known = await rival.post("/admin/gate-passes", a_pass(elsewhere, "Nowhere", email=email))
    unknown = await rival.post("/admin/gate-passes", a_pass(elsewhere, email="no@example.com"))

    assert problem(known)["code"] == problem(unknown)["code"] == "not_a_gate_account"
    assert (await gita.get("/gate/pack")).status_code == 200
    assert [one["show_id"] for one in (await gita.get("/gate/counts")).json()["shows"]] == [show]


async def test_staff_of_two_organisations_have_one_device_for_both(
    app: App, api: httpx2.AsyncClient, show: int, a_show: Callable[..., Any]
) -> None:
    (gita,), house = await cast.fans(app, api, 1), await an_organisation(app, api, show)
    later = await a_show(20, price_minor=0)
    other = await an_organisation(app, api, later)
    email = (await gita.get("/me")).json()["email"]
    await joins_the_door(app, house, gita)
    await joins_the_door(app, other, gita)
    first = await made(house, a_pass(show, email=email))
    await gita.post("/gate/device", {"device_key": PUBLIC})

    await made(other, a_pass(later, "South", email=email))
    pack = await gita.get("/gate/pack")
    bound = await gita.post("/gate/device", {"device_key": PUBLIC})

    assert (pack.status_code, pack.json()["pass_id"]) == (200, first["gate_pass"]["pass_id"])
    assert bound.json()["pass_id"] != first["gate_pass"]["pass_id"]


async def test_staff_who_leave_the_organisation_lose_the_door_at_once(
    app: App, api: httpx2.AsyncClient, show: int
) -> None:
    (gita,), house = await cast.fans(app, api, 1), await an_organisation(app, api, show)
    await joins_the_door(app, house, gita)
    await made(house, a_pass(show, email=(await gita.get("/me")).json()["email"]))
    assert (await gita.get("/gate/counts")).status_code == 200

    removed = await house.delete(f"/organisations/{house.account_id}/members/{gita.account_id}")

    assert removed.status_code == 204
    assert (await gita.get("/gate/counts")).status_code == 403
    assert (await gita.post("/gate/uploads", {"scans": []})).status_code == 403
