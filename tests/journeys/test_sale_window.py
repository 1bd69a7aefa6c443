"""R5: a sale opens and closes by itself, on time, whichever processes are running."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.shows import Fan, problem


async def test_before_it_opens_nothing_is_held(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, opens_in_s=3600)

    refused = await alice.holds(show, "A-4")

    assert (refused.status_code, problem(refused)["code"]) == (403, "not_on_sale")
    assert problem(refused)["opens_at"]
    assert (await alice.get(f"/shows/{show}/seats")).json()["states"] == "A" * 20


@pytest.mark.alone
async def test_it_opens_by_itself_and_not_before(alice: Fan, a_show: Callable[..., Any]) -> None:
    began = time.monotonic()
    show = await a_show(20, opens_in_s=1.2)
    async with asyncio.timeout(5):
        while (answer := await alice.holds(show, "A-4")).status_code != 201:
            assert problem(answer)["code"] == "not_on_sale"
            await asyncio.sleep(0.02)

    assert 1.19 <= time.monotonic() - began <= 1.8


@pytest.mark.alone
async def test_it_closes_by_itself(alice: Fan, bob: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20, closes_in_s=1.0)
    held = await alice.holds(show, "A-4")
    await asyncio.sleep(1.1)

    refused = await bob.holds(show, "A-5")

    assert held.status_code == 201
    assert (refused.status_code, problem(refused)["code"]) == (403, "not_on_sale")
    assert (await alice.get(f"/bookings/{held.json()['booking_id']}")).json()["state"] == "held"
