"""The replay of a sale from the ledger: the same map at every moment, few rows, bounded memory (R13, R33)."""

import asyncio
import random
import tracemalloc

import msgspec
import pytest

from holdfast.app import App
from holdfast.holds import SeatsTaken, SoldOut
from holdfast.replay.encoding import EventKind, decode
from holdfast.replay.page import render_file
from holdfast.site.templates_env import localiser_for
from tests.support.own_engines import hold
from tests.support.replayed_sale import SaleMaker, load_states, play
from tests.support.show_fixture import a_till, an_owner
from tests.support.shows import a_layout, a_show

SEATS = 60
STADIUM = 50_000
# Of a stadium: every second hold lapses, the others are paid for; some 100 000 moves.
BOOKINGS = """
INSERT INTO booking (show_id, number, owner_id, fence, state, request_id, body_hash, claim_id, seats,
                     prices_minor, amount_minor, currency, opened_at, expires_at, confirmed_at)
SELECT $1, i, 1, 1, (CASE WHEN i % 2 = 0 THEN 'expired' ELSE 'confirmed' END)::booking_state, 'r' || i, 0,
       'c' || i, ARRAY[seat, seat + 1], '{1500,1500}', 3000, 'EUR', now(), now(),
       CASE WHEN i % 2 = 1 THEN now() END
  FROM generate_series(1, 50000) AS i, LATERAL (SELECT (i * 7919 % 24999) * 2 AS seat) AS s
"""
MOVES = """
INSERT INTO booking_move (show_id, number, move, state, fence, at)
SELECT $1, i, m.move, m.state::booking_state, 1, now() - interval '1 hour' + i * interval '20 ms' + m.after
  FROM generate_series(1, 50000) AS i,
       LATERAL (VALUES ('hold', 'held', interval '0'),
                       (CASE WHEN i % 2 = 0 THEN 'expire' ELSE 'confirm' END,
                        CASE WHEN i % 2 = 0 THEN 'expired' ELSE 'confirmed' END, interval '10 ms'))
                AS m (move, state, after)
ORDER BY i, m.after
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_at_every_moment_the_map_is_that_of_the_ledger(app: App, seed: int) -> None:
    """The oracle is the ledger itself, read after every step of a sale with every kind of move."""
    till = await a_till(app, SEATS)
    sale = SaleMaker(till, SEATS, random.Random(seed))
    await sale.run(60)

    replay = await app.replays.build(till.show)

    began_us = round(replay.sale.figures.began_at.timestamp() * 1_000_000)
    compared = 0
    for place, (at_us, states) in enumerate(sale.moments):
        at_ms = max(0, at_us - began_us) // 1000
        later = [one for one, _ in sale.moments[place + 1 :]]
        if later and max(0, later[0] - began_us) // 1000 <= at_ms:
            continue  # in the same millisecond: not distinguished
        assert play(replay.sale.events, SEATS, at_ms) == states, place
        compared += 1
    assert compared > 20
    last = await load_states(till, SEATS)
    figures = replay.sale.figures
    assert [figures.free, figures.held, figures.sold, figures.blocked] == [last.count(n) for n in range(4)]
    assert not replay.sale.is_cut
    # Refunds count their owners down themselves.
    assert [one for one in await till.violations() if "owner" not in one] == []


async def test_moves_older_than_the_record_of_their_seats_end_in_the_right_map(app: App) -> None:
    till = await a_till(app, SEATS)
    sale = SaleMaker(till, SEATS, random.Random(4))
    await sale.run(20)
    await app.postgres.execute("UPDATE booking_move SET seats = NULL WHERE show_id = $1", till.show)

    events = (await app.replays.build(till.show)).sale.events

    taken = {seat for seat, state in enumerate(await load_states(till, SEATS)) if state}
    assert taken <= {seat for seat, state in enumerate(play(events, SEATS, 1e15)) if state}


class TestDemand:
    async def test_refused_seats_are_counted_and_stored_in_one_row(self, app: App) -> None:
        show = await a_show(app, 4)
        await hold(app, show, an_owner(), 0, 1)
        await hold(app, show, an_owner(), 2, 3)
        for _ in range(5):
            with pytest.raises(SeatsTaken):
                await hold(app, show, an_owner(), 1, 2)
        await app.demand.flush(all_of_them=True)

        rows = await app.postgres.fetch("SELECT * FROM seat_demand WHERE show_id = $1", show)
        replay = await app.replays.build(show)

        assert [(row["refused"], row["seats"], row["times"]) for row in rows] == [(5, [1, 2], [5, 5])]
        assert replay.sale.figures.refused == 5
        assert replay.labels[:2] == ("A-2", "A-3")
        wanted = [event for event in decode(replay.sale.events) if event.kind is EventKind.WANTED]
        assert [event.values for event in wanted] == [(1, 5, 2, 5)]

    async def test_losers_cost_no_statement(self, app: App) -> None:
        """Thousands are refused in a second: only the job writes, and only a row per show."""
        show = await a_show(app, 4)
        await hold(app, show, an_owner(), 0, 1, 2, 3)
        count = "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname = 'seat_demand'"
        before = await app.postgres.fetchval(count)

        refused = await asyncio.gather(
            *(hold(app, show, an_owner(), 0) for _ in range(300)), return_exceptions=True
        )
        untouched = await app.postgres.fetchval("SELECT count(*) FROM seat_demand WHERE show_id = $1", show)
        await app.demand.flush()

        assert all(isinstance(one, SeatsTaken) for one in refused)
        assert untouched == 0
        rows = await app.postgres.fetch("SELECT refused FROM seat_demand WHERE show_id = $1", show)
        assert [row["refused"] for row in rows] == [300]
        assert before is not None

    async def test_a_sold_out_show_counts_buyers_who_would_take_any_seat(self, app: App) -> None:
        layout = a_layout(0, standing=2)
        show = await a_show(app, layout=layout)
        await hold(app, show, an_owner(), 0, 1)
        with pytest.raises(SoldOut):
            await _best(app, show)
        await app.demand.flush(all_of_them=True)

        replay = await app.replays.build(show)

        assert replay.sale.figures.refused == 1


async def _best(app: App, show: int) -> None:
    from holdfast.holds import StandingPlaces
    from tests.support.own_engines import a_request

    request = await a_request(app, show, an_owner(), 0)
    await app.holds.hold(msgspec.structs.replace(request, selection=StandingPlaces(0, 2, 1)))


async def test_a_stadium_is_a_file_of_a_few_megabytes_and_the_loop_goes_on(app: App) -> None:
    """50 000 seats, 100 000 moves; what is measured is memory and size, never the time."""
    show = await a_show(app, layout=a_layout(STADIUM, row=250, name="Stadium"))
    await app.postgres.execute(BOOKINGS, show)
    await app.postgres.execute(MOVES, show)
    await app.catalogue.show_on_sale(show)  # its layout is cached in any case
    tracemalloc.start()

    building = asyncio.create_task(app.replays.build(show))
    turns = 0
    while not building.done():
        await asyncio.sleep(0.005)
        turns += 1
    replay = await building
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert replay.sale.figures.holds == 50_000
    assert turns > 20, "the loop stood still"
    assert len(replay.sale.events) < 1_000_000
    assert len(render_file(replay, localiser_for("en_GB"))) < 3_000_000
    assert peak < 60_000_000
