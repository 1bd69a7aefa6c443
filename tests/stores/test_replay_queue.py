"""The queue of a show in its replay: as many people as the waiting room logged (R27, R33)."""

import asyncio

from holdfast.app import App
from holdfast.replay import QueueReader
from holdfast.replay.encoding import EventKind, decode
from holdfast.replay.queue import POINTS_MAX
from holdfast.waitingroom import Joiner
from tests.support.shows import a_show
from tests.support.waiting_room import a_room

PEOPLE = 30
LOG = """
INSERT INTO queue_log (show_id, opening, at, kind, joined, serving, inside)
SELECT $1, 1, now() + i * interval '1 s', 'called', 50000, i, 7 FROM generate_series(1, $2) AS i
"""


async def test_people_who_wait_and_are_inside_are_in_the_replay(app: App) -> None:
    show_id = await a_show(app)
    room = await a_room(app, show_id, inside_max=10)
    joins = (app.waiting_rooms.join(show_id, Joiner(account)) for account in range(100, 100 + PEOPLE))
    await asyncio.gather(*joins)
    await room.draw()
    await room.admit(60)

    replay = await app.replays.build(show_id)

    queue = [event.values for event in decode(replay.sale.events) if event.kind is EventKind.QUEUE]
    assert queue[-1] == (PEOPLE - 10, 10)
    assert replay.sale.figures.queue_max == PEOPLE
    assert replay.sale.figures.longest_wait_s is not None
    assert 60 <= replay.sale.figures.longest_wait_s < 600


async def test_a_show_without_a_room_has_no_queue(app: App) -> None:
    replay = await app.replays.build(await a_show(app))

    assert (replay.sale.figures.queue_max, replay.sale.figures.longest_wait_s) == (None, None)


async def test_a_long_log_is_thinned_and_keeps_its_end(app: App) -> None:
    show_id = await a_show(app)
    await app.postgres.execute(LOG, show_id, 3 * POINTS_MAX)

    log = await QueueReader(app.postgres).load(show_id)

    assert POINTS_MAX // 2 <= len(log.points) <= POINTS_MAX + 1
    assert log.points[-1].waiting == 50_000 - 3 * POINTS_MAX
    assert [point.at_us for point in log.points] == sorted(point.at_us for point in log.points)
