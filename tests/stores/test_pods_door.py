"""A door whose shows are in several databases: packs, counts, searches, scans and uploads (R30, R36)."""

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx2
import pytest

from holdfast.app import App
from holdfast.checkin import OfflineGate, Verdict, Way, open_pack
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.gates import DEVICE, PUBLIC, a_pass, made, scan
from tests.support.pod_house import a_pod_show, buys, shows_in_pods
from tests.support.shows import API, Fan
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


class Door(NamedTuple):
    """One device for two shows in two pods, and a ticket of each."""

    device: Fan
    keys: dict[int, bytes]
    shows: list[int]
    tickets: list[dict[str, Any]]
    references: list[str]


@pytest.fixture
async def door(app: App, admin: Fan, alice: Fan) -> Door:
    shows = list((await shows_in_pods(app)).values())
    made_pass = await made(admin, a_pass(shows[0], shows=shows))
    login = {"code": made_pass["code"], "device_key": PUBLIC}
    signed_in = (await admin.api.post(f"{API}/gate/login", json=login)).json()
    tickets, references = [], []
    for show in shows:
        booking = await buys(alice, show, "A-4")
        references.append((await alice.get(f"/bookings/{booking}")).json()["reference"])
        tickets += (await alice.get(f"/bookings/{booking}/tickets")).json()["tickets"]
        await _wait_for_pass(app, show, made_pass["gate_pass"]["pass_id"])
    keys = {int(key_id): b64decode(key) for key_id, key in signed_in["keys"].items()}
    return Door(Fan(0, signed_in["access_token"], admin.api), keys, shows, tickets, references)


async def _wait_for_pass(app: App, show: int, pass_id: int) -> None:
    """Until the pod has received it, with its device."""
    pod = app.router.for_show(show)
    bound = "SELECT count(*) = 1 FROM gate_pass WHERE id = $1 AND device_key IS NOT NULL"

    async def has_arrived() -> bool:
        return bool(await pod.postgres.fetchval(bound, pass_id))

    await until(has_arrived)


async def test_a_pack_has_the_tickets_of_every_pod(door: Door) -> None:
    answer = await door.device.get("/gate/pack")
    assert answer.status_code == 200, answer.text
    pack = open_pack(b64decode(answer.json()["pack"]), DEVICE.private_bytes_raw(), door.keys)
    assert [(show.show_id, [one.seat for one in show.tickets]) for show in pack.shows] == [
        (show, ["A-4"]) for show in sorted(door.shows)
    ]
    gate, now = OfflineGate(pack), datetime.now(UTC).timestamp()
    verdicts = [gate.decide(one["code"], Way.ENTRY, now).verdict for one in door.tickets]
    assert verdicts == [Verdict.ADMITTED, Verdict.ADMITTED]


async def test_a_pack_without_one_show_is_refused(door: Door, api_without_east: httpx2.AsyncClient) -> None:
    device = Fan(0, door.device.token, api_without_east)
    refused = await device.get("/gate/pack")
    assert refused.status_code == 503
    assert "retry-after" in refused.headers


async def test_scans_are_counted_in_every_pod(door: Door) -> None:
    for ticket in door.tickets:
        assert (await scan(door.device, code=ticket["code"]))["verdict"] == "admitted"
    again = await scan(door.device, code=door.tickets[0]["code"])
    assert (again["verdict"], again["reason"]) == ("refused", "used")
    counts = (await door.device.get("/gate/counts")).json()["shows"]
    assert [(one["show_id"], one["tickets"], one["used"], one["inside"]) for one in counts] == [
        (show, 1, 1, 1) for show in sorted(door.shows)
    ]


async def test_an_admission_is_taken_back_in_its_pod(door: Door) -> None:
    admitted = await scan(door.device, code=door.tickets[1]["code"])
    undone = await door.device.post(f"/gate/check-ins/{admitted['check_in_id']}/undo", {"scan_id": "undo-1"})
    assert undone.status_code == 200, undone.text
    assert (await scan(door.device, code=door.tickets[1]["code"]))["verdict"] == "admitted"


async def test_a_flat_phone_is_found_in_either_pod(door: Door) -> None:
    for show, reference in zip(door.shows, door.references, strict=True):
        (found,) = (await door.device.get("/gate/search", q=reference)).json()["tickets"]
        assert (found["show_id"], found["seat"]) == (show, "A-4")
        assert (await scan(door.device, ticket=found["ticket_id"]))["verdict"] == "admitted"
    name = "fan"
    by_name = (await door.device.get("/gate/search", q=name)).json()["tickets"]
    assert sorted(one["show_id"] for one in by_name) == sorted(door.shows)


async def test_codes_that_are_not_for_this_door_are_written_down(app: App, door: Door, alice: Fan) -> None:
    """They are written under a show of the pass, in the pod of that show."""
    garbage = await scan(door.device, code="not one of our codes")
    assert (garbage["verdict"], garbage["reason"]) == ("refused", "unknown")
    other = await a_pod_show(app)
    booking = await buys(alice, other, "A-1")
    (ticket,) = (await alice.get(f"/bookings/{booking}/tickets")).json()["tickets"]
    wrong = await scan(door.device, code=ticket["code"])
    assert (wrong["verdict"], wrong["reason"]) == ("refused", "wrong_show")


async def test_uploads_reach_the_pod_of_each_ticket(admin: Fan, door: Door) -> None:
    at = datetime.now(UTC).isoformat()
    codes = [door.tickets[0]["code"], "nonsense", door.tickets[1]["code"]]
    scans = [
        {"scan_id": f"off-{place}", "code": code, "verdict": "admitted", "scanned_at": at}
        for place, code in enumerate(codes)
    ]
    uploaded = (await door.device.post("/gate/uploads", {"scans": scans})).json()
    again = (await door.device.post("/gate/uploads", {"scans": scans})).json()
    assert uploaded == again
    assert [(one["scan_id"], one["recorded"]) for one in uploaded["scans"]] == [
        ("off-0", True),
        ("off-1", False),
        ("off-2", True),
    ]
    for show in door.shows:
        counts = (await admin.get(f"/admin/shows/{show}/door/counts")).json()
        assert (counts["used"], counts["conflicts"]) == (1, 0)
