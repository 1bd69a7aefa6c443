"""A waiting room while its parts are killed (R27): no place is lost, the order and the cap hold."""

import asyncio
import time
from functools import partial

from holdfast.waitingroom import verify_draw
from holdfast.waitingroom.draw import Permutation
from holdfast.waitingroom.guard import OPEN_STALE_MAX_S
from tests.support.box_office import Office
from tests.support.queue_crowd import QueueCrowd
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room

PEOPLE, PEOPLE_FULL = 120, 1000
INSIDE_MAX = 40
BYTES_PER_PERSON_MAX = 200
FIRST = 10**12  # an account that does not exist, and those after it
# While people join, at the moment of the draw, and while people come in.
BEFORE, AT_THE_DRAW, AFTER = (
    ("valkey", "web-1"),
    ("postgres", "web-2"),
    ("valkey", "postgres", "web-1", "work-1"),
)
TURNS = "SELECT number, position, call, called_at FROM queue_turn WHERE show_id = $1 ORDER BY position, call"


async def test_killed_parts_take_no_place_with_them(stage: Office, is_full: bool) -> None:
    people = PEOPLE_FULL if is_full else PEOPLE
    room = await a_room(stage.app, await stage.a_show(seats=people * 2), inside_max=INSIDE_MAX)
    crowd = QueueCrowd(stage, room.show_id, await stage.fans(people))
    *_, stranger = await stage.fans(1)
    # A process may not have read yet that the room is open; the guard promises it after this time.
    await asyncio.sleep(OPEN_STALE_MAX_S)

    async with asyncio.TaskGroup() as group:
        pushing = group.create_task(crowd.try_without_a_pass(stranger))
        joining = group.create_task(crowd.join_all())
        for name in BEFORE:
            await kill(stage, name)
        await joining
        await room.draw_by_worker()
        for name in AT_THE_DRAW:
            await kill(stage, name)
        visiting = group.create_task(crowd.visit_all())
        for name in AFTER:
            before = len(crowd.came_in)
            killed_at = time.monotonic()
            await kill(stage, name)
            await until(partial(more_came_in, crowd, before), within_s=60)
            print(f"{name} killed: next admission {max(crowd.came_in.values()) - killed_at:.1f} s later")
        await visiting
        pushing.cancel()

    await assert_order(room, crowd)
    assert crowd.slipped_in == []
    assert len(crowd.came_in) == people
    await stage.settled()


async def kill(stage: Office, name: str) -> None:
    """And wait until the supervisor has replaced it. The new Valkey is empty."""
    await stage.back(name, after=stage.kill(name), within_s=60)


async def more_came_in(crowd: QueueCrowd, before: int) -> bool:
    return len(crowd.came_in) > before or len(crowd.came_in) == len(crowd.people)


async def assert_order(room: Room, crowd: QueueCrowd) -> None:
    """Everyone has the number of their first answer, and was called in the order of the published draw."""
    places = await room.app.postgres.fetch(
        "SELECT account_id, number FROM queue_place WHERE show_id = $1", room.show_id
    )
    assert {row["account_id"]: row["number"] for row in places} == crowd.numbers
    assert crowd.other_numbers == []
    record = await room.app.waiting_rooms.load_draw(room.show_id)
    order = verify_draw(record)
    turns = await room.app.postgres.fetch(TURNS, room.show_id)
    assert record.entrants == len(crowd.people) == len({row["number"] for row in turns})
    assert all(row["position"] == order.position(row["number"]) for row in turns)
    first = [row["called_at"] for row in turns if row["call"] == 1]
    assert first == sorted(first)


async def test_two_million_people_fit(stage: Office, is_full: bool) -> None:
    """Loaded directly; prints the bytes per person. Everyone's position is computed, not stored."""
    people = 2_000_000 if is_full else 50_000
    room = await a_room(stage.app, await stage.a_show(seats=50))
    postgres = stage.app.postgres
    before = await size(room)
    for first in range(0, people, 50_000):
        await postgres.fetch(
            "SELECT count(*) FROM join_queues(array_fill($1::bigint, ARRAY[$3::int]),"
            " ARRAY(SELECT generate_series($2::bigint, $2 + $3 - 1)))",
            *(room.show_id, FIRST + first, 50_000),
            timeout=60,
        )
    each = (await size(room) - before) / people
    print(f"{people} people in one room: {each:.0f} bytes each")

    await room.draw_by_worker()
    await until(room.is_admitting, within_s=60)
    called = await room.admit()
    order = verify_draw(await stage.app.waiting_rooms.load_draw(room.show_id))

    assert each < BYTES_PER_PERSON_MAX
    assert called > 0
    assert isinstance(order, Permutation)
    assert order.n == people
    assert order.number(order.position(people - 1)) == people - 1
    await room.editor.close(room.show_id)


async def size(room: Room) -> int:
    return int(await room.app.postgres.fetchval("SELECT pg_total_relation_size('queue_place')"))
