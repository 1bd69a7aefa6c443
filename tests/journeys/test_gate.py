"""A night at the door, over HTTP: passes, scans, a flat phone, no network, a stolen device (R30)."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.app import App
from holdfast.checkin.offline import OfflineGate, open_pack
from holdfast.checkin.scan import Verdict, Way
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.gates import DEVICE, PUBLIC, a_device, a_pass, a_ticket, made, scan
from tests.support.shows import API, Fan, problem


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(30, price_minor=0, owner_seats_max=30))


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


class TestAtTheDoor:
    async def test_a_second_scan_reports_when_and_where_the_first_one_was(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        north, south = await a_device(admin, show), await a_device(admin, show, "South")
        ticket = await a_ticket(alice, show, "A-4")

        first, second = await scan(north, code=ticket["code"]), await scan(south, code=ticket["code"])

        assert (first["verdict"], first["seat"], first["gate"]) == ("admitted", "A-4", "North")
        assert first["reference"] == ticket["reference"]
        assert (second["verdict"], second["reason"]) == ("refused", "used")
        assert (second["first_gate"], second["first_at"]) == ("North", first["scanned_at"])

    async def test_a_ticket_for_another_show_says_which(
        self, admin: Fan, alice: Fan, show: int, a_show: Callable[..., Any]
    ) -> None:
        ticket = await a_ticket(alice, show, "A-4")
        elsewhere = await a_device(admin, await a_show(20, price_minor=0))

        scanned = await scan(elsewhere, code=ticket["code"])

        assert (scanned["verdict"], scanned["reason"]) == ("refused", "wrong_show")
        assert scanned["other_show"].startswith("Test ")
        assert "seat" not in scanned

    async def test_a_transferred_ticket_is_dead_at_once(
        self, admin: Fan, alice: Fan, bob: Fan, show: int
    ) -> None:
        """30 of the attacks: it reaches a gate with a network at the next scan."""
        device = await a_device(admin, show)
        ticket = await a_ticket(alice, show, "A-4")
        email = (await bob.get("/me")).json()["email"]
        await alice.post(f"/tickets/{ticket['ticket_id']}/transfer", {"email": email})

        old = await scan(device, code=ticket["code"])
        accepted = await bob.post(f"/tickets/{ticket['ticket_id']}/accept")
        new = await scan(device, code=accepted.json()["code"])

        assert (old["reason"], new["verdict"]) == ("transferred", "admitted")

    async def test_an_undone_admission_can_be_repeated(self, admin: Fan, alice: Fan, show: int) -> None:
        device = await a_device(admin, show)
        ticket = await a_ticket(alice, show, "A-4")
        done = await scan(device, code=ticket["code"])

        path = f"/gate/check-ins/{done['check_in_id']}/undo"
        undone = await device.post(path, {"scan_id": "undo-1"})
        again = await device.post(path, {"scan_id": "undo-2"})

        assert (undone.status_code, undone.json()["verdict"]) == (200, "undone")
        assert problem(again)["code"] == "nothing_to_undo"
        assert (await scan(device, code=ticket["code"]))["verdict"] == "admitted"

    async def test_a_flat_phone_is_found_by_reference_or_name_and_let_in_by_hand(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        device = await a_device(admin, show)
        ticket = await a_ticket(alice, show, "A-4")
        name = (await alice.get("/me")).json()["name"]

        by_reference = (await device.get("/gate/search", q=ticket["reference"])).json()["tickets"]
        by_name = (await device.get("/gate/search", q=name[:12])).json()["tickets"]
        scanned = await scan(device, ticket=by_reference[0]["ticket_id"])

        assert by_reference == by_name
        assert set(by_reference[0]) == {
            "ticket_id",
            "show_id",
            "reference",
            "seat",
            "initials",
            "standing",
        }
        assert by_reference[0]["initials"] == name[0].upper() + "."
        assert scanned["verdict"] == "admitted"

    async def test_counts_by_gate(self, admin: Fan, alice: Fan, show: int) -> None:
        north, south = await a_device(admin, show), await a_device(admin, show, "South")
        codes = [(await a_ticket(alice, show, f"A-{n}"))["code"] for n in (1, 2, 3)]
        for code in codes[:2]:
            await scan(north, code=code)
        await scan(south, code=codes[0])
        await scan(south, code=codes[0], way="exit")

        (counted,) = (await north.get("/gate/counts")).json()["shows"]
        organisers = (await admin.get(f"/admin/shows/{show}/door/counts")).json()

        assert counted == organisers
        assert (counted["tickets"], counted["used"], counted["inside"]) == (3, 2, 1)
        assert counted["gates"] == [
            {"gate": "North", "admitted": 2, "left": 0, "undone": 0, "refused": 0},
            {"gate": "South", "admitted": 0, "left": 1, "undone": 0, "refused": 1},
        ]


class TestPasses:
    async def test_a_pass_is_limited_to_the_organisers_own_shows(
        self, app: App, api: httpx2.AsyncClient, show: int
    ) -> None:
        (stranger,) = await cast.fans(app, api, 1, Role.ORGANISER)

        refused = await stranger.post("/admin/gate-passes", a_pass(show))

        assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_show")
        assert (await stranger.get(f"/admin/shows/{show}/door")).status_code == 404

    async def test_passes_are_listed_in_pages(self, admin: Fan, show: int) -> None:
        passes = [(await made(admin, a_pass(show)))["gate_pass"]["pass_id"] for _ in range(3)]
        path = "/admin/gate-passes"

        first = (await admin.get(path, show=show, size=2)).json()
        rest = (await admin.get(path, show=show, size=2, before=first["next"])).json()

        assert [each["pass_id"] for each in first["passes"]] == [passes[2], passes[1]]
        assert rest["passes"][0]["pass_id"] == passes[0]

    async def test_a_stolen_device_is_blocked_at_once_and_stores_no_names(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        """31 of the attacks."""
        body = await made(admin, a_pass(show))
        login = {"code": body["code"], "device_key": PUBLIC}
        token = (await admin.api.post(f"{API}/gate/login", json=login)).json()["access_token"]
        device = Fan(0, token, admin.api)
        ticket = await a_ticket(alice, show, "A-4")

        for path in ("/bookings", "/tickets"):
            page = (await device.get(path)).json()
            assert page in (
                {"bookings": [], "next": None, "complete": True},
                {"tickets": [], "complete": True},
            )
        for path in ("/admin/events", f"/admin/shows/{show}/blocks", f"/admin/shows/{show}/door/conflicts"):
            assert (await device.get(path)).status_code == 403
        revoked = await admin.delete(f"/admin/gate-passes/{body['gate_pass']['pass_id']}")

        assert revoked.json()["revoked_at"] is not None
        for refused in (
            await device.post("/gate/check-ins", {"scan_id": "x", "code": ticket["code"]}),
            await device.get("/gate/pack"),
            await device.get("/gate/search", q="alice"),
            await device.get("/gate/counts"),
        ):
            assert (refused.status_code, problem(refused)["code"]) == (403, "no_gate_pass")
        assert (await admin.api.post(f"{API}/gate/login", json=login)).status_code == 401

    async def test_a_code_signs_one_device_in(self, admin: Fan, show: int) -> None:
        code = (await made(admin, a_pass(show)))["code"]
        other = b64encode(X25519PrivateKey.generate().public_key().public_bytes_raw()).decode()

        scanned = [
            await admin.api.post(f"{API}/gate/login", json={"code": sent, "device_key": key})
            for sent, key in ((code, PUBLIC), (code, PUBLIC), (code, other), ("ABC", other))
        ]

        assert [answer.status_code for answer in scanned] == [200, 200, 409, 401]
        assert problem(scanned[2])["title"] == "Another device has this pass"
        assert problem(scanned[3])["title"] == "Unknown pass code"

    async def test_a_fan_has_no_business_here(self, admin: Fan, alice: Fan, show: int) -> None:
        email = (await alice.get("/me")).json()["email"]

        for path in ("/gate/check-ins", "/gate/uploads", "/gate/device"):
            assert (await alice.post(path, {})).status_code == 403
        for path in ("/gate/pack", "/gate/search", "/gate/counts", "/admin/gate-passes"):
            assert (await alice.get(path)).status_code == 403
        refused = await admin.post("/admin/gate-passes", a_pass(show, email=email))
        assert problem(refused)["code"] == "not_a_gate_account"

    @pytest.mark.parametrize("key", ["A" * 44, b64encode(bytes(32)).decode(), "!" * 44])
    async def test_an_invalid_device_key_is_refused(self, admin: Fan, show: int, key: str) -> None:
        code = (await made(admin, a_pass(show)))["code"]

        refused = await admin.api.post(f"{API}/gate/login", json={"code": code, "device_key": key})

        assert (refused.status_code, problem(refused)["field"]) == (422, "device_key")

    async def test_an_expired_pass_admits_no_one_but_can_still_upload_scans(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        """A device whose network is back the morning after. Two days later it is too late."""
        now = datetime.now(UTC)
        times = [
            {
                "starts_at": (now - timedelta(hours=h + 5)).isoformat(),
                "ends_at": (now - timedelta(hours=h)).isoformat(),
            }
            for h in (1, 49)
        ]
        code = (await a_ticket(alice, show, "A-4"))["code"]
        over, long_over = [(await made(admin, a_pass(show, **one)))["code"] for one in times]
        login = {"code": over, "device_key": PUBLIC}
        token = (await admin.api.post(f"{API}/gate/login", json=login)).json()["access_token"]
        device, at = Fan(0, token, admin.api), (now - timedelta(hours=2)).isoformat()

        uploads = await device.post(
            "/gate/uploads",
            {"scans": [{"scan_id": "1", "code": code, "verdict": "admitted", "scanned_at": at}]},
        )

        assert uploads.json()["scans"][0]["recorded"]
        for refused in (
            await device.post("/gate/check-ins", {"scan_id": "2", "code": code}),
            await device.get("/gate/pack"),
        ):
            assert problem(refused)["code"] == "no_gate_pass"
        login = {"code": long_over, "device_key": PUBLIC}
        assert (await admin.api.post(f"{API}/gate/login", json=login)).status_code == 401

    @pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
    async def test_a_clock_beyond_our_calendar_is_put_where_it_can_have_been(
        self, admin: Fan, alice: Fan, show: int, at: str
    ) -> None:
        device = await a_device(admin, show)
        code = (await a_ticket(alice, show, "A-4"))["code"]
        scan = {"scan_id": "1", "code": code, "verdict": "admitted", "scanned_at": at}

        uploads = await device.post("/gate/uploads", {"scans": [scan]})
        refused = await admin.post("/admin/gate-passes", a_pass(show, starts_at=at, ends_at=at))

        assert uploads.json()["scans"][0]["recorded"]
        assert problem(refused)["code"] == "bad_window"

    async def test_a_reused_scan_id_is_refused(self, admin: Fan, alice: Fan, show: int) -> None:
        device = await a_device(admin, show)
        codes = [(await a_ticket(alice, show, seat))["code"] for seat in ("A-4", "A-5")]

        scanned = [await device.post("/gate/check-ins", {"scan_id": "1", "code": code}) for code in codes]

        assert [one.status_code for one in scanned] == [200, 409]
        assert problem(scanned[1])["code"] == "scan_id_used"


class TestLive:
    async def test_a_picture_sent_to_ten_friends_opens_nothing(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        """28 of the attacks: the owner's phone makes the next code, and the picture is of another phone's."""
        assert (
            await admin.api.put(f"{API}/admin/shows/{show}/door", json={"codes": "live"})
        ).status_code == 401
        put = await admin.api.put(
            f"{API}/admin/shows/{show}/door", json={"codes": "live"}, headers=admin.headers
        )
        assert put.json() == {"codes": "live", "reentry": True}
        device = await a_device(admin, show)
        ticket = await a_ticket(alice, show, "A-4")
        path = f"/tickets/{ticket['ticket_id']}/codes"
        picture = (await alice.post(path, {"phone": "phone-one"})).json()["tickets"][0]["code"]
        code = (await alice.post(path, {"phone": "phone-two"})).json()["tickets"][0]["code"]

        assert (await scan(device, code=picture))["reason"] == "stale_code"
        assert (await scan(device, code=code))["verdict"] == "admitted"


class TestWithoutANetwork:
    async def test_a_pack_decides_offline_and_uploads_report_conflicts(
        self, admin: Fan, alice: Fan, show: int
    ) -> None:
        north, south = await a_device(admin, show), await a_device(admin, show, "South")
        code = (await a_ticket(alice, show, "A-4"))["code"]
        keys = (await admin.api.post(f"{API}/gate/login", json=await self._login(admin, show))).json()["keys"]
        trusted = {int(key_id): b64decode(key) for key_id, key in keys.items()}
        raw = b64decode((await north.get("/gate/pack")).json()["pack"])
        gate = OfflineGate(open_pack(raw, DEVICE.private_bytes_raw(), trusted))
        at = datetime.now(UTC)

        assert gate.decide(code, Way.ENTRY, at.timestamp()).verdict is Verdict.ADMITTED
        assert (await scan(south, code=code))["verdict"] == "admitted"
        body = {
            "scans": [{"scan_id": "off-1", "code": code, "verdict": "admitted", "scanned_at": at.isoformat()}]
        }
        uploads = (await north.post("/gate/uploads", body)).json()
        again = (await north.post("/gate/uploads", body)).json()

        assert uploads == again
        assert uploads["conflicts"] == 1
        (uploaded,) = uploads["scans"]
        assert (uploaded["scan_id"], uploaded["recorded"], uploaded["conflict"]) == ("off-1", True, "used")
        undone = await north.post(f"/gate/check-ins/{uploaded['check_in_id']}/undo", {"scan_id": "off-2"})
        assert undone.status_code == 200, undone.text
        assert (await scan(north, code=code))["reason"] == "used", "South has admitted the ticket, too"
        (conflict,) = (await admin.get(f"/admin/shows/{show}/door/conflicts")).json()["conflicts"]
        assert (conflict["first_gate"], conflict["second_gate"]) == ("North", "South")
        assert conflict["seat"] == "A-4"

    async def _login(self, admin: Fan, show: int) -> dict[str, str]:
        return {"code": (await made(admin, a_pass(show)))["code"], "device_key": PUBLIC}


class TestRefundsAtTheDoor:
    """27 of the cases: R1 racing G1, by the routes that people use. One row decides."""

    async def test_admitted_tickets_are_not_refunded_and_refunded_tickets_not_admitted(
        self, admin: Fan, alice: Fan, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(30, owner_seats_max=30)
        device, seen = await a_device(admin, show), set()

        for number in range(1, 11):
            path, code = await self._paid(alice, show, f"A-{number}")
            acts: list[Any] = [alice.delete(path), scan(device, code=code)]
            if number % 2:
                given, scanned = await asyncio.gather(*acts)
            else:
                scanned, given = await asyncio.gather(*reversed(acts))
            state = (await alice.get(path)).json()["state"]
            seen.add((scanned["verdict"], scanned.get("reason"), state))
            assert (given.status_code == 200) == (state == "refunded"), given.text

        assert seen <= {("admitted", None, "confirmed"), ("refused", "void", "refunded")}

    async def _paid(self, fan: Fan, show: int, seat: str) -> tuple[str, str]:
        booking = (await fan.holds(show, seat)).json()["booking_id"]
        paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
        assert paid.status_code == 200, paid.text
        (ticket,) = (await fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
        return f"/bookings/{booking}", ticket["code"]
