"""R33 and rule 10 of the seam: seats kept back are under the same key as bookings."""

from collections.abc import Callable
from typing import Any

import httpx2

from holdfast.app import Box
from holdfast.people import Role
from tests.cast import Fan, fans, problem


async def test_a_blocked_seat_cannot_be_held_until_it_is_given_back(
    box: Box, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(50), await fans(box, api, 1, Role.ADMIN)

    blocked = await admin.post(f"/admin/shows/{show}/blocks", {"seats": ["A-1", "A-2"], "name": "press"})
    refused = await alice.holds(show, "A-2", "A-3")
    seats = await alice.get(f"/shows/{show}/seats")
    freed = await admin.delete(f"/admin/shows/{show}/blocks/{blocked.json()['block_id']}")
    held = await alice.holds(show, "A-2", "A-3")

    assert blocked.status_code == 201, blocked.text
    assert problem(refused)["taken"] == ["A-2"]
    assert seats.json()["states"].startswith("XXA")
    assert freed.json()["seats"] == ["A-1", "A-2"]
    assert held.status_code == 201


async def test_a_held_seat_is_not_taken_away_by_a_block(
    box: Box, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (admin,) = await a_show(50), await fans(box, api, 1, Role.ADMIN)
    await alice.holds(show, "B-1")

    refused = await admin.post(f"/admin/shows/{show}/blocks", {"seats": ["B-1", "B-2"], "name": "press"})

    assert refused.status_code == 409
    assert problem(refused)["taken"] == ["B-1"]
    assert (await admin.get(f"/admin/shows/{show}/blocks")).json()["blocks"] == []


async def test_another_organisers_show_is_not_there(
    box: Box, api: httpx2.AsyncClient, alice: Fan, a_show: Callable[..., Any]
) -> None:
    show, (stranger,) = await a_show(50), await fans(box, api, 1, Role.ORGANISER)

    assert (await stranger.get(f"/admin/shows/{show}/blocks")).status_code == 404
    assert (await alice.get(f"/admin/shows/{show}/blocks")).status_code == 403
