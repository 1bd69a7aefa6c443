"""A show that costs nothing is booked by holding it: no payment, no waiting, no end."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.support.shows import Fan, problem


async def test_a_free_seat_is_confirmed_at_once(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, price_minor=0)

    booked = (await alice.holds(show, "A-4", "A-5")).json()

    assert (booked["state"], booked["amount"]) == ("confirmed", 0)
    assert booked.get("expires_at") is None
    assert booked["confirmed_at"] is not None


async def test_the_map_shows_it_as_booked(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, price_minor=0)
    await alice.holds(show, "A-4")

    page = (await alice.get(f"/shows/{show}/seats")).json()

    assert page["states"] == "AAAB" + "A" * 16
    assert page["counts"] == [{"category": "Standard", "A": 19, "H": 0, "B": 1, "X": 0}]


async def test_it_stays_booked_when_its_hold_would_have_ended(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(20, price_minor=0, hold_ttl_s=1)
    await alice.holds(show, "A-4")
    await asyncio.sleep(1.2)

    refused = await bob.holds(show, "A-4")

    assert (refused.status_code, problem(refused)["code"]) == (409, "seats_taken")


async def test_a_returned_free_seat_can_be_held_again(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(20, price_minor=0)
    booked = (await alice.holds(show, "A-4")).json()

    given_back = await alice.delete(f"/bookings/{booked['booking_id']}")

    assert (given_back.status_code, given_back.json()["state"]) == (200, "refunded")
    assert (await bob.holds(show, "A-4")).status_code == 201


async def test_the_limit_counts_booked_seats(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, price_minor=0, owner_seats_max=3)
    await alice.holds(show, "A-4", "A-5")

    refused = await alice.holds(show, "A-6", "A-7")

    assert (refused.status_code, problem(refused)["code"]) == (409, "over_limit")


async def test_the_same_key_books_once(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, price_minor=0)

    first = (await alice.holds(show, best={"count": 2}, key="free")).json()
    again = (await alice.holds(show, best={"count": 2}, key="free")).json()

    assert again["booking_id"] == first["booking_id"]
    assert again["state"] == "confirmed"
    assert (await alice.get(f"/shows/{show}/seats")).json()["states"].count("B") == 2
