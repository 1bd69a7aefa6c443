"""`holdfast gate`, as a steward runs it: a scanner that types, a network that comes and goes (R30, G2)."""

import re
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.checkin import Way
from holdfast.config import Config
from holdfast.scanner.app import Scanner
from holdfast.web.caller import Role
from tests.fakes.scripted_server import an_oracle
from tests.support import shows as cast
from tests.support.flaky_network import Switch, a_portal
from tests.support.gates import a_pass, a_ticket, made
from tests.support.scanner_process import Steward
from tests.support.shows import Fan
from tests.support.wait import until


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(30, price_minor=0, owner_seats_max=30))


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def server(config: Config) -> AsyncIterator[Switch]:
    switch = Switch(config)
    await switch.on()
    yield switch
    await switch.off()


@pytest.fixture
async def steward(server: Switch, tmp_path: Path) -> AsyncIterator[Steward]:
    """Not on duty yet."""
    steward = Steward(tmp_path, server.url)
    yield steward
    await steward.killed()


async def on_duty(steward: Steward, admin: Fan, show: int, gate: str = "North") -> dict[str, Any]:
    """The pass it has."""
    body = await made(admin, a_pass(show, gate))
    await steward.start("--code", body["code"])
    await steward.types(b"/entry")
    return body


async def codes_of(fan: Fan, show: int, *seats: str) -> list[str]:
    return [(await a_ticket(fan, show, seat))["code"] for seat in seats]


class TestWithoutANetwork:
    async def test_it_continues_offline_and_uploads_later(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        tickets = await codes_of(alice, show, "A-1", "A-2", "A-3")
        await on_duty(steward, admin, show)

        online = [await steward.scans(one) for one in (tickets[0], tickets[0], "HELLO")]
        await server.off()
        alone = [await steward.scans(one) for one in (tickets[0], tickets[1], tickets[1])]
        await steward.killed()
        await steward.start()
        restarted = [await steward.scans(one) for one in (tickets[1], tickets[2])]
        await server.on()

        async def is_uploaded() -> bool:
            inside: int = (await admin.get(f"/admin/shows/{show}/door/counts")).json()["inside"]
            return inside == 3

        await until(is_uploaded, within_s=20)
        back = await steward.scans(tickets[2])
        await steward.ends()

        assert [(one["verdict"], one["offline"]) for one in online] == [
            ("admitted", False),
            ("used", False),
            ("unknown", False),
        ]
        assert [(one["verdict"], one["offline"]) for one in alone] == [
            ("used", True),
            ("admitted", True),
            ("used", True),
        ]
        assert [one["verdict"] for one in restarted] == ["used", "admitted"]
        assert (back["verdict"], back["offline"]) == ("used", False)
        assert (await admin.get(f"/admin/shows/{show}/door/conflicts")).json()["conflicts"] == []

    async def test_no_ticket_is_admitted_twice_while_uploads_are_pending(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        """The box office does not know of the first yet: the gate does."""
        (code,) = await codes_of(alice, show, "A-1")
        await on_duty(steward, admin, show)
        await server.off()
        first = await steward.scans(code)
        await server.on()

        second = await steward.scans(code)

        assert (first["verdict"], second["verdict"]) == ("admitted", "used")
        assert second["first_gate"] == "North"

    @pytest.mark.parametrize(
        "page",
        [
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html>Log in!",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        ],
        ids=["a page", "an object", "somewhere else", "a no"],
    )
    async def test_a_captive_portals_answer_is_not_taken_for_the_box_office(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int, page: bytes
    ) -> None:
        """The venue's Wi-Fi shows a login page, or a proxy answers with its own page."""
        codes = await codes_of(alice, show, "A-1", "A-2")
        await on_duty(steward, admin, show)
        await server.off()

        async with a_portal(server.port, page):
            verdicts = [await steward.scans(code) for code in (*codes, codes[0])]

        assert [(one["verdict"], one["offline"]) for one in verdicts] == [
            ("admitted", True),
            ("admitted", True),
            ("used", True),
        ]

    async def test_only_the_first_waits_for_a_network_that_is_silent(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        codes = await codes_of(alice, show, *(f"A-{n}" for n in range(1, 6)))
        await on_duty(steward, admin, show)
        await server.off()

        async with a_portal(server.port, None) as requests:
            verdicts = [await steward.scans(code) for code in codes]

        assert {(one["verdict"], one["offline"]) for one in verdicts} == {("admitted", True)}
        assert sum(b"/gate/check-ins" in one for one in requests) <= 1, requests

    async def test_new_keys_are_trusted_once_the_box_office_publishes_them(
        self, server: Switch, steward: Steward, app: App, admin: Fan, alice: Fan, show: int
    ) -> None:
        await on_duty(steward, admin, show)
        await server.off()
        await steward.scans("HELLO")  # so it knows that it is alone
        await app.postgres.execute(
            "INSERT INTO ticket_key (id, private, secret, signs_from)"
            " SELECT max(id) + 1, $1, $2, now() FROM ticket_key",
            *(secrets.token_bytes(32) for _ in range(2)),
        )
        await app.tickets._read_keys()
        ticket = await a_ticket(alice, show, "A-1")
        found = await app.tickets.find(*from_public_id(ticket["ticket_id"]))
        assert found is not None
        before = (steward.folder / "pack.bin").read_bytes()
        await server.on()

        async def has_another_pack() -> bool:
            return (steward.folder / "pack.bin").read_bytes() != before

        await until(has_another_pack, within_s=30)
        await server.off()

        verdicts = await steward.scans(await app.tickets.fixed_code(found))
        assert (verdicts["verdict"], verdicts["offline"]) == ("admitted", True)


class TestAtTheKeyboard:
    async def test_an_admission_is_undone_with_and_without_a_network_at_the_time(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        codes = await codes_of(alice, show, "A-1", "A-2")
        await on_duty(steward, admin, show)

        nothing = await steward.types(b"/undo")
        await steward.scans(codes[0])
        undone = await steward.types(b"/undo")
        again = await steward.types(b"/undo")
        await server.off()
        await steward.scans(codes[1])
        later = await steward.types(b"/undo")
        await server.on()
        is_uploaded = await steward.types(b"/undo")

        assert nothing == again == {"note": "Nothing to undo"}
        assert later == {"note": "no network: that needs one"}
        assert [one["verdict"] for one in (undone, is_uploaded)] == ["undone", "undone"]
        assert [(await steward.scans(code))["verdict"] for code in codes] == ["admitted", "admitted"]

    async def test_a_visitor_without_a_phone_is_found_and_admitted(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        ticket = await a_ticket(alice, show, "A-4")
        await on_duty(steward, admin, show)

        no_match = await steward.types(b"/find no guest of this name")
        unfound = await steward.types(b"/admit 1")
        found = await steward.types(f"/find {ticket['reference']}".encode())
        verdicts = [await steward.types(b"/admit 1"), await steward.types(b"/admit 1")]
        await server.off()
        alone = await steward.scans(ticket["code"])

        assert no_match == {"note": "no ticket found"}
        assert unfound == {"note": "say the number of one that /find has found"}
        assert found["note"].startswith("1: A-4, F. ")
        assert [one["verdict"] for one in (*verdicts, alone)] == ["admitted", "used", "used"]
        assert verdicts[1]["first_gate"] == "North"

    async def test_every_verdict_is_visible_at_a_glance(
        self, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        (code,) = await codes_of(alice, show, "A-1")
        await steward.start("--code", (await made(admin, a_pass(show)))["code"], as_json=False)

        seen = [await steward.reads(word) for word in (code, code, "HELLO", "/counts", "/undo", "/undo")]

        for line, looks in zip(
            seen,
            (
                r"✓ [\d:]{8}  Welcome  A-1",
                r"✗ [\d:]{8}  USED ALREADY  A-1  since [\d:]{8} at North",
                r"✗ [\d:]{8}  NOT ONE OF OUR TICKETS",
                r"· Test .*: 1 inside of 1; let in at North 1",
                r"✓ [\d:]{8}  Undone  A-1",
                r"· Nothing to undo",
            ),
            strict=True,
        ):
            assert re.fullmatch(looks, line), line

    async def test_people_are_scanned_out_and_in_again_and_counted_by_gate(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        codes = await codes_of(alice, show, "A-1", "A-2")
        await on_duty(steward, admin, show, "North gate")

        verdicts = [await steward.scans(code) for code in codes]
        await steward.types(b"/exit")
        verdicts += [await steward.scans(codes[0])]
        counted = await steward.types(b"/counts")
        await steward.types(b"/entry")
        verdicts += [await steward.scans(code) for code in codes]
        what = await steward.types(b"/what")

        assert [one["verdict"] for one in verdicts] == ["admitted", "admitted", "left", "admitted", "used"]
        assert counted["note"].endswith(": 1 inside of 2; let in at North gate 2")
        assert what == {"note": "/exit, /entry, /undo, /find, /admit, /counts, /quit"}

    @pytest.mark.parametrize("has_network", [True, False])
    async def test_every_typed_line_gets_a_verdict_and_is_uploaded(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int, has_network: bool
    ) -> None:
        (code,) = await codes_of(alice, show, "A-1")
        await on_duty(steward, admin, show)
        if not has_network:
            await server.off()

        strange = [
            b"\xff\xfe\x80",
            b"a\0b",
            b"\xed\xa0\x80",
            b"x" * 10_000_000,
            b"\x1b[2J",
            "😀".encode() * 900,
        ]
        verdicts = [await steward.types(line) for line in strange]
        good = await steward.types(b"\x02" + code.lower().encode() + b"\x03\r")
        journal = steward.folder / "scans.jsonl"
        # Read now: the next pack contains what was uploaded, and the gate then drops it from its journal.
        first_letters = set(re.findall(rb'"scan_id":"(.)', journal.read_bytes()))
        if not has_network:
            await server.on()

        assert [one["verdict"] for one in verdicts] == ["unknown"] * len(strange)
        assert good["verdict"] == "admitted"
        await until(lambda: self._is_inside(admin, show), within_s=20)
        assert await steward.ends() == 0
        assert not (steward.folder / "refused.jsonl").exists()
        assert b'"is_uploaded":false' not in journal.read_bytes()
        # Digits alone would be refused as a card number, one time in ten.
        assert first_letters == {b"s"}

    async def _is_inside(self, admin: Fan, show: int) -> bool:
        counted = (await admin.get(f"/admin/shows/{show}/door/counts")).json()
        return bool(counted["inside"] == 1)

    async def test_ctrl_c_ends_it_at_once(self, steward: Steward, admin: Fan, show: int) -> None:
        await on_duty(steward, admin, show)

        steward.interrupted()

        assert await steward.gone() != 0
        assert "Traceback" not in steward.complaint


class TestTrouble:
    async def test_without_a_pass_it_says_so(self, steward: Steward) -> None:
        await steward.start("--code", "A" * 32)

        assert await steward.ends() == 2
        assert "Unknown pass code" in steward.complaint

    async def test_a_stolen_one_forgets_its_pack(
        self, server: Switch, steward: Steward, admin: Fan, alice: Fan, show: int
    ) -> None:
        """31 of the attacks: once it knows that its pass is revoked, it decides nothing, network or not."""
        (code,) = await codes_of(alice, show, "A-1")
        body = await on_duty(steward, admin, show)
        await admin.delete(f"/admin/gate-passes/{body['gate_pass']['pass_id']}")

        verdicts = await steward.scans(code)
        await server.off()
        alone = await steward.scans(code)

        assert verdicts == {"note": "No pass for this door"}
        assert alone["verdict"] is None
        assert not (steward.folder / "pack.bin").exists()

    async def test_two_in_one_folder_would_write_over_each_other(
        self, server: Switch, steward: Steward, admin: Fan, show: int, tmp_path: Path
    ) -> None:
        await on_duty(steward, admin, show)
        second = Steward(tmp_path, server.url)

        await second.start()

        assert await second.ends() == 2
        assert "another gate runs in" in second.complaint

    @pytest.mark.parametrize("files", [("device.json",), ("pack.bin", "scans.jsonl")])
    async def test_a_damaged_file_is_reported_or_downloaded_again(
        self, steward: Steward, admin: Fan, alice: Fan, show: int, files: tuple[str, ...]
    ) -> None:
        codes = await codes_of(alice, show, "A-1", "A-2")
        await on_duty(steward, admin, show)
        await steward.scans(codes[0])
        await steward.killed()
        for file in files:
            (steward.folder / file).write_bytes(b"\xff{\0")

        await steward.start()

        if "device.json" in files:
            assert await steward.ends() == 2
            assert "is damaged" in steward.complaint
        else:
            assert [(await steward.scans(code))["verdict"] for code in codes] == ["used", "admitted"]


async def test_a_reason_of_a_later_release_is_a_refusal(tmp_path: Path) -> None:
    """The box office has decided: the gate shows its words, and does not let the pack decide instead."""
    signed_in = {"access_token": "x", "token_type": "Bearer", "expires_in": 600, "pass_id": 1, "keys": {}}
    words = "Only with a parent"
    refused = {
        "verdict": "refused",
        "reason": "too_young",
        "words": words,
        "check_in_id": "1-1",
        "seat": "A-1",
    }
    async with an_oracle() as office:
        office.says = lambda _, path: (200, signed_in if path.endswith("/login") else refused)
        scanner = Scanner.open(tmp_path / "gate", office.url, "code")
        try:
            result = await scanner.scan("HELLO", Way.ENTRY)
        finally:
            await scanner.close()

    assert (result.words, result.seat, result.is_open) == (words, "A-1", False)
    assert (result.is_decided, result.is_offline, scanner.pending) == (True, False, 0)
