"""R9, R13, R14: one wins, the others get the taken seats and free alternatives."""

from collections.abc import Callable
from typing import Any

from tests.support.shows import Fan, problem


async def test_the_first_holds_it(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(50)

    held = await alice.holds(show, "C-4", "C-5")

    assert held.status_code == 201, held.text
    booking = held.json()
    assert booking["state"] == "held"
    assert [seat["label"] for seat in booking["seats"]] == ["C-4", "C-5"]
    assert booking["amount"] == 3000


async def test_the_second_gets_the_taken_seats_and_alternatives(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(50)
    await alice.holds(show, "C-4", "C-5")
    await bob.get(f"/shows/{show}/seats")

    refused = await bob.holds(show, "C-5", "C-6")

    assert refused.status_code == 409
    body = problem(refused)
    assert body["code"] == "seats_taken"
    assert body["taken"] == ["C-5"]
    assert 1 <= len(body["alternatives"]) <= 3
    assert all(len(group) == 2 for group in body["alternatives"])
