"""`kill -9` in the middle of a sale: no promise is lost, nothing is sold twice, and it goes on (R19)."""

import asyncio
import time
from functools import partial

import pytest

from holdfast.engines.errors import EngineDown
from tests.support.box_office import Office
from tests.support.shows import API, Fan
from tests.support.storm_shows import (
    a_programme,
    assert_promises_hold,
    first_sale_after,
    on_sale,
    sold_between,
)
from tests.support.wait import until

SELLS_AGAIN_WITHIN_S = 10.0
AWAY_S = 4.0
KILLS, KILLS_FULL = 2, 10


@pytest.mark.parametrize("who", ["valkey", "a web worker", "postgres", "valkey and postgres"])
async def test_a_killed_process_takes_no_promise_with_it(stage: Office, who: str, is_full: bool) -> None:
    programme = await a_programme(stage)
    moments = []

    async with on_sale(stage, programme) as crowd:
        for round in range(KILLS_FULL if is_full else KILLS):
            # All clients use the surviving worker now: kill that one next.
            names = [f"web-{round % 2 + 1}"] if who == "a web worker" else who.split(" and ")
            killed_at = time.monotonic()
            killed = {name: stage.kill(name) for name in names}
            returned_at = max([await stage.back(name, after=before) for name, before in killed.items()])
            moments.append((killed_at, returned_at))
            await crowd.held(crowd.progress.held + 300)
        crowd.go_home()
        storm = await crowd.report()

    for killed_at, returned_at in moments:
        print(
            f"{who}: back {returned_at - killed_at:.2f} s after the kill, "
            f"next sale {first_sale_after(storm, returned_at):.2f} s later"
        )
    assert max(first_sale_after(storm, returned) for _, returned in moments) < SELLS_AGAIN_WITHIN_S
    await assert_promises_hold(stage, programme, storm)


async def test_the_sale_continues_without_valkey_and_uses_it_again_by_itself(stage: Office) -> None:
    programme = await a_programme(stage)
    switch = stage.folder.run / "valkey.hold"

    async with on_sale(stage, programme) as crowd:
        switch.touch()
        try:
            killed_at = time.monotonic()
            killed = stage.kill("valkey")
            await asyncio.sleep(AWAY_S)
            released_at = time.monotonic()
        finally:
            switch.unlink()
        returned_at = await stage.back("valkey", after=killed)
        for show_id in programme.shows:
            await until(partial(sells_from_redis, stage, show_id), within_s=SELLS_AGAIN_WITHIN_S)
        await crowd.held(crowd.progress.held + 300)
        crowd.go_home()
        storm = await crowd.report()

    meanwhile = sold_between(storm, killed_at + 0.5, released_at)
    print(
        f"without valkey {meanwhile / (released_at - killed_at - 0.5):.0f} holds/s, the first after "
        f"{first_sale_after(storm, killed_at):.2f} s; "
        f"and {first_sale_after(storm, returned_at):.2f} s after its return"
    )
    assert meanwhile > 50
    await assert_promises_hold(stage, programme, storm)


async def test_a_retry_while_the_ledger_is_away_does_not_give_the_seat_away(stage: Office) -> None:
    """The claim of the first try stays: its booking is in the ledger, though it cannot be read."""
    show = await stage.a_show(seats=20)
    (fan,) = await stage.fans(1)
    held = await fan.holds(show, "A-1", key="once")
    switch = stage.folder.run / "postgres.hold"
    switch.touch()
    try:
        killed = stage.kill("postgres")
        await until(partial(ledger_is_away, fan), within_s=SELLS_AGAIN_WITHIN_S)
        retried = await fan.holds(show, "A-1", key="once")
        other = await fan.holds(show, "A-2")
        seats = await stage.api.get(f"{API}/shows/{show}/seats")
    finally:
        switch.unlink()
    await stage.back("postgres", after=killed)
    await until(partial(holds_again, fan, show), within_s=SELLS_AGAIN_WITHIN_S)
    again = await fan.holds(show, "A-1", key="once")

    assert (held.status_code, retried.status_code, other.status_code) == (201, 503, 503)
    assert "retry-after" in retried.headers
    assert (seats.status_code, seats.json()["states"][:3]) == (200, "HAA")
    assert again.content == held.content
    await stage.settled()


async def ledger_is_away(fan: Fan) -> bool:
    """Its processes outlive a killed parent by a moment, and answer until then."""
    return (await fan.get("/bookings")).status_code == 503


async def holds_again(fan: Fan, show_id: int) -> bool:
    return (await fan.holds(show_id, "B-1", key="first-to-come")).status_code == 201


async def sells_from_redis(stage: Office, show_id: int) -> bool:
    """Its map there is of this server's own making, and the ledger trusts it."""
    sale = await stage.app.bookings.sale(show_id)
    try:
        epoch, is_ours = await stage.app.claims.epoch(show_id)
    except EngineDown:  # our own links are to the server that was killed; the next one is new
        return False
    return sale is not None and is_ours and epoch == sale.epoch and not sale.map_stale
