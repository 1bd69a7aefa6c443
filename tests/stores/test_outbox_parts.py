"""The facts of a group divided by show among processes on several machines (R28)."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from holdfast.app import App
from holdfast.outbox import Consumer, Fact
from holdfast.outbox.parts import Share, parts_of
from holdfast.outbox.relay import ConsumerWorker
from tests.support.fact_recorder import FactRecorder, relayed, turns_are_free
from tests.support.own_engines import Stage
from tests.support.wait import until

ADD = "INSERT INTO outbox (show_id, number, kind) VALUES ($1, $2, 'payment.declined') RETURNING id"
ROWS = "SELECT name FROM consumer_group WHERE split_part(name, ':', 1) = $1 ORDER BY name"
SHOWS = range(900_000, 900_008)


@pytest.fixture
def app(stage: Stage) -> App:
    return stage.app


@dataclass
class Machine:
    """One process that runs the consumer of a group, divided into so many parts."""

    recorder: FactRecorder
    parts: int
    unlucky: int = 0  # facts of this show fail
    received: list[Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        consumer = Consumer(group=self.recorder.group, kinds=(), call=self.record, from_oldest=False)
        config, share = replace(self.recorder.app.config, consumer_parts=self.parts), Share(time.monotonic)
        self.workers = [
            ConsumerWorker(self.recorder.app.outbox, consumer, config, wait_s=0.02, part=part, share=share)
            for part in parts_of(consumer.group, self.parts)
        ]

    async def record(self, fact: Fact) -> None:
        if fact.show_id == self.unlucky:
            raise ValueError("not today")
        self.received.append(fact)

    async def look(self) -> None:
        for worker in self.workers:
            await worker.consume()

    @property
    def shows(self) -> set[int]:
        return {fact.show_id for fact in self.received}


async def add_facts(app: App, count: int) -> list[int]:
    """So many of each show."""
    added = [await app.postgres.fetchval(ADD, show, n + 1) for n in range(count) for show in SHOWS]
    await relayed(app)
    return added


async def consume(wanted: list[int], *machines: Machine) -> None:
    """Until all of these facts were received, by whichever of them."""

    async def have_all() -> bool:
        await asyncio.gather(*(machine.look() for machine in machines))
        return set(wanted) <= {fact.id for machine in machines for fact in machine.received}

    await until(have_all)


async def test_two_machines_share_a_group_by_show_and_each_fact_comes_once(app: App) -> None:
    recorder = await FactRecorder(app).open()
    one, two = Machine(recorder, 4), Machine(recorder, 4)
    await asyncio.gather(one.look(), two.look())  # each takes a part
    wanted = await add_facts(app, 5)

    await consume(wanted, one, two)

    received = [fact for machine in (one, two) for fact in machine.received]
    assert Counter(fact.id for fact in received) == Counter(wanted)
    assert one.shows & two.shows == set()
    assert min(len(one.shows), len(two.shows)) >= 2
    for machine in (one, two):
        for show in machine.shows:
            ids = [fact.id for fact in machine.received if fact.show_id == show]
            assert ids == sorted(ids)
    [group] = [row for row in await app.outbox.groups() if row["name"] == recorder.group]
    assert (group["parts"], group["behind"], group["is_read"]) == (4, 0, True)


async def test_no_fact_is_lost_when_the_number_of_parts_changes(app: App) -> None:
    """Every part goes on where the last of the old ones was, so some facts come twice."""
    recorder = await FactRecorder(app).open()
    wanted = await add_facts(app, 2)
    before, after, single = Machine(recorder, 3), Machine(recorder, 2), Machine(recorder, 1)
    await before.workers[1].consume()
    early = [fact.id for fact in before.received]

    await turns_are_free(app)
    await consume(wanted, after)
    rows = [row["name"] for row in await app.postgres.fetch(ROWS, recorder.group)]
    more = await add_facts(app, 1)
    await consume(more, single)

    assert set(early) < set(wanted)
    assert rows == [recorder.group, f"{recorder.group}:2/2"]
    assert [row["name"] for row in await app.postgres.fetch(ROWS, recorder.group)] == [recorder.group]


async def test_a_fact_that_waits_is_retried_by_the_part_that_has_its_show(app: App) -> None:
    recorder = await FactRecorder(app).open()
    show = SHOWS[3]
    machine = Machine(recorder, 2, unlucky=show)
    wanted = await add_facts(app, 1)
    failing = [id for id, of in zip(wanted, SHOWS, strict=True) if of == show]
    await consume([id for id in wanted if id not in failing], machine)

    machine.unlucky = 0
    await recorder.retry_now()
    await machine.workers[(show + 1) % 2].consume()
    others = [fact.id for fact in machine.received if fact.show_id == show]
    await machine.workers[show % 2].consume()

    assert others == []
    assert [fact.id for fact in machine.received if fact.show_id == show] == failing
