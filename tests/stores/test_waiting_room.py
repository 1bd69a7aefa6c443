"""The waiting room in the ledger (R27): places, the draw, turns, passes and the cap on people inside."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.app import App
from holdfast.background import build_retention
from holdfast.errors import Invalid
from holdfast.waitingroom import Joiner, PlaceState, RoomSettings, RoomState, WayIn, verify_draw
from holdfast.waitingroom.errors import NotYourTurn, QueueNotOpen, QueueSoldOut, TurnOver, WrongRoomState
from tests.support import shows as cast
from tests.support.waiting_room import Room, a_room

ShowMaker = Callable[..., Any]


async def join(room: Room, *accounts: int) -> list[int]:
    """Their numbers, in the order given; they join one after the other."""
    return [
        (await room.app.waiting_rooms.join(room.show_id, Joiner(account))).place.number
        for account in accounts
    ]


async def join_at_once(room: Room, accounts: range) -> list[int]:
    joins = (room.app.waiting_rooms.join(room.show_id, Joiner(account)) for account in accounts)
    return [joined.place.number for joined in await asyncio.gather(*joins)]


async def states(room: Room, accounts: range) -> dict[int, PlaceState]:
    found = {}
    for account in accounts:
        place = await room.app.waiting_rooms.find_place(room.show_id, account)
        assert place is not None
        found[account] = place.state
    return found


async def people(room: Room, state: PlaceState, accounts: range) -> list[int]:
    return [account for account, found in (await states(room, accounts)).items() if found is state]


class TestJoining:
    async def test_numbers_are_dense_and_joining_again_changes_nothing(self, either_app: App) -> None:
        room = await a_room(either_app, await cast.a_show(either_app))

        numbers = await join_at_once(room, range(100, 400))
        again = await join_at_once(room, range(100, 400))

        assert sorted(numbers) == list(range(300))
        assert again == numbers

    async def test_one_person_twice_in_one_batch_joins_once(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show())
        rooms = app.waiting_rooms

        both = await asyncio.gather(*(rooms.join(room.show_id, Joiner(7)) for _ in range(2)))

        assert [joined.place.number for joined in both] == [0, 0]
        assert sorted(joined.is_new for joined in both) == [False, True]

    async def test_a_person_who_left_joins_at_the_end(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show())
        await join(room, 1, 2)

        assert await app.waiting_rooms.leave(room.show_id, 1)
        assert not await app.waiting_rooms.leave(room.show_id, 1)
        assert await join(room, 1) == [2]
        assert await app.waiting_rooms.leave(room.show_id, 1)
        assert await join(room, 1) == [3]

    async def test_a_room_that_is_not_open(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), is_open=False)

        with pytest.raises(QueueNotOpen):
            await join(room, 1)


class TestDraw:
    async def test_the_order_is_the_published_one_and_later_arrivals_follow(
        self, app: App, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show())
        numbers = await join(room, *range(10, 60))
        before = await app.waiting_rooms.load_draw(room.show_id)

        await room.draw()
        late = await join(room, 100, 101)
        record = await app.waiting_rooms.load_draw(room.show_id)
        order = verify_draw(record)

        assert before.seed is None
        assert before.entrants is None
        assert before.commitment == record.commitment
        assert record.entrants == 50
        for account, number in zip(range(10, 60), numbers, strict=True):
            place = await app.waiting_rooms.find_place(room.show_id, account)
            assert place is not None
            assert place.position == order.position(number)
        assert late == [50, 51]
        late_place = await app.waiting_rooms.find_place(room.show_id, 101)
        assert late_place is not None
        assert late_place.position == 51

    async def test_the_draw_waits_for_the_beacon(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), beacon="drand quicknet, round 1")
        await join(room, 1, 2, 3)

        await room.draw()
        assert (await app.waiting_rooms.load_draw(room.show_id)).seed is None
        await room.editor.set_beacon(room.show_id, "f00d")
        await room.draw()

        record = await app.waiting_rooms.load_draw(room.show_id)
        assert record.beacon_value == "f00d"
        assert verify_draw(record).n == 3

    async def test_before_its_deadline_the_draw_waits_for_the_beacon(
        self, app: App, a_show: ShowMaker
    ) -> None:
        until = datetime.now(UTC) + timedelta(hours=2)
        room = await a_room(app, await a_show(), beacon="drand quicknet, round 1", beacon_until=until)
        await join(room, 1, 2, 3)

        await room.draw()

        record = await app.waiting_rooms.load_draw(room.show_id)
        assert record.beacon_until == until.replace(microsecond=0)
        assert (record.seed, record.drawn_at) == (None, None)

    async def test_after_its_deadline_the_draw_goes_on_without_the_beacon(
        self, app: App, a_show: ShowMaker
    ) -> None:
        """The deadline is in the commitment; a value that comes later is refused, so there is no choice."""
        draw_at = datetime.now(UTC) - timedelta(hours=1)
        until = draw_at + timedelta(minutes=10)
        name = "drand quicknet, round 1"
        room = await a_room(app, await a_show(), draw_at=draw_at, beacon=name, beacon_until=until)
        await join(room, 1, 2, 3)

        with pytest.raises(WrongRoomState):
            await room.editor.set_beacon(room.show_id, "f00d")
        await room.step()
        with pytest.raises(WrongRoomState):
            await room.editor.set_beacon(room.show_id, "f00d")

        record = await app.waiting_rooms.load_draw(room.show_id)
        assert record.is_without_beacon
        assert verify_draw(record).n == 3

    async def test_a_value_before_the_deadline_counts(self, app: App, a_show: ShowMaker) -> None:
        until = datetime.now(UTC) + timedelta(hours=2)
        room = await a_room(app, await a_show(), beacon="drand quicknet, round 1", beacon_until=until)
        await join(room, 1, 2, 3)

        await room.editor.set_beacon(room.show_id, "f00d")
        await room.draw()

        record = await app.waiting_rooms.load_draw(room.show_id)
        assert record.beacon_value == "f00d"
        assert verify_draw(record).n == 3

    async def test_a_change_of_the_settings_moves_no_deadline_of_an_open_room(
        self, app: App, a_show: ShowMaker
    ) -> None:
        until = datetime.now(UTC) + timedelta(hours=2)
        room = await a_room(app, await a_show(), beacon="drand quicknet, round 1", beacon_until=until)
        before = await app.waiting_rooms.load_draw(room.show_id)

        await room.editor.set(
            room.show_id, RoomSettings(beacon="another", beacon_until=until.replace(year=2099))
        )

        assert await app.waiting_rooms.load_draw(room.show_id) == before

    @pytest.mark.parametrize("settings", [{"beacon": ""}, {"draw_at": "after"}])
    async def test_a_deadline_that_makes_no_sense_is_refused(
        self, app: App, a_show: ShowMaker, settings: dict[str, Any]
    ) -> None:
        until = datetime.now(UTC) + timedelta(hours=2)
        given: dict[str, Any] = {"beacon": "round 1", "beacon_until": until} | settings
        if "draw_at" in settings:
            given["draw_at"] = until + timedelta(minutes=1)

        with pytest.raises(Invalid):
            await a_room(app, await a_show(), **given)


class TestWayIn:
    async def test_a_pass_names_the_way_in(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show())
        await join(room, 1)
        await room.draw()
        await join(room, 2)
        await room.admit()
        no_draw = await a_room(app, await a_show(), is_open=False, opens_above_holds_per_second=5)
        await app.waiting_rooms.open_by_demand(no_draw.show_id)
        await no_draw.refresh()
        await join(no_draw, 3)
        await no_draw.admit()

        ways = {
            account: await self.way_in(where, account)
            for where, account in ((room, 1), (room, 2), (no_draw, 3))
        }

        assert ways == {1: WayIn.DRAW, 2: WayIn.LATE, 3: WayIn.ARRIVAL}

    async def test_it_stays_after_a_turn_that_was_missed(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), inside_max=1)
        await join(room, 1)
        await room.draw()
        await room.admit()

        await room.admit(121)
        await room.admit(1)

        assert await self.way_in(room, 1) is WayIn.DRAW

    async def way_in(self, room: Room, account_id: int) -> WayIn:
        """Of the pass, and of the same pass again; as its signature says, too."""
        rooms = room.app.waiting_rooms
        first, again = [await rooms.redeem(room.show_id, account_id) for _ in range(2)]
        assert first.way_in is again.way_in
        assert (await rooms.guard.read(first.text)).way_in is first.way_in
        return first.way_in


class TestAdmission:
    async def test_people_are_called_in_order_up_to_the_cap(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), inside_max=5)
        numbers = await join(room, *range(1, 21))
        await room.draw()
        order = verify_draw(await app.waiting_rooms.load_draw(room.show_id))
        first = sorted(range(20), key=order.position)[:5]

        assert await room.admit() == 5
        assert await room.admit() == 0

        called = await people(room, PlaceState.CALLED, range(1, 21))
        assert sorted(numbers[account - 1] for account in called) == sorted(first)

    async def test_a_turn_is_redeemed_once_and_ends_with_its_window(
        self, app: App, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show(), inside_max=1, window_s=900)
        rooms = app.waiting_rooms
        await join(room, 1, 2)
        await room.draw()
        await room.admit()
        ((inside,), (waiting,)) = (
            await people(room, PlaceState.CALLED, range(1, 3)),
            await people(room, PlaceState.WAITING, range(1, 3)),
        )

        first = await rooms.redeem(room.show_id, inside)
        again = await rooms.redeem(room.show_id, inside)
        with pytest.raises(NotYourTurn):
            await rooms.redeem(room.show_id, waiting)
        assert again.ends_at == first.ends_at
        assert await room.admit(880) == 0
        assert await room.admit(30) == 1

        with pytest.raises(TurnOver):
            await rooms.redeem(room.show_id, inside)
        assert await states(room, range(1, 3)) == {inside: PlaceState.DONE, waiting: PlaceState.CALLED}

    async def test_who_does_not_respond_falls_back_once_and_then_is_out(
        self, app: App, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show(), inside_max=2, turn_s=120)
        await join(room, *range(1, 7))
        await room.draw()
        await room.admit()
        slow = await people(room, PlaceState.CALLED, range(1, 7))

        await room.admit(121)  # two others are called
        for account in slow:
            place = await app.waiting_rooms.find_place(room.show_id, account)
            assert place is not None
            assert place.state is PlaceState.WAITING
            assert place.has_missed_turn
        await room.admit(121)  # now the two who fell back
        assert await people(room, PlaceState.CALLED, range(1, 7)) == slow
        await room.admit(121)

        assert await people(room, PlaceState.OUT, range(1, 7)) == slow

    async def test_a_place_that_was_left_is_passed_over(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), inside_max=3)
        await join(room, *range(1, 11))
        await room.draw()
        order = verify_draw(await app.waiting_rooms.load_draw(room.show_id))
        by_position = sorted(range(1, 11), key=lambda account: order.position(account - 1))
        for account in by_position[:2]:
            await app.waiting_rooms.leave(room.show_id, account)

        assert await room.admit() == 3

        assert await people(room, PlaceState.CALLED, range(1, 11)) == sorted(by_position[2:5])

    async def test_no_more_people_than_twice_the_seats_that_are_left(
        self, app: App, a_show: ShowMaker
    ) -> None:
        room = await a_room(app, await a_show(seats=3))
        await join(room, *range(1, 21))
        await room.draw()

        assert await room.admit() == 6

    async def test_two_workers_never_exceed_the_cap(self, app: App, a_show: ShowMaker) -> None:
        room = await a_room(app, await a_show(), inside_max=4)
        await join(room, *range(1, 30))
        await room.draw()
        await room.pass_time(60)

        called = await asyncio.gather(*(room.step() for _ in range(8)))

        assert sum(called) == 4


class TestSoldOut:
    async def test_people_who_waited_keep_their_order(self, app: App, a_show: ShowMaker) -> None:
        show_id = await a_show(seats=2)
        room = await a_room(app, show_id, inside_max=1)
        await join(room, *range(1, 6))
        await room.draw()
        await room.admit()
        await app.bookings.block(show_id, [0, 1], "sold elsewhere", 1)
        await room.admit()

        status = await app.waiting_rooms.status(show_id)
        positions = [await app.waiting_rooms.drained_position(show_id, account) for account in range(1, 6)]

        assert status is not None
        assert status.state is RoomState.DRAINED
        assert sorted(position for position in positions if position is not None) == [0, 1, 2, 3, 4]
        with pytest.raises(QueueSoldOut):
            await join(room, 99)


class TestRetention:
    async def test_places_are_deleted_some_time_after_the_show(self, app: App, a_show: ShowMaker) -> None:
        past, coming = [await a_room(app, await a_show()) for _ in range(2)]
        for room in (past, coming):
            await join(room, 1, 2, 3)
            await room.draw()
            await room.admit()
        await app.postgres.execute(
            "UPDATE show SET opens_at = now() - interval '60 days', closes_at = now() - interval '50 days',"
            " starts_at = now() - interval '41 days', ends_at = now() - interval '40 days' WHERE id = $1",
            past.show_id,
        )

        while await build_retention(app).delete_batch():
            continue

        counts = {room: await count_rows(room) for room in (past, coming)}
        assert counts == {
            past: {"queue_place": 0, "queue_turn": 0},
            coming: {"queue_place": 3, "queue_turn": 3},
        }
        assert verify_draw(await app.waiting_rooms.load_draw(past.show_id)).n == 3


async def count_rows(room: Room) -> dict[str, int]:
    sql = "SELECT count(*) FROM {} WHERE show_id = $1"
    tables = ("queue_place", "queue_turn")
    return {table: await room.app.postgres.fetchval(sql.format(table), room.show_id) for table in tables}
