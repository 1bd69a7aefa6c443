"""Every subject in a process of its own, each restarted while people buy: nothing is lost (R37)."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx2
import pytest

from holdfast.runtime import subjects as roles
from holdfast.web.audiences import DOCUMENTS
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.gates import a_device
from tests.support.retrying_payer import Payer
from tests.support.roles_office import FIRST, Parts, in_parts
from tests.support.shows import API, Fan, problem

SERVED = ("sale", "seatmap", "catalogue", "accounts", "tickets", "gate", "admin")  # payments: parts.py
WORKED = ("sale", "payments", "outbox")
PEOPLE, PEOPLE_FULL = 3, 40
AT_ONCE = 4  # restarted together
PASSWORD = "a long enough password"


@pytest.fixture(scope="module")
async def town() -> AsyncIterator[Parts]:
    others = ",".join(name for name in roles.SERVED if name not in (*SERVED, FIRST))
    other_jobs = ",".join(name for name in roles.WORKED if name not in WORKED)
    async with in_parts((*SERVED, others), (*WORKED, other_jobs)) as parts:
        yield parts


async def test_a_purchase_goes_through_all_of_them(town: Parts) -> None:
    show = await town.office.a_show(seats=20)
    admin, *_ = await cast.fans(town.office.app, town.office.api, 1, Role.ADMIN)
    device = await a_device(admin, show)

    ticket = await buys(await signed_up(town), show)
    scanned = await device.post("/gate/check-ins", {"scan_id": "first", "code": ticket["code"]})

    assert scanned.json()["verdict"] == "admitted", scanned.text
    assert town.router.requests.keys() >= {"accounts", "catalogue", "seatmap", "sale", "payments", "tickets"}
    assert town.router.requests.keys() >= {"admin", "gate"}


async def test_a_process_refuses_routes_it_does_not_serve(town: Parts) -> None:
    async with httpx2.AsyncClient(base_url=town.part("seatmap").url) as seatmap:
        elsewhere = await seatmap.post(f"{API}/shows/1/holds", json={"seats": ["A-1"]})
        nowhere = await seatmap.get(f"{API}/nothing")
        about = [await seatmap.get(path) for path in ("/healthz", "/readyz", "/metrics", "/docs")]
        documents = [(await seatmap.get(about.path)).json() for about in DOCUMENTS.values()]

    assert (elsewhere.status_code, problem(elsewhere)["code"]) == (404, "served_elsewhere")
    assert problem(elsewhere)["served_as"] == "sale"
    assert problem(nowhere)["code"] == "no_such_route"
    assert [answer.status_code for answer in about] == [200] * 4
    assert "/shows/{show}/holds" in documents[0]["paths"]
    assert all("/shows/{show}/holds" not in document["paths"] for document in documents[1:])


async def test_every_role_can_restart_during_a_sale_without_loss(town: Parts, is_full: bool) -> None:
    show = await town.office.a_show(seats=1000, owner_seats_max=1000)
    people = [Payer(fan) for fan in await town.office.fans(PEOPLE_FULL if is_full else PEOPLE)]
    over = asyncio.Event()

    buying = [asyncio.create_task(buys_on(payer, show, over)) for payer in people]
    for first in range(0, len(town.parts), AT_ONCE):
        await asyncio.gather(*(part.restart() for part in town.parts[first : first + AT_ONCE]))
    over.set()
    bought = [ticket for tickets in await asyncio.gather(*buying) for ticket in tickets]

    answers = [answer.status_code for payer in people for answer in payer.answers]
    print(f"{len(bought)} tickets, {len(answers)} answers, of them {answers.count(503)} times 503")
    assert len(bought) >= len(people)
    assert {status for status in answers if status >= 500} <= {503}
    assert len({ticket["seat"] for ticket in bought}) == len(bought)
    stored = await town.office.app.postgres.fetchval(
        "SELECT count(*) FROM booking WHERE show_id = $1 AND state = 'confirmed'", show
    )
    assert stored == len(bought)
    await town.office.settled()


async def signed_up(town: Parts) -> Fan:
    address = f"{secrets.token_hex(6)}@example.com"
    body = {"email": address, "password": PASSWORD, "name": "Ada"}
    made = await town.office.api.post(f"{API}/accounts", json=body)
    assert made.status_code == 201, made.text
    return Fan(0, made.json()["access_token"], town.office.api)


async def buys_on(payer: Payer, show: int, over: asyncio.Event) -> list[dict[str, Any]]:
    """One ticket after the other until all is over; at least one."""
    bought = [await buys(payer.fan, show, payer)]
    while not over.is_set():
        bought.append(await buys(payer.fan, show, payer))
    return bought


async def buys(fan: Fan, show: int, payer: Payer | None = None) -> dict[str, Any]:
    """Look, hold, pay, and fetch the ticket, as a good client does: it retries after "not now"."""
    payer = payer or Payer(fan)
    key = secrets.token_hex(8)
    paths = ("/me", f"/shows/{show}", f"/shows/{show}/seats")
    looked = [await payer.asks(partial(fan.get, path)) for path in paths]
    held = await payer.asks(lambda: fan.holds(show, key=key, best={"count": 1}))
    assert [answer.status_code for answer in (*looked, held)] == [200, 200, 200, 201], held.text
    booking = held.json()["booking_id"]
    paid = await payer.pays(booking, "tok_twice")
    assert (paid.status_code, paid.json()["state"]) == (200, "confirmed"), paid.text
    found = await payer.asks(lambda: fan.get(f"/bookings/{booking}/tickets"))
    (ticket,) = found.json()["tickets"]
    return dict(ticket)
