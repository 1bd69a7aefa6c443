"""A crowd at many doors, over HTTP, on two workers: everybody in once, copies stay outside (R30, S11)."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.people import Caller, Role
from tests.cast import API, Fan
from tests.storms.office import Office, office

SEATS, SEATS_FULL = 150, 1_000
GATES = 6
COPIES = 3  # of every ticket: two friends have a picture of it


@pytest.fixture
async def doors() -> AsyncIterator[Office]:
    """An office of its own: a ticket voided without its booking is what an audit complains of."""
    async with office() as opened:
        yield opened


async def test_everybody_comes_in_once_whatever_is_copied_and_given_back(
    doors: Office, is_full: bool
) -> None:
    stage = doors
    seats = SEATS_FULL if is_full else SEATS
    show = await stage.a_show(seats=seats, price_minor=0, owner_seats_max=1000)
    (fan,) = await stage.fans(1)
    codes = await tickets(stage, fan, show, seats)
    gates = [await a_gate(stage, show, f"Gate {n}") for n in range(GATES)]
    crowd = [code for code in codes for _ in range(COPIES)]
    random.Random(7).shuffle(crowd)

    (said, void) = await asyncio.gather(
        asyncio.gather(*(walk(gate, crowd[n::GATES]) for n, gate in enumerate(gates))),
        give_back(stage, show, every=10),
    )

    verdicts = Counter(verdict for walked in said for _, verdict in walked)
    admitted = Counter(code for walked in said for code, verdict in walked if verdict == "admitted")
    print(f"{len(crowd)} scans: {dict(verdicts)}, {void} given back")
    assert set(admitted.values()) == {1}
    assert len(admitted) + void == seats
    assert verdicts.keys() <= {"admitted", "used", "void"}
    rows = await stage.box.postgres.fetch(
        "SELECT count(*) FILTER (WHERE used_at IS NOT NULL) AS used,"
        " count(*) FILTER (WHERE voided_at IS NOT NULL) AS void FROM ticket WHERE show_id = $1",
        show,
    )
    assert (rows[0]["used"], rows[0]["void"]) == (len(admitted), void)
    (count,) = await stage.box.gate.counts([show])
    assert (count.inside, count.conflicts) == (len(admitted), 0)
    assert sum(gate.admitted + gate.refused for gate in count.gates) == len(crowd)


async def tickets(stage: Office, fan: Fan, show: int, seats: int) -> list[str]:
    for _ in range(0, seats, 10):
        held = await fan.holds(show, best={"count": 10})
        assert held.status_code == 201, held.text
    found = await stage.box.tickets.of_owner(fan.account_id, "", before=2**62, limit=seats)
    assert len(found) == seats
    return [await stage.box.tickets.fixed_code(ticket) for ticket in found]


async def a_gate(stage: Office, show: int, gate: str) -> Fan:
    now = datetime.now(UTC)
    times = {"starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(hours=5)}
    body: dict[str, Any] = {"shows": [show], "gate": gate}
    (admin_id,) = [fan.account_id for fan in await stage.fans(1)]
    admin = Fan(admin_id, stage.box.people.access_token(Caller(admin_id, Role.ADMIN, 1)), stage.api)
    made = await admin.post("/admin/gate-passes", body | {k: v.isoformat() for k, v in times.items()})
    assert made.status_code == 201, made.text
    account_id = await stage.box.postgres.fetchval(
        "SELECT account_id FROM gate_pass WHERE id = $1", made.json()["gate_pass"]["pass_id"]
    )
    return Fan(account_id, stage.box.people.access_token(Caller(account_id, Role.GATE, 0)), stage.api)


async def walk(gate: Fan, codes: list[str]) -> list[tuple[str, str]]:
    """One gate, one after the other."""
    said = []
    for number, code in enumerate(codes):
        said.append((code, await scanned(gate, f"{number}", code)))
    return said


async def scanned(gate: Fan, scan_id: str, code: str) -> str:
    body = {"scan_id": scan_id, "code": code}
    answer: httpx2.Response = await gate.api.post(f"{API}/gate/check-ins", json=body, headers=gate.headers)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    return str(page.get("reason") or page["verdict"])


async def give_back(stage: Office, show: int, *, every: int) -> int:
    """Some of the tickets, as a refund does it, while people walk in."""
    rows = await stage.box.postgres.fetch("SELECT serial FROM ticket WHERE show_id = $1", show)
    void = 0
    for row in rows[::every]:
        done = await stage.box.postgres.execute(
            "UPDATE ticket SET voided_at = now()"
            " WHERE show_id = $1 AND serial = $2 AND used_at IS NULL AND voided_at IS NULL",
            show,
            row["serial"],
        )
        void += done == "UPDATE 1"
        await asyncio.sleep(0.01)
    return void
