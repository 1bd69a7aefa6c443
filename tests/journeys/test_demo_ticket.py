"""From a purchase in `holdfast demo` to the door: its mail, the paper in it, let in once (R29, R30)."""

import html
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from icalendar import Calendar

from tests.support.cli_process import Demo, start_demo, stop_demo
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.gates import a_pass, made, scan
from tests.support.pdf import codes_on
from tests.support.shows import API, Fan
from tests.support.wait import until

MAIL_WITHIN_S = 30.0
_guests = count(1)


@dataclass(frozen=True)
class Visit:
    """A visitor with a browser, on a demo that is running."""

    demo: Demo
    api: httpx2.AsyncClient

    async def as_role(self, role: str) -> Fan:
        (account,) = [one for one in self.demo.facts["accounts"] if one["role"] == role]
        body = {"email": account["email"], "password": account["password"]}
        signed_in = await self.api.post(f"{API}/auth/login", json=body)
        assert signed_in.status_code == 200, signed_in.text
        return Fan(0, signed_in.json()["access_token"], self.api)

    async def mails_to(self, address: str) -> list[str]:
        """Addresses of their pages."""
        page = (await self.api.get("/demo/mail")).text
        found = re.findall(r'<a href="(/demo/mail/\d+)">[^<]*</a>\s*<span>to [^<]*&lt;([^<]*)&gt;', page)
        return [url for url, to in found if html.unescape(to) == address]

    async def files_of(self, mail: str) -> dict[str, bytes]:
        page = (await self.api.get(mail)).text
        links = re.findall(r'<a href="([^"]+/files/\d+)" download="([^"]+)">', page)
        return {name: (await self.api.get(link)).content for link, name in links}


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    with engine_folder() as folder:
        await fill_with_ledger(folder)
        demo = await start_demo(folder)
        try:
            async with httpx2.AsyncClient(base_url=demo.url, timeout=30) as api:
                yield Visit(demo, api)
        finally:
            await stop_demo(demo)


async def test_a_mailed_ticket_is_admitted_once(visit: Visit, tmp_path: Path) -> None:
    fan, address = await signed_up(visit)
    show = [one["id"] for one in visit.demo.facts["shows"] if one["price"] and is_on_sale(one)][-1]
    booking, confirmed_at = await purchase(fan, show)

    async def has_mail() -> bool:
        return len(await visit.mails_to(address)) == 2  # the first confirms the address

    await until(has_mail, within_s=MAIL_WITHIN_S)
    took_s = time.monotonic() - confirmed_at
    mail, _ = await visit.mails_to(address)
    files = await visit.files_of(mail)
    printed, reader = await codes_on(files["tickets.pdf"], tmp_path)
    gate = await at_the_gate(visit, show)
    first = [await scan(gate, code=code) for code in sorted(printed)]
    second = [await scan(gate, code=code) for code in sorted(printed)]

    print(f"on the mail page {took_s:.2f} s after it was confirmed; printed codes read by {reader}")
    (entry,) = Calendar.from_ical(files["tickets.ics"]).walk("VEVENT")
    assert entry["UID"] == f"{booking}@holdfast"
    assert 'src="data:image/png;base64,' in html.unescape((await visit.api.get(mail)).text), "the QR itself"
    tickets = (await fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
    assert printed == {one["code"] for one in tickets}
    assert len(printed) == 2
    assert [page["verdict"] for page in first] == ["admitted"] * 2
    for was, now in zip(first, second, strict=True):
        assert (now["verdict"], now["reason"]) == ("refused", "used")
        assert (now["first_at"], now["first_gate"]) == (was["scanned_at"], "North")


def is_on_sale(show: dict[str, Any]) -> bool:
    return datetime.fromisoformat(show["opens_at"]).timestamp() < time.time()


async def signed_up(visit: Visit) -> tuple[Fan, str]:
    address = f"guest{next(_guests)}-{time.time_ns()}@example.com"
    body = {"email": address, "password": "correct horse battery", "name": "Guest"}
    page = (await visit.api.post(f"{API}/accounts", json=body)).json()
    return Fan(page["account"]["account_id"], page["access_token"], visit.api), address


async def purchase(fan: Fan, show: int) -> tuple[str, float]:
    """(booking, when it was confirmed)"""
    held = await fan.holds(show, best={"count": 2})
    assert held.status_code == 201, held.text
    booking = str(held.json()["booking_id"])
    paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
    assert (paid.status_code, paid.json()["state"]) == (200, "confirmed"), paid.text
    return booking, time.monotonic()


async def at_the_gate(visit: Visit, show: int) -> Fan:
    """Gita Gate, with a pass of the organiser's."""
    organiser, gate = await visit.as_role("organiser"), await visit.as_role("gate")
    email = (await gate.get("/me")).json()["email"]
    await made(organiser, a_pass(show, email=email))
    return gate
