"""All facts are published in order, despite slow, rolled-back and killed transactions (R28)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.app import App
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.outbox import BookingConfirmed, BookingHeld, Outbox, ShowCancelledFact, add_fact, consume_once
from holdfast.outbox.relay import Relay
from holdfast.outbox.store import RELAY
from tests.support.fact_recorder import FactRecorder, checkpoint, open_transaction, relayed, turns_are_free
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import Till, an_owner

ADD = "INSERT INTO outbox (show_id, number, kind) VALUES ($1, $2, 'payment.declined')"


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


async def test_facts_of_a_booking_arrive_in_order_and_complete(
    app: App, till: Till, reader: FactRecorder
) -> None:
    booking = await hold(app, till.show, till.owner, 3, 4)
    await app.holds.cancel(booking)
    free = await till.opened(7, price_minor=0)

    await relayed(app)
    await reader.consume()

    assert reader.of(booking.number) == ["booking.held", "booking.cancelled"]
    assert reader.of(free.number) == ["booking.held", "booking.confirmed"]
    held, confirmed = reader.received[0].body, reader.received[-1].body
    assert isinstance(held, BookingHeld)
    assert (held.owner_id, held.seats, held.prices_minor) == (till.owner, (3, 4), (1500, 1500))
    assert held.expires_at == booking.expires_at
    assert isinstance(confirmed, BookingConfirmed)
    assert (confirmed.amount_minor, confirmed.currency) == (0, "EUR")


async def test_a_fact_of_a_late_commit_is_not_skipped(app: App, till: Till, reader: FactRecorder) -> None:
    """Its id is lower than one that is there already: "everything above the last I saw" would miss it."""
    async with open_transaction(app) as (slow, commit):
        await slow.execute(ADD, till.show, 1)
        await app.postgres.execute(ADD, till.show, 2)
        relay = await relayed(app)
        await reader.consume()
        received_before_commit = list(reader.received)
        await commit()
    await relayed(app, relay)
    await reader.consume()

    assert received_before_commit == []
    assert [fact.number for fact in reader.received] == [1, 2]
    assert reader.ids == sorted(reader.ids)


async def test_a_rolled_back_fact_does_not_delay_later_facts(
    app: App, till: Till, reader: FactRecorder
) -> None:
    async with open_transaction(app) as (gone, _commit):
        await gone.execute(ADD, till.show, 1)
    await app.postgres.execute(ADD, till.show, 2)

    await relayed(app)
    await reader.consume()

    assert [fact.number for fact in reader.received] == [2]


async def test_a_long_transaction_without_facts_does_not_delay_others(
    app: App, till: Till, reader: FactRecorder
) -> None:
    async with open_transaction(app) as (gone, _commit):
        await gone.execute(ADD, till.show, 1)
    async with open_transaction(app) as (long, _commit):
        await long.execute("UPDATE sale SET epoch = epoch WHERE show_id = $1", till.show)
        await app.postgres.execute(ADD, till.show, 2)
        await relayed(app)
        await reader.consume()

    assert [fact.number for fact in reader.received] == [2]


async def test_two_relays_at_once_shuffle_nothing(app: App, till: Till, reader: FactRecorder) -> None:
    """A split turn: both believe that it is theirs."""
    for seat in range(10):
        await till.opened(seat, owner_id=an_owner())
    config = replace(app.config, relay_max=3)
    relays = [Relay(app.outbox, config), Relay(app.outbox, config)]

    for _ in range(20):
        await turns_are_free(app)
        await asyncio.gather(*(relay.relay() for relay in relays))
    await relayed(app)
    await reader.consume()

    bus = await app.outbox.bus()
    positions = [m.position for m in await bus.reader().read(0, 100_000, 0)]
    assert positions == sorted(set(positions))
    assert reader.ids == sorted(set(reader.ids))
    assert len(reader.received) == 10
    assert await bus.last() == await checkpoint(app, RELAY)


class CountedPostgres(Postgres):
    uses = 0

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Transaction]:
        self.uses += 1
        async with super().lease() as connection:
            yield connection


async def test_a_relay_without_new_facts_takes_one_statement(app: App, till: Till) -> None:
    """Ten times per second, in every worker."""
    await till.opened(1)
    await relayed(app)
    await turns_are_free(app)
    counted = CountedPostgres(app.config.database_url, pool_max=2, timeout_s=5)
    outbox = Outbox(counted, app.config)
    relay = Relay(outbox, app.config)
    try:
        await relay.relay()  # takes the turn and opens the bus
        before = counted.uses
        assert await relay.relay() == 0
        assert counted.uses - before == 1
    finally:
        await outbox.close()
        await counted.close()


async def test_a_group_receives_only_the_kinds_it_subscribed_to(app: App, till: Till) -> None:
    reader = await FactRecorder(app, kinds=("booking.confirmed",)).open()
    await till.opened(1)
    await till.opened(2, price_minor=0)

    await relayed(app)
    await reader.consume()

    assert [fact.kind for fact in reader.received] == ["booking.confirmed"]
    assert await checkpoint(app, reader.group) == await checkpoint(app, RELAY)


async def test_a_fact_is_written_in_the_callers_transaction(
    app: App, till: Till, reader: FactRecorder
) -> None:
    async with app.postgres.transaction() as tx:
        await add_fact(tx, till.show, ShowCancelledFact(revision=3))
    async with open_transaction(app) as (rolled_back, _commit):
        await add_fact(rolled_back, till.show, ShowCancelledFact(revision=4))

    await relayed(app)
    await reader.consume()

    assert [fact.body for fact in reader.received] == [ShowCancelledFact(revision=3)]
    assert (reader.received[0].number, reader.received[0].booking_id) == (None, None)


async def test_concurrent_consumers_act_on_a_fact_once(app: App, reader: FactRecorder) -> None:
    async def act() -> bool:
        async with app.postgres.transaction() as tx:
            return await consume_once(tx, reader.group, 7)

    assert sorted(await asyncio.gather(*(act() for _ in range(4)))) == [False, False, False, True]


async def test_a_fact_is_purged_only_after_all_groups_passed_it_and_a_delay(
    app: App, till: Till, reader: FactRecorder
) -> None:
    booking = await hold(app, till.show, till.owner, 1)
    await app.postgres.execute("UPDATE outbox SET at = now() - interval '25 h' WHERE show_id = $1", till.show)
    await app.postgres.execute(
        "UPDATE booking_move SET at = now() - interval '25 h' WHERE show_id = $1", till.show
    )
    relay = await relayed(app)

    await relay.purge()
    assert await till.facts(booking.number) == ["booking.held"]

    await reader.consume()
    await app.postgres.execute("UPDATE consumer_group SET checkpoint = $1", await checkpoint(app, RELAY))
    await app.holds.cancel(booking)
    await relayed(app, relay)
    await relay.purge()
    assert await till.facts(booking.number) == ["booking.cancelled"]
    assert await till.violations() == []


async def test_a_fact_without_a_move_is_found_and_one_that_needs_none_is_not(app: App, till: Till) -> None:
    await app.postgres.execute(ADD, till.show, 1)
    assert await till.violations() == []

    await app.postgres.execute(
        "UPDATE outbox SET kind = 'booking.confirmed' WHERE show_id = $1 AND number = 1", till.show
    )
    assert await till.violations() == ["one_fact_per_move: booking 1 has 0 moves and 1 facts"]

    await app.postgres.execute("DELETE FROM outbox WHERE show_id = $1", till.show)


async def test_a_group_can_replay_from_a_given_fact(app: App, till: Till, reader: FactRecorder) -> None:
    await till.opened(1)
    await till.opened(2)
    await relayed(app)
    await reader.consume()
    first, second = reader.ids
    async with app.postgres.transaction() as tx:
        assert await consume_once(tx, reader.group, second)

    assert await app.outbox.replay(reader.group, second) == 1
    await reader.consume()

    assert reader.ids == [first, second, second]
    async with app.postgres.transaction() as tx:
        assert await consume_once(tx, reader.group, second)
