"""An invoice for each payment, a credit note for each refund, and numbers without a gap."""

import asyncio
import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.invoices import Invoices
from holdfast.invoices.invoices import credit_note_consumer
from holdfast.outbox.relay import ConsumerWorker
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.paid_bookings import refund_jobs
from tests.support.shows import Fan, problem

SELLER = {"name": "Rex Lichtspiele GmbH", "address": "Street 1\n12345 Testville", "tax_number": "DE 123"}


@pytest.fixture
async def organiser(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ORGANISER))[0]


@pytest.fixture
async def show(app: App, a_show: Callable[..., Any], organiser: Fan) -> int:
    """A show of an organiser with an own invoice sequence."""
    show_id = int(await a_show(40, owner_seats_max=40))
    await app.postgres.execute(
        "UPDATE event SET organiser_id = $1 WHERE id = (SELECT event_id FROM show WHERE id = $2)",
        organiser.account_id,
        show_id,
    )
    return show_id


async def bought(fan: Fan, show: int, *seats: str) -> str:
    booking = (await fan.holds(show, *seats)).json()["booking_id"]
    paid = await fan.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
    assert paid.status_code == 200, paid.text
    return str(booking)


async def test_a_paid_booking_always_returns_the_same_invoice(
    app: App, show: int, alice: Fan, organiser: Fan
) -> None:
    saved = await organiser.api.put("/api/v1/admin/invoices/seller", json=SELLER, headers=organiser.headers)
    booking = await bought(alice, show, "A-1", "A-2")

    first = await alice.get(f"/bookings/{booking}/invoice.pdf")
    again = await alice.get(f"/bookings/{booking}/invoice.pdf")

    assert (saved.status_code, first.status_code, again.status_code) == (200, 200, 200), first.text
    assert (first.headers["content-type"], first.content[:5]) == ("application/pdf", b"%PDF-")
    assert pages_in(first.content) == 1
    (paper,) = await papers(app, booking)
    assert (paper.serial, paper.seller.name, paper.amount_minor, paper.seats) == (
        1,
        SELLER["name"],
        3000,
        (0, 1),
    )
    assert sum(minor for _, minor in paper.lines) == paper.total_minor == 3000


async def test_a_refund_creates_a_credit_note_that_names_its_invoice(app: App, show: int, alice: Fan) -> None:
    booking = await bought(alice, show, "A-1", "A-2")
    (invoice,) = await papers(app, booking)

    given = await alice.delete(f"/bookings/{booking}?seats=A-2")
    await refund_jobs(app).carry_out()
    both = await papers(app, booking)

    assert given.status_code == 200, given.text
    assert [paper.serial for paper in both] == [1, 2]
    assert (both[0], both[1].credits, both[1].seats) == (invoice, 1, (1,))
    assert both[1].total_minor < 0
    assert both[1].title.startswith("Credit note")
    assert both[1].title.endswith(invoice.name)
    file = await alice.get(f"/bookings/{booking}/invoice.pdf")
    assert (file.status_code, pages_in(file.content)) == (200, 2)


async def test_a_refund_issues_its_credit_note_automatically(app: App, show: int, alice: Fan) -> None:
    booking = await bought(alice, show, "A-1", "A-2")
    group = f"invoices-{secrets.token_hex(4)}"
    await app.outbox.settle(1_000_000)
    await app.outbox.add_group(group, from_oldest=False)
    consumer_worker = ConsumerWorker(
        app.outbox, replace(credit_note_consumer(invoices_of(app)), group=group), app.config
    )
    query = (
        "SELECT serial, refund_id, credits FROM invoice WHERE show_id = $1 AND number = $2 ORDER BY serial"
    )

    before = await app.postgres.fetch(query, *from_public_id(booking))
    await alice.delete(f"/bookings/{booking}?seats=A-2")
    await refund_jobs(app).carry_out()
    await app.outbox.settle(1_000_000)
    while await consumer_worker.consume():
        pass
    await app.outbox.forget_group(group)

    assert before == []
    written = await app.postgres.fetch(query, *from_public_id(booking))
    assert [tuple(row) for row in written] == [(1, 0, None), (2, 1, 1)]
    assert len(await papers(app, booking)) == 2, "who asks later gets these, and no others"


async def test_numbers_have_no_gap_however_many_ask_at_once(app: App, show: int, alice: Fan) -> None:
    bookings = [await bought(alice, show, f"B-{n}") for n in range(1, 9)]
    one, another = invoices_of(app), invoices_of(app)

    places = [from_public_id(booking) for booking in bookings]
    found = await asyncio.gather(*(who.issue(*place) for place in places for who in (one, another)))

    serials = {
        place: {paper.serial for paper in papers}
        for place, papers in zip([place for place in places for _ in range(2)], found, strict=True)
    }
    assert sorted(serial for (serial,) in serials.values()) == list(range(1, 9))


async def test_an_invoice_is_private_and_a_hold_has_none(show: int, alice: Fan, bob: Fan) -> None:
    booking = await bought(alice, show, "C-1")
    held = (await alice.holds(show, "C-2")).json()["booking_id"]

    theirs = await bob.get(f"/bookings/{booking}/invoice.pdf")
    unpaid = await alice.get(f"/bookings/{held}/invoice.pdf")

    assert theirs.status_code == 404
    assert (unpaid.status_code, problem(unpaid)["code"]) == (409, "no_invoice")


async def test_an_invoice_is_never_changed(app: App, show: int, alice: Fan) -> None:
    booking = await bought(alice, show, "C-1")
    await papers(app, booking)
    show_id, number = from_public_id(booking)

    with pytest.raises(Exception, match="never changed"):
        await app.postgres.execute(
            "UPDATE invoice SET amount_minor = 1 WHERE show_id = $1 AND number = $2", show_id, number
        )


async def papers(app: App, booking: str) -> list[Any]:
    return list(await invoices_of(app).issue(*from_public_id(booking)))


def invoices_of(app: App) -> Invoices:
    """Those of a process of its own."""
    return Invoices(app.catalogue_home.postgres, app.postgres)


def pages_in(file: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", file))
