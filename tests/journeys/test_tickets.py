"""From a booking to tickets on a phone, on paper and in a calendar; given to another account (R30)."""

import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx2
import pypdfium2  # type: ignore[import-untyped]
import pytest
import zxingcpp
from icalendar import Calendar

from holdfast.accounts import MailToken, Purpose
from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.tickets import Codes, EntryPolicy
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.shows import Fan, problem


@pytest.fixture
async def show(a_show: Callable[..., Any]) -> int:
    return int(await a_show(20, price_minor=0))


async def booked(fan: Fan, show: int, *seats: str) -> str:
    return str((await fan.holds(show, *seats)).json()["booking_id"])


async def tickets(fan: Fan, booking: str) -> list[dict[str, Any]]:
    answer = await fan.get(f"/bookings/{booking}/tickets")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["tickets"]
    return found


async def email_of(fan: Fan) -> str:
    return str((await fan.get("/me")).json()["email"])


class TestMine:
    async def test_a_ticket_a_seat_with_a_code_and_its_picture(self, alice: Fan, show: int) -> None:
        found = await tickets(alice, await booked(alice, show, "A-4", "A-5"))

        assert [one["seat"] for one in found] == ["A-4", "A-5"]
        assert {one["standing"] for one in found} == {"good"}
        assert len({one["code"] for one in found}) == 2
        svg = b64decode(found[0]["qr_svg"].removeprefix("data:image/svg+xml;base64,"))
        assert svg.startswith(b"<svg")

    async def test_printed_they_are_read_by_a_scanner(self, alice: Fan, show: int) -> None:
        booking = await booked(alice, show, "A-4", "A-5")

        answer = await alice.get(f"/bookings/{booking}/tickets.pdf")

        assert answer.headers["content-type"] == "application/pdf"
        page = pypdfium2.PdfDocument(answer.content)[0].render(scale=2).to_pil()
        read = {one.text for one in zxingcpp.read_barcodes(page)}
        assert read == {one["code"] for one in await tickets(alice, booking)}

    async def test_a_calendar_has_the_show_once_however_often_it_reads(self, alice: Fan, show: int) -> None:
        booking = await booked(alice, show, "A-4")

        answers = [await alice.get(f"/bookings/{booking}/tickets.ics") for _ in range(2)]

        events = [Calendar.from_ical(one.text).walk("VEVENT")[0] for one in answers]
        assert answers[0].headers["content-type"].startswith("text/calendar")
        assert events[0]["UID"] == events[1]["UID"] == f"{booking}@holdfast"
        assert events[0]["STATUS"] == "CONFIRMED"

    async def test_a_hold_has_no_tickets_yet(self, alice: Fan, a_show: Callable[..., Any]) -> None:
        booking = await booked(alice, await a_show(20), "A-4")

        refused = await alice.get(f"/bookings/{booking}/tickets")

        assert (refused.status_code, problem(refused)["code"]) == (409, "no_tickets")
        assert problem(refused)["state"] == "held"

    @pytest.mark.parametrize("what", ["tickets", "tickets.pdf", "tickets.ics"])
    async def test_another_account_cannot_find_them(self, alice: Fan, bob: Fan, show: int, what: str) -> None:
        booking = await booked(alice, show, "A-4")

        refused = await bob.get(f"/bookings/{booking}/{what}")

        assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_booking")

    async def test_another_account_cannot_find_a_ticket(self, alice: Fan, bob: Fan, show: int) -> None:
        (ticket,) = await tickets(alice, await booked(alice, show, "A-4"))

        assert (await alice.get(f"/tickets/{ticket['ticket_id']}")).status_code == 200
        assert (await alice.get(f"/tickets/{ticket['ticket_id']}/ticket.pdf")).status_code == 200
        for path in (f"/tickets/{ticket['ticket_id']}", f"/tickets/{ticket['ticket_id']}/ticket.pdf"):
            assert (await bob.get(path)).status_code == 404
        assert (await bob.get("/tickets/nonsense")).status_code == 404

    async def test_all_of_mine_newest_first_page_by_page(self, alice: Fan, show: int) -> None:
        for seat in ("A-1", "A-2", "A-3"):
            await booked(alice, show, seat)

        first = (await alice.get("/tickets", size=2)).json()["tickets"]
        rest = (await alice.get("/tickets", size=2, before=first[-1]["ticket_id"])).json()["tickets"]

        assert [one["seat"] for one in (*first, *rest)] == ["A-3", "A-2", "A-1"]

    async def test_tickets_can_be_resent_a_limited_number_of_times(self, alice: Fan, show: int) -> None:
        booking = await booked(alice, show, "A-4")

        statuses = [(await alice.post(f"/bookings/{booking}/tickets/resend")).status_code for _ in range(6)]

        assert statuses == [204] * 5 + [429]


class TestThePage:
    async def test_the_page_embeds_its_code_and_forbids_foreign_content(
        self, alice: Fan, show: int, api: httpx2.AsyncClient
    ) -> None:
        (ticket,) = await tickets(alice, await booked(alice, show, "A-4"))

        page = await api.get(ticket["page_url"])

        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        svg = b64decode(ticket["qr_svg"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert svg in page.text
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert re.search(r"<(script|style|img|link)[^>]*https?:", page.text) is None
        assert page.headers["cache-control"] == "no-store"

    async def test_its_scripts_are_there(self, api: httpx2.AsyncClient) -> None:
        script, worker = await api.get("/tickets/files/ticket.js"), await api.get("/tickets/worker.js")

        assert "/tickets/worker.js" in script.text
        assert "caches.open" in worker.text
        assert {one.headers["content-type"] for one in (script, worker)} == {"text/javascript; charset=utf-8"}
        assert (await api.get("/tickets/files/../ticket.html")).status_code == 404

    async def test_another_address_leads_nowhere(self, api: httpx2.AsyncClient) -> None:
        assert (await api.get("/tickets/" + "A" * 48)).status_code == 404


class TestGivenAway:
    async def test_bob_has_it_and_alice_has_no_code_any_more(self, alice: Fan, bob: Fan, show: int) -> None:
        booking = await booked(alice, show, "A-4", "A-5")
        first, second = await tickets(alice, booking)

        given = await alice.post(
            f"/tickets/{first['ticket_id']}/transfer", {"email": (await email_of(bob)).upper()}
        )

        assert given.status_code == 200, given.text
        assert not given.json()["has_arrived"]
        (offered,) = (await bob.get("/tickets")).json()["tickets"]
        assert (offered["standing"], "code" in offered, "page_url" in offered) == ("offered", False, False)
        accepted = await bob.post(f"/tickets/{first['ticket_id']}/accept")
        assert accepted.status_code == 200, accepted.text
        (bobs,) = (await bob.get("/tickets")).json()["tickets"]
        assert bobs == accepted.json()
        assert bobs["ticket_id"] == first["ticket_id"]
        assert bobs["code"] != first["code"]
        mine = await tickets(alice, booking)
        assert [(one["standing"], "code" in one) for one in mine] == [("given_away", False), ("good", True)]
        assert mine[1]["code"] == second["code"]
        printed = await alice.get(f"/bookings/{booking}/tickets.pdf")
        page = pypdfium2.PdfDocument(printed.content)[0].render(scale=2).to_pil()
        assert {one.text for one in zxingcpp.read_barcodes(page)} == {second["code"]}

    async def test_the_answer_is_the_same_whether_or_not_the_address_has_an_account(
        self, alice: Fan, bob: Fan, show: int
    ) -> None:
        first, second = await tickets(alice, await booked(alice, show, "A-4", "A-5"))
        known, unknown = await email_of(bob), f"unknown-{first['ticket_id']}@example.com"

        answers = [
            (await alice.post(f"/tickets/{one['ticket_id']}/transfer", {"email": email})).json()
            for one, email in ((first, known), (second, unknown))
        ]

        assert [answer["has_arrived"] for answer in answers] == [False, False]
        assert answers[0].keys() == answers[1].keys()

    async def test_signing_up_with_the_address_does_not_bring_the_ticket(
        self, app: App, alice: Fan, show: int, api: httpx2.AsyncClient
    ) -> None:
        """Otherwise a ticket belongs to the first who types its address. The mailed link brings it."""
        (ticket,) = await tickets(alice, await booked(alice, show, "A-4"))
        email = f"victim-{ticket['ticket_id']}@example.com"
        await alice.post(f"/tickets/{ticket['ticket_id']}/transfer", {"email": email})

        body = {"email": email, "password": "correct horse battery", "name": "Mallory"}
        signed_up = (await api.post(f"{cast.API}/accounts", json=body)).json()
        mallory = Fan(signed_up["account"]["account_id"], signed_up["access_token"], api)
        stolen = await mallory.post(f"/tickets/{ticket['ticket_id']}/accept")

        assert (await mallory.get("/tickets")).json()["tickets"] == []
        assert (stolen.status_code, problem(stolen)["code"]) == (404, "no_such_ticket")
        show_id, serial = from_public_id(ticket["ticket_id"])
        link = MailToken(purpose=Purpose.CLAIM, email=email, show_id=show_id, number=serial, edition=2)
        token = await app.mail_tokens.issue(link)
        (victim,) = await cast.fans(app, api, 1)
        claims = [await victim.post("/tickets/claims", {"token": token}) for _ in range(2)]
        assert [answer.status_code for answer in claims] == [200, 410]
        assert claims[0].json()["seat"] == "A-4"

    async def test_until_then_it_can_be_taken_back(self, alice: Fan, show: int) -> None:
        (ticket,) = await tickets(alice, await booked(alice, show, "A-4"))
        path = f"/tickets/{ticket['ticket_id']}/transfer"
        await alice.post(path, {"email": f"never-{ticket['ticket_id']}@example.com"})

        back = await alice.delete(path)
        again = await alice.delete(path)

        assert (back.status_code, back.json()["standing"]) == (200, "good")
        assert back.json()["code"] != ticket["code"]
        assert problem(again)["code"] == "nothing_to_take_back"


class TestLiveCodes:
    @pytest.fixture
    async def live(self, app: App, show: int) -> int:
        await app.tickets.set_door(show, EntryPolicy(codes=Codes.LIVE_OR_PAPER))
        return show

    async def test_a_phone_gets_codes_and_the_list_has_none(self, alice: Fan, live: int) -> None:
        booking = await booked(alice, live, "A-4")
        (listed,) = await tickets(alice, booking)

        answer = await alice.post(f"/bookings/{booking}/tickets/codes", {"phone": "phone-one"})

        assert (listed["codes"], "code" in listed) == ("live_or_paper", False)
        assert answer.status_code == 200, answer.text
        assert answer.json()["step_s"] == 30
        (made,) = answer.json()["tickets"]
        assert made["ticket_id"] == listed["ticket_id"]

    async def test_the_page_requests_its_own_codes(
        self, alice: Fan, live: int, api: httpx2.AsyncClient
    ) -> None:
        (ticket,) = await tickets(alice, await booked(alice, live, "A-4"))

        page = await api.get(ticket["page_url"])
        answer = await api.post(f"{ticket['page_url']}/code", json={"phone": "phone-one"})

        assert 'data-codes="live"' in page.text
        assert "<svg" not in page.text
        assert answer.json()["qr_svg"].startswith("data:image/svg+xml")

    async def test_fixed_codes_are_bound_to_no_phone(self, alice: Fan, show: int) -> None:
        booking = await booked(alice, show, "A-4")

        refused = await alice.post(f"/bookings/{booking}/tickets/codes", {"phone": "phone-one"})

        assert (refused.status_code, problem(refused)["code"]) == (409, "fixed_code")


async def test_ticket_codes_and_access_tokens_are_not_interchangeable(
    app: App, api: httpx2.AsyncClient, alice: Fan, show: int
) -> None:
    """15 of the attacks."""
    (ticket,) = await tickets(alice, await booked(alice, show, "A-4"))
    thief = Fan(0, ticket["code"], api)
    (gate,) = await cast.fans(app, api, 1, Role.GATE)

    assert (await thief.get("/me")).status_code == 401
    refused = await gate.post("/gate/check-ins", {"scan_id": "1", "code": alice.token})
    assert problem(refused)["code"] in {"no_gate_pass", "invalid"}
