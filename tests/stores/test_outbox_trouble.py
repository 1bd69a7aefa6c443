"""Failing consumers, dying processes, a bus that is down or empty: other consumers are unaffected (R28)."""

import asyncio
from dataclasses import replace

import pytest

from holdfast.app import App, open_app
from holdfast.engines.bus import Message
from holdfast.engines.errors import EngineDown
from holdfast.outbox import Fact, ShowCancelledFact, add_fact
from holdfast.outbox.relay import Relay
from tests.support.fact_recorder import FactRecorder, checkpoint, other_outbox, relayed, turns_are_free
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

NOWHERE = "redis://127.0.0.1:1"


@pytest.fixture
async def till(stage: Stage) -> Till:
    return await stage.till(20)


@pytest.fixture
def app(stage: Stage) -> App:
    return stage.app


@pytest.fixture
async def reader(app: App) -> FactRecorder:
    await turns_are_free(app)
    return await FactRecorder(app).open()


async def test_a_fact_that_fails_keeps_only_its_own_booking_waiting(
    app: App, till: Till, reader: FactRecorder
) -> None:
    unlucky = await hold(app, till.show, an_owner(), 1)
    reader.fails = lambda fact: fact.kind == "booking.held" and fact.number == unlucky.number
    lucky = await hold(app, till.show, an_owner(), 2)
    relay = await relayed(app)
    await reader.consume()
    await app.holds.cancel(unlucky)
    await relayed(app, relay)
    await reader.consume()

    assert reader.of(lucky.number) == ["booking.held"]
    assert reader.of(unlucky.number) == []

    reader.fails = lambda _fact: False
    for _ in range(2):
        await reader.retry_now()
        await reader.consume()

    assert reader.of(unlucky.number) == ["booking.held", "booking.cancelled"]


async def test_after_many_tries_a_fact_is_dead_and_later_facts_continue(
    app: App, till: Till, reader: FactRecorder
) -> None:
    booking = await hold(app, till.show, an_owner(), 1)
    await app.holds.cancel(booking)
    reader.fails = lambda fact: fact.kind == "booking.held"
    await relayed(app)
    for _ in range(reader.tries_max + 1):
        await reader.consume()
        await reader.retry_now()

    assert reader.of(booking.number) == ["booking.cancelled"]
    [dead] = await app.outbox.dead(reader.group)
    assert (dead["tries"], dead["reason"]) == (reader.tries_max, "ValueError('not today')")

    reader.fails = lambda _fact: False
    assert await app.outbox.retry_dead(reader.group) == 1
    await reader.consume()

    assert reader.of(booking.number) == ["booking.cancelled", "booking.held"]
    assert await app.outbox.dead(reader.group) == []


async def test_an_engine_outage_is_not_counted_as_a_consumer_failure(
    app: App, till: Till, reader: FactRecorder
) -> None:
    numbers = [(await till.opened(seat, owner_id=an_owner())).number for seat in range(4)]

    def is_away(fact: Fact) -> bool:
        if fact.number == numbers[2]:
            raise EngineDown("mail")
        return False

    reader.fails = is_away
    await relayed(app)
    with pytest.raises(EngineDown):
        await reader.consume()
    reader.fails = lambda _fact: False
    await reader.consume()

    assert sorted({fact.number or 0 for fact in reader.received}) == sorted(numbers)
    assert reader.ids[:2] == sorted(reader.ids)[:2]
    assert await app.outbox.parked_due(reader.group, 10) == []


async def test_facts_of_a_killed_consumer_go_to_the_next_one(
    app: App, till: Till, reader: FactRecorder
) -> None:
    await till.opened(1)
    await relayed(app)
    is_stuck = asyncio.Event()

    async def never_ends(_fact: Fact) -> None:
        is_stuck.set()
        await asyncio.Event().wait()

    stuck = FactRecorder(app, reader.group, meanwhile=never_ends)
    killed = asyncio.create_task(stuck.another().consume())
    await is_stuck.wait()
    assert await reader.consumer_worker.consume() == 0  # its turn has not passed yet
    killed.cancel()
    await turns_are_free(app)
    await reader.consume()

    assert len(reader.received) == 1


async def test_a_consumer_that_was_paused_does_not_move_the_checkpoint_of_the_next(
    app: App, till: Till, reader: FactRecorder
) -> None:
    await till.opened(1)
    await relayed(app)
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def pause(_fact: Fact) -> None:
        paused.set()
        await go_on.wait()

    reader.meanwhile = pause
    first = asyncio.create_task(reader.another().consume())
    await paused.wait()
    reader.meanwhile = None
    await turns_are_free(app)
    await reader.consume(next_one := reader.another())
    await till.opened(2)
    await relayed(app)
    await reader.consume(next_one)
    reached = await checkpoint(app, reader.group)
    go_on.set()
    await first

    assert await checkpoint(app, reader.group) == reached


async def test_a_hanging_transaction_is_ended_and_later_facts_are_published(
    app: App, till: Till, reader: FactRecorder
) -> None:
    async def is_received() -> bool:
        await relayed(app)
        await reader.consume()
        return bool(reader.received)

    async def hang(hasty: App) -> None:
        async with hasty.postgres.transaction() as hanging:
            await add_fact(hanging, till.show, ShowCancelledFact(revision=1))
            async with app.postgres.transaction() as tx:
                await add_fact(tx, till.show, ShowCancelledFact(revision=2))
            await until(is_received, within_s=15)
            await add_fact(hanging, till.show, ShowCancelledFact(revision=3))

    async with open_app(replace(app.config, postgres_idle_s=1)) as hasty:
        with pytest.raises(EngineDown):
            await hang(hasty)

    await is_received()
    assert [fact.body for fact in reader.received] == [ShowCancelledFact(revision=2)]


async def test_without_a_bus_seats_are_sold_and_facts_are_still_received(
    app: App, till: Till, reader: FactRecorder
) -> None:
    cut_off = other_outbox(app, bus_url=NOWHERE)
    relay, consumer_worker = Relay(cut_off, app.config), reader.another(cut_off)
    before = await checkpoint(app, "relay") if await relayed(app) else 0
    await turns_are_free(app)
    bookings = [await hold(app, till.show, an_owner(), seat) for seat in range(5)]
    for booking in bookings:
        await app.holds.cancel(booking)

    assert await relay.relay() == 0
    await reader.consume(consumer_worker)
    behind = await checkpoint(app, "relay")
    await relayed(app)

    assert [reader.of(booking.number) for booking in bookings] == [["booking.held", "booking.cancelled"]] * 5
    assert behind == before
    assert await (await app.outbox.bus()).last() == await checkpoint(app, "relay") == reader.ids[-1]
    await cut_off.close()


async def test_facts_lost_by_an_emptied_bus_are_published_again(
    app: App, till: Till, reader: FactRecorder
) -> None:
    await till.opened(1)
    relay = await relayed(app)
    await app.redis.call("FLUSHALL")
    await till.opened(2)
    await relayed(app, relay)

    bus = await app.outbox.bus()
    positions = [message.position for message in await bus.reader().read(0, 100_000, 0)]
    await reader.consume()

    assert len(reader.received) == 2
    assert set(reader.ids) <= set(positions)
    assert positions == sorted(positions)


async def test_facts_lost_by_the_bus_arrive_before_those_it_still_has(
    app: App, till: Till, reader: FactRecorder
) -> None:
    """A hole: the bus has the second fact and not the first."""
    booking = await hold(app, till.show, an_owner(), 1)
    await app.holds.cancel(booking)
    await relayed(app)
    bus = await app.outbox.bus()
    last = (await bus.reader().read(0, 100_000, 0))[-1]
    await bus.clear()
    await bus.append([last], 0)

    await reader.consume()

    assert reader.of(booking.number) == ["booking.held", "booking.cancelled"]


async def test_an_idle_bus_that_loses_its_log_gets_the_facts_again(
    app: App, till: Till, reader: FactRecorder
) -> None:
    await till.opened(1)
    await relayed(app)
    await app.redis.call("FLUSHALL")

    await relayed(app, Relay(app.outbox, app.config))
    await relayed(app)

    assert await (await app.outbox.bus()).last() == await checkpoint(app, "relay")
    await reader.consume()
    assert len(reader.received) == 1


async def test_a_log_of_a_ledger_that_was_put_back_is_cleared(
    app: App, till: Till, reader: FactRecorder
) -> None:
    await till.opened(1)
    await relayed(app)
    bus = await app.outbox.bus()
    last = await bus.last()
    await bus.append([Message(last + 1000, last, b"{}")], last)
    await till.opened(2)

    await relayed(app)
    await relayed(app)

    assert await bus.last() == await checkpoint(app, "relay")
    await reader.consume()
    assert len(reader.received) == 2
