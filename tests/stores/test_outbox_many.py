"""A consumer that takes facts in batches: few steps, and the same promises as for single facts (R28)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from holdfast.app import App
from holdfast.engines.errors import EngineDown
from holdfast.outbox import Consumer, Fact, consume_many
from holdfast.outbox.relay import ConsumerWorker, only_when_full
from holdfast.outbox.store import RELAY
from tests.support.fact_recorder import FactRecorder, checkpoint, open_transaction, relayed, turns_are_free
from tests.support.own_engines import Stage, hold
from tests.support.show_fixture import Till, an_owner
from tests.support.wait import until

TURN_ENDS_SOON = "UPDATE consumer_group SET lease_until = now() + interval '3 s' WHERE name = $1"
LASTS_LONGER = "SELECT lease_until > now() + interval '3.5 s' FROM consumer_group WHERE name = $1"
ADD = "INSERT INTO outbox (show_id, number, kind) VALUES ($1, $2, 'payment.declined')"


@dataclass
class Choir:
    """A FactRecorder that takes batches; a batch with the unlucky booking in it fails as a whole."""

    reader: FactRecorder
    tellings: list[list[int]] = field(default_factory=list)
    unlucky: int = 0
    error: Exception = field(default_factory=lambda: ValueError("not today"))

    def __post_init__(self) -> None:
        consumer = Consumer(
            group=self.reader.group, kinds=(), call_many=self.hear_many, from_oldest=False, tries_max=3
        )
        self.consumer_worker = ConsumerWorker(
            self.reader.app.outbox, consumer, self.reader.app.config, wait_s=0.02
        )

    async def hear_many(self, facts: Sequence[Fact]) -> None:
        self.tellings.append([fact.id for fact in facts])
        if self.unlucky in {fact.number for fact in facts}:
            raise self.error
        self.reader.received += facts

    async def consume(self) -> None:
        await relayed(self.reader.app)
        await self.reader.consume(self.consumer_worker)


@pytest.fixture
def app(stage: Stage) -> App:
    return stage.app


@pytest.fixture
async def till(stage: Stage) -> Till:
    return await stage.till(20)


@pytest.fixture
async def choir(app: App) -> Choir:
    await turns_are_free(app)
    return Choir(await FactRecorder(app).open())


async def test_many_facts_are_consumed_in_one_batch_and_in_order(app: App, till: Till, choir: Choir) -> None:
    for seat in range(6):
        booking = await till.opened(seat, owner_id=an_owner())
        await till.ledger.cancel(booking, booking.owner_id)

    await choir.consume()

    [telling] = choir.tellings
    assert len(telling) == 12
    assert telling == sorted(telling)
    assert await checkpoint(app, choir.reader.group) == telling[-1]


async def test_a_failing_fact_delays_only_its_own_booking(app: App, till: Till, choir: Choir) -> None:
    unlucky = await hold(app, till.show, an_owner(), 1)
    lucky = await hold(app, till.show, an_owner(), 2)
    await app.holds.cancel(unlucky)
    choir.unlucky = unlucky.number
    await choir.consume()
    await app.holds.cancel(lucky)
    await choir.consume()

    assert choir.reader.of(lucky.number) == ["booking.held", "booking.cancelled"]
    assert choir.reader.of(unlucky.number) == []

    choir.unlucky = 0
    for _ in range(2):
        await choir.reader.retry_now()
        await choir.consume()

    assert choir.reader.of(unlucky.number) == ["booking.held", "booking.cancelled"]
    assert len(choir.reader.ids) == len(set(choir.reader.ids)) == 4


async def test_a_waiting_fact_delays_later_facts_of_its_booking(app: App, till: Till, choir: Choir) -> None:
    booking = await hold(app, till.show, an_owner(), 1)
    choir.unlucky = booking.number
    await choir.consume()
    choir.unlucky = 0
    await app.postgres.execute(
        "UPDATE parked_fact SET due_at = 'infinity' WHERE group_name = $1", choir.reader.group
    )
    await app.holds.cancel(booking)
    other = await hold(app, till.show, an_owner(), 2)
    await choir.consume()

    assert choir.reader.of(other.number) == ["booking.held"]
    assert choir.reader.of(booking.number) == []


async def test_a_turn_lasts_as_long_as_the_facts_in_hand(app: App, till: Till, choir: Choir) -> None:
    """A consumer slower than its lease is not overtaken: the same facts would be delivered twice."""
    await till.opened(1)
    await relayed(app)
    is_busy, go_on = asyncio.Event(), asyncio.Event()

    async def take_long(_fact: Fact) -> None:
        is_busy.set()
        await go_on.wait()

    slow = FactRecorder(app, choir.reader.group, meanwhile=take_long)
    busy = asyncio.create_task(slow.another().consume())
    await is_busy.wait()
    await app.postgres.execute(TURN_ENDS_SOON, choir.reader.group)
    await until(partial(is_renewed, app, choir.reader.group))
    assert await choir.consumer_worker.consume() == 0
    go_on.set()

    assert await busy == 1
    assert len(slow.received) == 1
    assert choir.reader.received == []


async def is_renewed(app: App, group: str) -> bool:
    return bool(await app.postgres.fetchval(LASTS_LONGER, group))


async def test_an_engine_that_is_down_is_waited_out_and_nothing_is_counted(
    app: App, till: Till, choir: Choir
) -> None:
    booking = await till.opened(1)
    choir.unlucky, choir.error = booking.number, EngineDown("ledger")
    before = await checkpoint(app, choir.reader.group)
    with pytest.raises(EngineDown):
        await choir.consume()
    unmoved = await checkpoint(app, choir.reader.group)
    choir.unlucky = 0
    await choir.consume()

    assert unmoved == before
    assert choir.reader.of(booking.number) == ["booking.held"]
    assert await app.outbox.parked_due(choir.reader.group, 10) == []


async def test_of_many_only_those_that_are_new_are_acted_on(app: App, choir: Choir) -> None:
    async with app.postgres.transaction() as tx:
        assert await consume_many(tx, choir.reader.group, [7, 8]) == {7, 8}
    async with app.postgres.transaction() as tx:
        assert await consume_many(tx, choir.reader.group, [8, 9]) == {9}


async def test_what_is_before_and_behind_a_hole_is_settled_at_once(app: App, till: Till) -> None:
    await relayed(app)
    await app.postgres.execute(ADD, till.show, 1)
    async with open_transaction(app) as (gone, _commit):
        await gone.execute(ADD, till.show, 2)
    last = await app.postgres.fetchval(f"{ADD} RETURNING id", till.show, 3)

    assert await app.outbox.settle(1_000) == last


async def test_facts_before_an_open_transaction_are_published_meanwhile(
    app: App, till: Till, choir: Choir
) -> None:
    await app.postgres.execute(ADD, till.show, 1)
    async with open_transaction(app) as (slow, commit):
        await slow.execute(ADD, till.show, 2)
        await app.postgres.execute(ADD, till.show, 3)
        await choir.consume()
        meanwhile = [fact.number for fact in choir.reader.received]
        await commit()
    await choir.consume()

    assert meanwhile == [1]
    assert [fact.number for fact in choir.reader.received] == [1, 2, 3]
    assert await checkpoint(app, RELAY) == choir.reader.ids[-1]


async def test_hands_that_are_not_full_rest_before_they_go_on() -> None:
    done = iter([3, 10, 12])

    async def job() -> int:
        return next(done)

    paced = only_when_full(job, 10)

    assert [await paced(), await paced(), await paced()] == [0, 10, 12]
