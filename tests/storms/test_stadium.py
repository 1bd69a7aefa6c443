"""A stadium is sold by best available, in pairs, until no pair is left (R9, R12)."""

import time

from holdfast.demo.halls import stadium
from holdfast.layouts import Layout
from tests.support.box_office import Office
from tests.support.promise_check import lost, seats_taken
from tests.support.shows import API, a_layout
from tests.support.storm_requests import best

CONNECTIONS = 200
REBUILT_WITHIN_S = 2.0  # with a plan made for a show of one booking it was 38


async def test_a_stadium_is_filled_in_pairs_to_the_last(stage: Office, is_full: bool) -> None:
    layout = Layout.build(stadium()) if is_full else a_layout(10_000, row=26)
    await stage.app.postgres.execute("ANALYZE")  # statistics of a time before this show
    show = await stage.a_show(layout=layout, owner_seats_max=1000, hold_ttl_s=1800)
    people = await stage.fans(CONNECTIONS)

    storm = await stage.storm(
        people, [best(show, 2)], connections=CONNECTIONS, ends_with="sold_out", seconds_max=600
    )

    print(
        f"{len(storm.promises)} pairs in {storm.seconds:.1f} s "
        f"({len(storm.promises) / storm.seconds:.0f}/s): "
        f"p50 {storm.p50_ms:.0f} ms, p99 {storm.p99_ms:.0f} ms"
    )
    assert set(storm.statuses) == {"201", "409"}, storm.statuses
    assert set(storm.codes) == {"sold_out"}, storm.codes
    taken = await seats_taken(stage, show)
    assert sorted(layout.index_of[seat] for promise in storm.promises for seat in promise.seats) == taken
    assert neighbours_left(layout, set(taken)) == []
    assert await lost(stage, storm.promises, people) == []
    await stage.settled()

    await stage.app.redis.call("FLUSHALL")
    began = time.monotonic()
    page = (await stage.api.get(f"{API}/shows/{show}/seats")).json()
    rebuilt_s = time.monotonic() - began
    print(f"its map was rebuilt in {rebuilt_s:.2f} s")
    assert [seat for seat, letter in enumerate(page["states"]) if letter == "H"] == taken
    assert rebuilt_s < REBUILT_WITHIN_S
    await stage.settled()


def neighbours_left(layout: Layout, taken: set[int]) -> list[tuple[str, str]]:
    """Two free seats side by side."""
    return [
        (layout.labels[seat], layout.labels[seat + 1])
        for run in layout.runs
        for seat in range(run.start, run.start + run.length - 1)
        if seat not in taken and seat + 1 not in taken
    ]
