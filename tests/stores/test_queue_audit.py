"""What `holdfast audit` counts in queues: each check finds its violation, and nothing in a room at work."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.app import App
from holdfast.audit.store import QUEUE_CHECKS, QUEUES
from holdfast.waitingroom import Joiner, PlaceState
from tests.support.waiting_room import Room, a_room

ShowMaker = Callable[..., Any]
# What breaks a rule; constraints that would prevent it are dropped in the same transaction, which is undone.
PLANTS = {
    "one_live_place_per_person": (
        "ALTER TABLE queue_place DROP CONSTRAINT an_earlier_place_has_ended",
        "UPDATE queue_place SET account_id = 999, rejoined = number, state = 0 WHERE number < 2",
    ),
    "one_place_per_number": ("DELETE FROM queue_place WHERE number = 3",),
    "people_called_in_order": ("UPDATE queue_turn SET position = 0",),
    "people_inside_within_the_cap": (
        "UPDATE queue_turn SET freed_at = NULL, state = 'inside', inside_max = 2",
    ),
    "draw_as_committed": ("UPDATE queue SET seed = sha256('another')",),
}


@pytest.fixture
async def room(app: App, a_show: ShowMaker) -> Room:
    """People came in, left, missed their turn and came late."""
    room = await a_room(app, await a_show(), inside_max=3)
    rooms = app.waiting_rooms
    for account in range(1, 13):
        await rooms.join(room.show_id, Joiner(account))
    await room.draw()
    for _ in range(4):
        await room.admit(130)
        for account in range(1, 13):
            place = await rooms.find_place(room.show_id, account)
            if place is not None and place.state is PlaceState.CALLED and account % 2:
                await rooms.redeem(room.show_id, account)
    await rooms.leave(room.show_id, 1)
    await rooms.join(room.show_id, Joiner(1))
    return room


async def test_a_draw_that_did_not_wait_for_its_beacon_is_found(app: App, a_show: ShowMaker) -> None:
    """With a deadline the commitment is to more fields. An honest draw passes, a hasty one does not."""
    until = datetime.now(UTC) + timedelta(hours=2)
    room = await a_room(app, await a_show(), beacon="Würfel, Runde 1", beacon_until=until)
    await app.waiting_rooms.join(room.show_id, Joiner(1))
    await room.editor.set_beacon(room.show_id, "6")
    await room.draw()
    assert await count(app.postgres, "draw_as_committed") == 0

    async with app.postgres.lease() as connection:
        await connection.execute("BEGIN")
        try:
            await connection.execute("UPDATE queue SET beacon_value = NULL WHERE show_id = $1", room.show_id)
            hasty = await count(connection, "draw_as_committed")
        finally:
            await connection.execute("ROLLBACK")

    assert hasty == 1


async def count(tx: Any, check: str) -> int:
    return len(await tx.fetch(getattr(QUEUES, check)))


async def test_a_room_at_work_breaks_no_rule(app: App, room: Room) -> None:
    found = {check: await count(app.postgres, check) for check in QUEUE_CHECKS}

    assert found == dict.fromkeys(QUEUE_CHECKS, 0)
    turns = await app.postgres.fetchval("SELECT count(*) FROM queue_turn WHERE show_id = $1", room.show_id)
    assert turns >= 3


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("check", QUEUE_CHECKS)
async def test_a_planted_violation_is_found(app: App, check: str) -> None:
    async with app.postgres.lease() as connection:
        await connection.execute("BEGIN")
        try:
            for statement in PLANTS[check]:
                await connection.execute(statement)
            found = await count(connection, check)
        finally:
            await connection.execute("ROLLBACK")

    assert found > 0
