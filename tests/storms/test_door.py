"""A crowd at many gates, over HTTP, on two workers: each ticket enters once, copies fail (R30, S11)."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2

from tests.support.box_office import Office
from tests.support.gates import a_device
from tests.support.restartable_office import an_admin
from tests.support.shows import API, Fan

SEATS, SEATS_FULL = 150, 1_000
GATES = 6
COPIES = 3  # of every ticket: two friends have a picture of it


@dataclass(frozen=True)
class Shown:
    """A ticket code, as shown at the gate."""

    booking: str
    seat: str
    code: str


async def test_every_ticket_is_admitted_once_despite_copies_and_returns(stage: Office, is_full: bool) -> None:
    seats = SEATS_FULL if is_full else SEATS
    show = await stage.a_show(seats=seats, price_minor=0, owner_seats_max=1000)
    (fan,), admin = await stage.fans(1), await an_admin(stage)
    shown = await tickets(fan, show, seats)
    gates = [await a_device(admin, show, f"Gate {n}") for n in range(GATES)]
    crowd = [ticket.code for ticket in shown for _ in range(COPIES)]
    random.Random(7).shuffle(crowd)

    (scans, void) = await asyncio.gather(
        asyncio.gather(*(walk(gate, crowd[n::GATES]) for n, gate in enumerate(gates))),
        give_back(fan, shown[::10]),
    )

    verdicts = Counter(verdict for walked in scans for _, verdict in walked)
    admitted = Counter(code for walked in scans for code, verdict in walked if verdict == "admitted")
    print(f"{len(crowd)} scans: {dict(verdicts)}, {void} given back")
    assert set(admitted.values()) == {1}
    assert len(admitted) + void == seats
    assert verdicts.keys() <= {"admitted", "used", "void"}
    rows = await stage.app.postgres.fetch(
        "SELECT count(*) FILTER (WHERE used_at IS NOT NULL) AS used,"
        " count(*) FILTER (WHERE voided_at IS NOT NULL) AS void FROM ticket WHERE show_id = $1",
        show,
    )
    assert (rows[0]["used"], rows[0]["void"]) == (len(admitted), void)
    (count,) = await stage.app.checkin.counts([show])
    assert (count.inside, count.conflicts) == (len(admitted), 0)
    assert sum(gate.admitted + gate.refused for gate in count.gates) == len(crowd)
    await stage.settled()


async def tickets(fan: Fan, show: int, seats: int) -> list[Shown]:
    found = []
    for _ in range(0, seats, 10):
        held = await fan.holds(show, best={"count": 10})
        assert held.status_code == 201, held.text
        booking = held.json()["booking_id"]
        pages = (await fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
        found += [Shown(booking, page["seat"], page["code"]) for page in pages]
    assert len(found) == seats
    return found


async def walk(gate: Fan, codes: list[str]) -> list[tuple[str, str]]:
    """One gate, one after the other."""
    scans = []
    for number, code in enumerate(codes):
        scans.append((code, await scanned(gate, f"{number}", code)))
    return scans


async def scanned(gate: Fan, scan_id: str, code: str) -> str:
    body = {"scan_id": scan_id, "code": code}
    answer: httpx2.Response = await gate.api.post(f"{API}/gate/check-ins", json=body, headers=gate.headers)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    return str(page.get("reason") or page["verdict"])


async def give_back(fan: Fan, some: Sequence[Shown]) -> int:
    """One seat after the other, while people walk in; how many were not used yet."""
    void = 0
    for ticket in some:
        answer = await fan.delete(f"/bookings/{ticket.booking}?seats={ticket.seat}")
        assert answer.status_code == 200 or answer.json()["code"] == "seats_used", answer.text
        void += answer.status_code == 200
    return void
