"""R27: people in a waiting room get mail when it is their turn, and when everything was sold before it."""

from collections.abc import AsyncIterator

import pytest

from holdfast.config import Config
from holdfast.notifications.notice import INFINITY, Channel
from holdfast.notifications.queue_notices import MAILS_PER_S
from holdfast.outbox import from_json, to_json
from holdfast.waitingroom import Joiner, verify_draw
from tests.support import shows as cast
from tests.support.mail_servers import Office, a_reader, an_office
from tests.support.waiting_room import Room, a_room

SEATS = 4


@pytest.fixture
async def office(config: Config) -> AsyncIterator[Office]:
    async with an_office(config) as opened:
        yield opened


async def a_full_house(office: Office) -> Room:
    return await a_room(office.app, await cast.a_show(office.app, SEATS), inside_max=1)


async def join(room: Room, *accounts: int) -> None:
    for account_id in accounts:
        await room.app.waiting_rooms.join(room.show_id, Joiner(account_id))


async def sell_out(room: Room) -> None:
    await room.app.bookings.block(room.show_id, list(range(SEATS)), "sold elsewhere", 1)
    await room.step()


async def an_unproved_reader(office: Office) -> tuple[int, str]:
    account_id, address = await a_reader(office.app)
    await office.app.postgres.execute(
        "UPDATE account SET verified_at = NULL, contact_at = now() WHERE id = $1", account_id
    )
    return account_id, address


async def repeat_facts(office: Office, room: Room) -> None:
    facts = await office.app.outbox.facts_after(0, 1_000_000)
    for fact in (one for one in facts if one.show_id == room.show_id):
        await office.consumer_worker._consumer.handle(from_json(to_json(fact)))


class TestTurn:
    async def test_it_is_mailed_once_to_a_proved_address(self, office: Office) -> None:
        room = await a_full_house(office)
        reader, address = await a_reader(office.app)
        await join(room, reader)
        await room.draw()
        await room.admit()

        await office.consume()
        await repeat_facts(office, room)

        assert await office.kinds(address) == ["queue_turn"]

    async def test_a_second_turn_is_mailed_again(self, office: Office) -> None:
        room = await a_full_house(office)
        reader, address = await a_reader(office.app)
        await join(room, reader)
        await room.draw()
        await room.admit()
        await office.consume()

        await room.admit(121)  # the turn is missed, and no other person waits: called again
        await office.consume()

        assert await office.kinds(address) == ["queue_turn", "queue_turn"]

    async def test_an_address_that_is_not_proved_gets_none(self, office: Office) -> None:
        room = await a_full_house(office)
        reader, address = await an_unproved_reader(office)
        await join(room, reader)
        await room.draw()
        await room.admit()

        await office.consume()

        assert await office.kinds(address) == []

    async def test_a_person_who_has_come_in_meanwhile_gets_none(self, office: Office) -> None:
        room = await a_full_house(office)
        reader, address = await a_reader(office.app)
        await join(room, reader)
        await room.draw()
        await room.admit()
        await office.consume()

        await office.app.waiting_rooms.redeem(room.show_id, reader)
        (row,) = await office.rows(address)
        (due,) = [
            one for one in await office.app.notifications.take_due(100, [Channel.MAIL]) if one.id == row["id"]
        ]

        assert await office.post._composer.compose(due) is None


class TestSoldOut:
    async def test_who_still_waited_is_mailed_once_and_who_was_inside_is_not(self, office: Office) -> None:
        room = await a_full_house(office)
        people = dict([await a_reader(office.app) for _ in range(3)])
        gone, gone_address = await a_reader(office.app)
        unproved, unproved_address = await an_unproved_reader(office)
        await join(room, *people, gone, unproved)
        await office.app.waiting_rooms.leave(room.show_id, gone)
        await room.draw()
        inside = None
        while inside is None:
            await room.admit(121)
            inside = await self.called(room, people)
        await office.app.waiting_rooms.redeem(room.show_id, inside)
        await sell_out(room)

        await office.consume()
        await repeat_facts(office, room)

        for account_id, address in people.items():
            sold_out = [kind for kind in await office.kinds(address) if kind == "queue_sold_out"]
            assert sold_out == ([] if account_id == inside else ["queue_sold_out"])
        assert await office.kinds(gone_address) == []
        assert await office.kinds(unproved_address) == []

    async def called(self, room: Room, people: dict[int, str]) -> int | None:
        for account_id in people:
            place = await room.app.waiting_rooms.find_place(room.show_id, account_id)
            if place is not None and place.state == "called":
                return account_id
        return None

    async def test_the_first_in_the_queue_are_mailed_first(self, office: Office) -> None:
        room = await a_full_house(office)
        readers = [await a_reader(office.app) for _ in range(5)]
        await join(room, *(account_id for account_id, _ in readers))
        await room.draw()
        await sell_out(room)

        await office.consume()

        order = verify_draw(await office.app.waiting_rooms.load_draw(room.show_id))
        for number, (_, address) in enumerate(readers):
            (row,) = await office.rows(address)
            is_due = row["due_at"] == INFINITY  # at once
            wait_s = 0 if is_due else (row["due_at"] - row["written_at"]).total_seconds()
            assert wait_s == pytest.approx(order.position(number) / MAILS_PER_S)

    async def test_a_room_that_was_closed_sends_none(self, office: Office) -> None:
        """A fact that is consumed late: the organiser has closed the room, and seats may be on sale again."""
        room = await a_full_house(office)
        reader, address = await a_reader(office.app)
        await join(room, reader)
        await room.draw()
        await sell_out(room)
        await room.editor.close(room.show_id)

        await office.consume()

        assert await office.kinds(address) == []
