"""General admission: so many places of an area, whichever they are."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.app import App
from tests.support import shows as cast
from tests.support.shows import Fan, a_layout, problem


async def test_places_are_held_by_number(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(layout=a_layout(10, standing=20))

    held = await alice.holds(show, places={"area": "Floor", "count": 3})

    assert held.status_code == 201, held.text
    assert [seat["label"] for seat in held.json()["seats"]] == ["Floor-1", "Floor-2", "Floor-3"]
    assert held.json()["amount"] == 4500


async def test_a_crowd_gets_every_place_once(alice: Fan, a_show: Callable[..., Any], app: App) -> None:
    show = await a_show(layout=a_layout(0, standing=30))
    crowd = await cast.fans(app, alice.api, 20)

    holds = [fan.holds(show, places={"area": "Floor", "count": 2}) for fan in crowd]
    answers = await asyncio.gather(*holds)

    held = [
        seat["label"] for answer in answers if answer.status_code == 201 for seat in answer.json()["seats"]
    ]
    assert len(held) == len(set(held)) == 30
    assert [problem(a)["code"] for a in answers if a.status_code != 201] == ["sold_out"] * 5


async def test_more_than_are_left_are_refused_and_none_is_held(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(layout=a_layout(2, standing=5))
    await alice.holds(show, places={"area": "Floor", "count": 3})

    refused = await bob.holds(show, places={"area": "Floor", "count": 3})

    assert (refused.status_code, problem(refused)["code"]) == (409, "sold_out")
    assert problem(refused)["free"] == 2
    assert (await bob.holds(show, places={"area": "Floor", "count": 2})).status_code == 201


async def test_a_released_place_can_be_held_again(alice: Fan, bob: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(layout=a_layout(2, standing=4))
    first = (await alice.holds(show, places={"area": "Floor", "count": 4})).json()
    await alice.delete(f"/bookings/{first['booking_id']}")

    assert (await bob.holds(show, places={"area": "Floor", "count": 4})).status_code == 201


async def test_an_unknown_area_is_refused_with_the_known_ones(alice: Fan, a_show: Callable[..., Any]) -> None:
    refused = await alice.holds(
        await a_show(layout=a_layout(2, standing=4)), places={"area": "Balcony", "count": 1}
    )

    assert (refused.status_code, problem(refused)["code"]) == (422, "unknown_seat")
    assert problem(refused)["known"] == ["Floor"]
