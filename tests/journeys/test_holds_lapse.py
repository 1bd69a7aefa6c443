"""R10: a hold ends on time, without a job, and every viewer sees it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.app import App
from tests.support.shows import Fan, problem

TTL_S = 2


@pytest.mark.alone
async def test_the_next_fan_has_the_seat_when_the_time_is_over_and_not_before(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    """No worker runs in these tests: the next request for the seat releases it."""
    show = await a_show(20, hold_ttl_s=TTL_S)
    before = time.monotonic()
    held = await alice.holds(show, "A-4", "A-5")
    after = time.monotonic()

    requested_s, answer = await _asks_until_held(bob, show)

    assert held.status_code == 201
    assert answer.json()["state"] == "held"
    assert requested_s - before >= TTL_S, "before its time was over"
    assert requested_s - after <= TTL_S + 0.3


@pytest.mark.alone
async def test_the_map_says_so_without_a_request_for_the_seat(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(20, hold_ttl_s=1)
    await alice.holds(show, "A-4")
    after = time.monotonic()
    held = (await bob.get(f"/shows/{show}/seats")).json()

    free_after_s = await _shown_as(bob, show, "A" * 20, since=after)

    now = (await bob.get(f"/shows/{show}/seats")).json()
    assert held["states"] == "AAAH" + "A" * 16
    assert 0.9 <= free_after_s <= 1 + 1.0
    assert now["version"] > held["version"]


async def test_an_expired_hold_cannot_be_extended_and_has_no_owner(
    alice: Fan, a_show: Callable[..., Any], app: App
) -> None:
    show = await a_show(20, hold_ttl_s=1)
    booking = (await alice.holds(show, "A-4")).json()["booking_id"]
    await asyncio.sleep(1.1)

    extended = await alice.post(f"/bookings/{booking}/extend")
    mine = (await alice.get(f"/shows/{show}/seats/mine")).json()
    await app.bookings.sweep(500)
    cancelled = await alice.delete(f"/bookings/{booking}")

    assert (extended.status_code, problem(extended)["code"]) == (410, "hold_gone")
    assert mine["seats"] == []
    assert (cancelled.status_code, problem(cancelled)["code"]) == (410, "hold_gone")
    assert (await alice.get(f"/bookings/{booking}")).json()["state"] == "expired"


async def test_a_retry_with_the_key_of_a_lapsed_hold_is_refused(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    """Not swept yet; the retry must neither revive it nor keep its seats from others."""
    show = await a_show(20, hold_ttl_s=1)
    await alice.holds(show, "A-4", key="lapses")
    await asyncio.sleep(1.15)

    again = await alice.holds(show, "A-4", key="lapses")
    others = await bob.holds(show, "A-4")

    assert (again.status_code, problem(again)["code"]) == (410, "hold_gone")
    assert others.status_code == 201


async def _asks_until_held(fan: Fan, show: int) -> tuple[float, Any]:
    """When the question that was answered with yes had been answered, and its answer."""
    async with asyncio.timeout(TTL_S + 2):
        while True:
            answer = await fan.holds(show, "A-4", "A-5")
            now = time.monotonic()
            if answer.status_code == 201:
                return now, answer
            assert problem(answer)["code"] == "seats_taken"
            await asyncio.sleep(0.01)


async def _shown_as(fan: Fan, show: int, states: str, *, since: float) -> float:
    """How long after `since` the map shows this."""
    async with asyncio.timeout(5):
        while True:
            if (await fan.get(f"/shows/{show}/seats")).json()["states"] == states:
                return time.monotonic() - since
            await asyncio.sleep(0.01)
