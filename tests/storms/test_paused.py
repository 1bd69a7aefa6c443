"""A web worker stands still for longer than a hold lasts, and goes on as if nothing had happened (R17)."""

import asyncio
import os
import signal

from tests.support.box_office import Office
from tests.support.promise_check import lost, shared_seats, untrue_deeds
from tests.support.shows import a_layout
from tests.support.storm_requests import best, neighbours

TTL_S = 2
STILL_S = TTL_S + 0.4
ROUNDS, ROUNDS_FULL = 2, 12
CONNECTIONS = 80


async def test_a_paused_worker_does_not_apply_stale_decisions_to_other_bookings(
    stage: Office, is_full: bool
) -> None:
    hall, club = a_layout(300), a_layout(8_000, row=40)
    show = await stage.a_show(layout=hall, hold_ttl_s=TTL_S, owner_seats_max=1000)
    free = await stage.a_show(layout=club, hold_ttl_s=TTL_S, owner_seats_max=1000, price_minor=0)
    people = await stage.fans(CONNECTIONS)
    wishes = [*neighbours(show, hall, 600, sizes=(1, 2, 3)), *[best(show, 2)] * 200, *[best(free, 1)] * 50]

    async with stage.crowd(
        people,
        wishes,
        connections=CONNECTIONS,
        seconds_max=120,
        pause_s=0.02,
        extends=0.5,
        cancels=0.5,
    ) as crowd:
        await crowd.held(100)
        for _ in range(ROUNDS_FULL if is_full else ROUNDS):
            await still_for(stage.process_id("web-1"), STILL_S)
            await crowd.held(crowd.progress.held + 100)
        crowd.go_home()
        storm = await crowd.report()

    done = [(deed.what, deed.status) for deed in storm.deeds]
    print(
        f"{len(storm.promises)} holds, {done.count(('extend', 200))} extended, "
        f"{done.count(('cancel', 200))} released, the longest took {storm.max_ms:.0f} ms; "
        f"{storm.statuses} {storm.codes}"
    )
    assert not storm.broken, (storm.broken, stage.last_words())
    assert storm.max_ms > TTL_S * 1000, "no client was on the worker that stood still"
    assert await shared_seats(stage, [show, free]) == []
    assert await lost(stage, storm.promises, people) == []
    assert await untrue_deeds(stage, storm, [show, free]) == []
    await stage.settled()


async def still_for(process_id: int, seconds: float) -> None:
    os.kill(process_id, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(process_id, signal.SIGCONT)
