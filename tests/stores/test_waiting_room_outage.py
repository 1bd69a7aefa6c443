"""Engines away: the waiting room loses no place and lets in only people with a pass (R27, R36)."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from holdfast.bookings import BookingState
from holdfast.engines.errors import EngineDown
from holdfast.waitingroom import Joiner, NotAdmitted, PlaceState
from tests.support.own_engines import Stage, a_request
from tests.support.show_fixture import an_owner
from tests.support.shows import a_show
from tests.support.wait import until
from tests.support.waiting_room import Room, a_room


async def come_in(room: Room, account_id: int) -> str:
    rooms = room.app.waiting_rooms
    await rooms.join(room.show_id, Joiner(account_id))
    await room.draw()
    await room.admit()
    return (await rooms.redeem(room.show_id, account_id)).text


@pytest.fixture
async def without_redis(stage: Stage) -> AsyncIterator[None]:
    await stage.engines.valkey.hold()
    yield
    await stage.bring_valkey_back()


@pytest.mark.usefixtures("without_redis")
async def test_without_redis_a_pass_is_still_needed_and_still_good(stage: Stage) -> None:
    app, owner = stage.app, an_owner()
    room = await a_room(app, await a_show(app, 20))
    admission = await come_in(room, owner)
    wanted = await a_request(app, room.show_id, owner, 4)

    with pytest.raises(NotAdmitted):
        await app.holds.hold(wanted)
    held = await app.holds.hold(msgspec.structs.replace(wanted, admission=admission))

    assert held.state is BookingState.HELD


async def test_without_the_ledger_no_person_comes_in(stage: Stage) -> None:
    """Neither with a pass nor without: a process that cannot read the list accepts it for three seconds."""
    app, owner = stage.app, an_owner()
    room = await a_room(app, await a_show(app, 20))
    admission = await come_in(room, owner)
    guard, rooms = app.waiting_rooms.guard, app.waiting_rooms
    place = await rooms.find_place(room.show_id, owner)
    await stage.engines.postgres.hold()

    async def is_closed() -> bool:
        try:
            await guard.require(room.show_id, owner, admission)
        except EngineDown:
            return True
        return False

    try:
        await until(is_closed)
        with pytest.raises(EngineDown):
            await guard.require(room.show_id, an_owner(), "")
        with pytest.raises(EngineDown):
            await rooms.join(room.show_id, Joiner(an_owner()))
    finally:
        await stage.engines.postgres.release()

    async def is_back() -> bool:
        try:
            await guard.require(room.show_id, owner, admission)
        except EngineDown:
            return False
        return True

    await until(is_back)
    after = await rooms.find_place(room.show_id, owner)
    assert place is not None
    assert after is not None
    assert (after.number, after.position, after.state) == (place.number, place.position, PlaceState.INSIDE)
