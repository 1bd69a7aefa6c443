"""R26 over HTTP: join, place, offer, decline, leave; and what the organiser sees."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.web.caller import Caller, Role
from tests.support.shows import Fan, fans, problem


@pytest.fixture
async def full(app: App, api: httpx2.AsyncClient, a_show: Callable[..., Any]) -> tuple[int, Fan, str]:
    """A show of four seats, the buyer who holds all of them, and the booking."""
    show, (buyer,) = await a_show(4), await fans(app, api, 1)
    held = await buyer.holds(show, "A-1", "A-2", "A-3", "A-4")
    return show, buyer, held.json()["booking_id"]


async def test_from_joining_to_the_tickets(
    app: App, alice: Fan, bob: Fan, full: tuple[int, Fan, str]
) -> None:
    show, buyer, booking = full
    joined = await alice.post(f"/shows/{show}/waitlist", {"seats": 2})
    second = await bob.post(f"/shows/{show}/waitlist", {"seats": 2, "together": False})

    await buyer.delete(f"/bookings/{booking}")
    await app.waitlists.steps.run(show)
    offered = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]
    paid = await alice.post(f"/bookings/{offered['offer']['booking_id']}/pay", {"method": "tok_ok"})
    await app.waitlists.steps.run(show)
    after = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]

    assert (joined.status_code, joined.json()["entry"]["place"]) == (201, 1)
    assert (second.json()["entry"]["place"], second.json()["entry"]["seats_ahead"]) == (2, 2)
    assert (offered["state"], len(offered["offer"]["seats"]), offered["offer"]["amount"]) == (
        *("offered", 2, 3000),
    )
    assert paid.status_code == 200, paid.text
    assert (after["state"], after["place"], after["offer"]) == ("taken", None, None)


async def test_a_declined_offer_goes_to_the_next_party(
    app: App, alice: Fan, bob: Fan, full: tuple[int, Fan, str]
) -> None:
    show, buyer, booking = full
    for fan in (alice, bob):
        await fan.post(f"/shows/{show}/waitlist", {"seats": 4})
    await buyer.delete(f"/bookings/{booking}")
    await app.waitlists.steps.run(show)
    offer = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]["offer"]["booking_id"]

    stranger = await bob.post(f"/waitlist/offers/{offer}/decline")
    declined = await alice.post(f"/waitlist/offers/{offer}/decline")
    next_one = (await bob.get(f"/shows/{show}/waitlist")).json()["entry"]
    again = await alice.post(f"/shows/{show}/waitlist", {"seats": 4})

    assert problem(stranger)["code"] == "no_such_booking"
    assert declined.json()["entry"]["state"] == "declined"
    assert next_one["offer"]["seats"] == ["A-1", "A-2", "A-3", "A-4"]
    assert again.status_code == 201


async def test_an_offer_cannot_be_extended_and_an_ordinary_hold_is_not_an_offer(
    app: App, alice: Fan, full: tuple[int, Fan, str]
) -> None:
    show, buyer, booking = full
    await alice.post(f"/shows/{show}/waitlist", {"seats": 4})
    no_offer = await buyer.post(f"/waitlist/offers/{booking}/decline")
    await buyer.delete(f"/bookings/{booking}")
    await app.waitlists.steps.run(show)
    offer = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]["offer"]["booking_id"]

    extended = await alice.post(f"/bookings/{offer}/extend")

    assert problem(no_offer)["code"] == "no_such_booking"
    assert problem(extended)["code"] == "extension_cap"


async def test_leaving_ends_the_wait_or_declines_the_offer(
    app: App, alice: Fan, bob: Fan, full: tuple[int, Fan, str]
) -> None:
    show, buyer, booking = full
    for fan in (alice, bob):
        await fan.post(f"/shows/{show}/waitlist", {"seats": 1})
    await buyer.delete(f"/bookings/{booking}")
    await app.waitlists.steps.run(show)

    left = await alice.delete(f"/shows/{show}/waitlist")
    gone = await alice.delete(f"/shows/{show}/waitlist")

    assert left.status_code == 204
    assert (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]["state"] == "declined"
    assert problem(gone)["code"] == "not_waiting"


async def test_a_party_that_need_not_wait_is_refused(
    alice: Fan, a_show: Callable[..., Any], full: tuple[int, Fan, str]
) -> None:
    free = await a_show(4)
    show, _, _ = full

    available = await alice.post(f"/shows/{free}/waitlist", {"seats": 2})
    await alice.post(f"/shows/{show}/waitlist", {"seats": 2})
    same = await alice.post(f"/shows/{show}/waitlist", {"seats": 2})
    another = await alice.post(f"/shows/{show}/waitlist", {"seats": 3})

    assert problem(available)["code"] == "seats_available"
    assert len(problem(available)["seats"]) == 2
    assert same.status_code == 200
    assert problem(another)["code"] == "already_waiting"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"seats": 0}, "seats"),
        ({"seats": 7}, "seats"),
        ({}, "seats"),
        ({"seats": 1, "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"seats": 1, "until": "2030-01-01T00:00:00"}, "until"),
        ({"seats": 1, "price_minor_max": -1}, "price_minor_max"),
        ({"seats": 1, "colour": "red"}, ""),
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused(
    alice: Fan, full: tuple[int, Fan, str], body: dict[str, Any], field: str
) -> None:
    refused = await alice.post(f"/shows/{full[0]}/waitlist", body)

    assert problem(refused)["code"] == "invalid"
    assert field in problem(refused)["field"]


async def test_unknown_categories_shows_and_people_are_refused(
    app: App, api: httpx2.AsyncClient, alice: Fan, full: tuple[int, Fan, str]
) -> None:
    show = full[0]
    unproved = Fan(
        alice.account_id,
        app.accounts.access_token(Caller(alice.account_id, Role.FAN, 7, is_verified=False)),
        api,
    )

    category = await alice.post(f"/shows/{show}/waitlist", {"seats": 1, "categories": ["Royal"]})
    nowhere = await alice.post("/shows/999999999/waitlist", {"seats": 1})
    stranger = await unproved.post(f"/shows/{show}/waitlist", {"seats": 1})

    assert problem(category)["code"] == "unknown_seat"
    assert problem(nowhere)["code"] == "no_such_show"
    assert problem(stranger)["code"] == "address_not_confirmed"


async def test_the_end_of_a_wait_is_not_later_than_the_end_of_the_sale(
    alice: Fan, full: tuple[int, Fan, str]
) -> None:
    late = (datetime.now(UTC) + timedelta(days=300)).isoformat()

    joined = await alice.post(f"/shows/{full[0]}/waitlist", {"seats": 1, "until": late})

    until = datetime.fromisoformat(joined.json()["entry"]["until"])
    assert until < datetime.now(UTC) + timedelta(days=2)


async def test_the_organiser_sees_the_list_in_pages(
    app: App, api: httpx2.AsyncClient, full: tuple[int, Fan, str]
) -> None:
    (show, buyer, booking), (admin,) = full, await fans(app, api, 1, Role.ADMIN)
    parties = await fans(app, api, 3)
    for count, fan in enumerate(parties, 3):
        await fan.post(f"/shows/{show}/waitlist", {"seats": count})
    await buyer.delete(f"/bookings/{booking}")
    await app.waitlists.steps.run(show)

    first = (await admin.get(f"/admin/shows/{show}/waitlist", size=2)).json()
    last = (await admin.get(f"/admin/shows/{show}/waitlist", after=first["next"])).json()
    waiting = (await admin.get(f"/admin/shows/{show}/waitlist", state="waiting")).json()

    assert [party["seats"] for party in first["parties"]] == [3, 4]
    assert first["parties"][0]["offer_seats"] == ["A-1", "A-2", "A-3"]
    assert first["parties"][0]["email"].endswith("@example.com")
    assert [party["seats"] for party in last["parties"]] == [5]
    assert last["next"] is None
    assert (first["counts"]["waiting"], first["counts"]["offered"]) == (2, 1)
    assert first["reserved_seats"] == ["A-4"]
    assert len(waiting["parties"]) == 2
    assert (await parties[0].get(f"/admin/shows/{show}/waitlist")).status_code == 403


async def test_tickets_are_sold_back_over_http(
    app: App, alice: Fan, bob: Fan, full: tuple[int, Fan, str]
) -> None:
    show, buyer, booking = full
    await buyer.post(f"/bookings/{booking}/pay", {"method": "tok_ok"})
    none_yet = await buyer.get(f"/bookings/{booking}/return")
    returned = await buyer.post(f"/bookings/{booking}/return", {"seats": ["A-1", "A-2"]})
    withdrawn = await buyer.delete(f"/bookings/{booking}/return")
    again = await buyer.post(f"/bookings/{booking}/return")
    stranger = await bob.delete(f"/bookings/{booking}/return")
    unknown = await buyer.post(f"/bookings/{booking}/return", {"seats": ["Z-9"]})
    await alice.post(f"/shows/{show}/waitlist", {"seats": 2})
    await app.waitlists.steps.run(show)
    await app.waitlists.steps.run(show)
    offered = (await alice.get(f"/shows/{show}/waitlist")).json()["entry"]

    assert problem(none_yet)["code"] == "no_such_return"
    assert (returned.json()["amount"], returned.json()["seats"]) == (3000, ["A-1", "A-2"])
    assert withdrawn.status_code == 204
    assert again.json()["amount"] == 6000
    assert problem(stranger)["code"] == "no_such_booking"
    assert problem(unknown)["code"] == "unknown_seat"
    assert len(offered["offer"]["seats"]) == 2
