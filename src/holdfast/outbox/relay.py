"""Publishing facts: from the outbox to the bus, and from the bus to the consumers (R28).

Any number of workers may run these jobs. For each part of a group (parts.py) one of them has the turn; the
others look whether its time has passed, and take over. Two at once, as after a pause, publish a fact twice:
the bus refuses a message that does not follow its last one, and consumers act once (consume_once).
"""

import asyncio
import os
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import lru_cache

import msgspec
import structlog

from holdfast.config import Config
from holdfast.engines.bus import Bus, Message, OutOfStep, Reader, in_step
from holdfast.engines.errors import EngineDown
from holdfast.engines.loop import Job, Pause, WhenDue
from holdfast.engines.metrics import metrics
from holdfast.engines.tracing import NOTHING, Span, Value, resume
from holdfast.engines.turns import Turns
from holdfast.outbox.consumer import Consumer, Parked, ReaderTurn, describe_error
from holdfast.outbox.fact import Fact
from holdfast.outbox.parts import Part, Share, parts_of
from holdfast.outbox.store import RELAY, RENEW_S, Outbox, Q
from holdfast.outbox.wire import from_json, to_json

log = structlog.get_logger(__name__)

PURGE_MAX = 5000
BUS_WAIT_S = 0.9  # how long a consumer waits for the bus before it reads the outbox itself
# An idle consumer waits for the bus several times before it looks at its turn again: with the last wait less
# than RENEW_S. Facts become known by the relay alone, and it checks each second that the bus has them.
KEEP_TURN_S = 2.0
AWAY_S = 1.0  # a bus that could not be reached is left alone for this long
LOOK_S = 1.0  # pause between two checks that an idle bus still has its last message
BUSY_S = 10.0  # after facts the relay polls by itself; then it waits for a look that finds some
READ_ONCE_MAX = 4096  # decoded facts cached per process: its groups read the same bytes

ConsumeResult = tuple[
    list[Parked], Fact | None, EngineDown | None
]  # facts to park, the first one not tried, and why

LOG = Part(RELAY)  # the relay publishes all facts in one order

decode_cached = lru_cache(READ_ONCE_MAX)(from_json)


def new_reader_id() -> str:
    """A name that no other process has, nor this one after a restart."""
    return f"{os.getpid()}-{secrets.token_hex(6)}"


class Relay:
    def __init__(self, outbox: Outbox, config: Config) -> None:
        self._outbox = outbox
        self._config = config
        self._reader = new_reader_id()
        self._away_until = 0.0
        self._looked_at = 0.0
        self._begins_at = 0  # the checkpoint from which an empty log is to be filled
        self._busy_until = 0.0

    def rest_s(self) -> float:
        return 0.0 if time.monotonic() < self._busy_until else LOOK_S

    async def relay(self) -> int:
        """Publish settled facts in order. Without a bus they wait in the outbox."""
        turn = await self._turn()
        if turn is None:
            return 0
        limit = self._config.relay_max
        # As nearly always, there is nothing new: `turn` was the only statement.
        settled = await self._outbox.settle(limit) if turn.last > turn.settled else turn.settled
        if time.monotonic() < self._away_until:
            return 0
        is_behind = settled > turn.checkpoint
        if is_behind:
            self._busy_until = time.monotonic() + BUSY_S
        facts = await self._outbox.facts_after(turn.checkpoint, limit) if is_behind else []
        try:
            return await self._publish(turn, facts)
        except EngineDown as down:
            if down.engine != "bus":
                raise
            log.warning("bus unreachable", error=repr(down.__cause__ or down))
            metrics.add("bus_away_total")
            self._away_until = time.monotonic() + AWAY_S
            return 0

    async def purge(self) -> int:
        return await self._outbox.purge(self._config.facts_keep_h, PURGE_MAX)

    async def measure(self) -> int:
        """Lag and backlog of every consumer group."""
        for group in await self._outbox.groups():
            name = group["name"]
            metrics.measure("facts_lag_seconds", group["lag_s"], group=name)
            metrics.measure("facts_behind", group["behind"], group=name)
            metrics.measure("facts_parked", group["parked"], group=name)
            metrics.measure("facts_dead", group["dead"], group=name)
        return 0

    async def _turn(self) -> ReaderTurn | None:
        try:
            return await self._outbox.turn(LOG, self._reader)
        except LookupError:
            await self._outbox.add_group(RELAY, from_oldest=True)
            return await self._outbox.turn(LOG, self._reader)

    async def _publish(self, turn: ReaderTurn, facts: Sequence[Fact]) -> int:
        bus = await self._outbox.bus()
        try:
            if facts:
                end = 0 if turn.checkpoint == self._begins_at else turn.checkpoint
                # The bus refuses messages that do not follow `end`. So a relay that lost its turn while
                # paused cannot publish after its successor; a crash before `move` repeats messages.
                await bus.append(_messages(turn.checkpoint, facts), end)
                self._begins_at = 0
                await self._outbox.move(turn, facts[-1].id)
                metrics.add("facts_relayed_total", len(facts))
            elif time.monotonic() > self._looked_at + LOOK_S:
                self._looked_at = time.monotonic()
                if (last := await bus.last()) != turn.checkpoint:
                    raise OutOfStep(last)
        except OutOfStep as found:
            await self._resume_from(turn, bus, found.last)
            return int(bool(facts))
        return len(facts)

    async def _resume_from(self, turn: ReaderTurn, bus: Bus, last: int) -> None:
        """Continue from where the log really ends. Facts that it lost are published again."""
        again = await self._outbox.turn(LOG, self._reader)
        if again is None or again.checkpoint != turn.checkpoint:
            return  # another relay has the turn
        target = last
        # The bus is ahead of the ledger: a backup was restored, so those facts never happened.
        if last > again.settled:
            await bus.clear()
            last = 0
        # The bus is empty: refill it from the slowest group's checkpoint, so that all groups can use it.
        if not last:
            oldest = await self._outbox.oldest_checkpoint()
            target = self._begins_at = turn.checkpoint if oldest is None else min(oldest, turn.checkpoint)
        if target != turn.checkpoint and await self._outbox.move(turn, target) and target < turn.checkpoint:
            log.warning("the bus lost facts", published=turn.checkpoint, again_from=target)
            metrics.add("bus_forgot_total")


def _messages(after: int, facts: Sequence[Fact]) -> list[Message]:
    befores = [after, *(fact.id for fact in facts[:-1])]
    return [Message(fact.id, before, to_json(fact)) for before, fact in zip(befores, facts, strict=True)]


class ConsumerWorker:
    """One part of a consumer's facts, in one process. Without `part` and `share`: all of them."""

    def __init__(
        self,
        outbox: Outbox,
        consumer: Consumer,
        config: Config,
        *,
        wait_s: float = BUS_WAIT_S,
        part: Part | None = None,
        share: Share | None = None,
    ) -> None:
        self._outbox = outbox
        self._consumer = consumer
        self._part = part or Part(consumer.group)
        self._share = share or Share(time.monotonic)
        self._limit = config.relay_max
        self._wait_s = wait_s
        self.keep_turn_s = 0.0  # a turn without facts is not looked at again for so long
        self._idle_turn: ReaderTurn | None = None
        self._keep_until = 0.0
        self._reader = new_reader_id()
        self._bus_reader: Reader | None = None
        self._is_behind = False

    async def consume(self) -> int:
        """Consume the next facts, then move the checkpoint. A crash before that repeats them."""
        turn, self._idle_turn = self._idle_turn or await self._turn(), None
        if turn is None:
            return 0
        again = await self._retry() if turn.has_parked else 0
        facts = await self._next(turn)
        if not facts:
            is_idle = turn.settled == turn.checkpoint and not turn.has_parked
            self._idle_turn = turn if is_idle and time.monotonic() < self._keep_until else None
            return again
        async with self._renewed_turn():
            parked, undone, down = await self._consume(facts, has_parked=turn.has_parked)
        # The checkpoint may pass only facts that were consumed or parked: stop before the first one that
        # was not tried because an engine was down.
        done = facts if undone is None else facts[: facts.index(undone)]
        if done and not await self._outbox.move(
            turn, done[-1].id, [one for one in parked if one.fact.id <= done[-1].id]
        ):
            log.warning("turn lost to another process", group=turn.group)
        own = sum(self._part.has(fact.show_id) for fact in done)
        metrics.add("facts_processed_total", own, group=turn.group)
        if down is not None:
            raise down
        return again + len(done)

    async def _turn(self) -> ReaderTurn | None:
        self._keep_until = time.monotonic() + self.keep_turn_s
        try:
            turn = await self._outbox.turn(self._part, self._reader, self._share.may_take)
        except LookupError:
            await self._outbox.add_group(
                self._part.group, from_oldest=self._consumer.from_oldest, parts=self._part.of
            )
            turn = await self._outbox.turn(self._part, self._reader, self._share.may_take)
        self._share.note(self._part, is_held=turn is not None)
        if turn is not None and self._share.should_offer(self._part):
            await self._outbox.give_turn_back(turn)
            return None
        return turn

    @asynccontextmanager
    async def _renewed_turn(self) -> AsyncIterator[None]:
        """Renews the turn while a batch is consumed: a slow process does not lose it, a dead one does."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_S / 2)
                try:
                    await self._outbox.turn(self._part, self._reader)
                except EngineDown as down:  # the ledger is away, so no other process can take the turn either
                    log.info("turn not renewed", group=self._consumer.group, error=repr(down))

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()

    async def _next(self, turn: ReaderTurn) -> list[Fact]:
        """From the bus; facts that it lost or does not have in time come from the outbox."""
        facts = [] if self._is_behind else await self._from_bus(turn)
        if not facts and turn.settled > turn.checkpoint:
            facts = await self._outbox.facts_after(turn.checkpoint, self._limit)
            self._is_behind = len(facts) == self._limit
        else:
            self._is_behind = False
        return facts

    async def _from_bus(self, turn: ReaderTurn) -> list[Fact]:
        try:
            if self._bus_reader is None:
                self._bus_reader = (await self._outbox.bus()).reader()
            messages = await self._bus_reader.read(turn.checkpoint, self._limit, self._wait_s)
            return [decode_cached(message.body) for message in in_step(turn.checkpoint, messages)]
        except EngineDown as down:
            if down.engine != "bus":
                raise
            self._keep_until = 0.0  # the outbox is all there is: look at it often
        except msgspec.DecodeError as error:
            log.error("cannot decode message from the bus", error=repr(error))
        return []

    async def _consume(self, facts: Sequence[Fact], *, has_parked: bool) -> ConsumeResult:
        wanted = [fact for fact in facts if self._part.has(fact.show_id) and self._consumer.wants(fact)]
        if not wanted:
            return [], None, None
        waiting: set[str] = set()
        if has_parked:
            waiting = await self._outbox.keys_waiting(self._consumer.group, [fact.key for fact in wanted])
        if self._consumer.call_many is None:
            return await self._consume_by_booking(wanted, waiting)
        # A parked fact of the same booking comes first: what follows it waits, so the order is preserved.
        behind = [Parked(fact, 0) for fact in wanted if fact.key in waiting]
        ready = [fact for fact in wanted if fact.key not in waiting] if behind else wanted
        try:
            if ready:
                with self._span(ready):
                    await self._consumer.call_many(ready)
            return behind, None, None
        except EngineDown as down:
            return behind, ready[0], down
        except Exception as error:
            log.warning(
                "batch failed; retrying facts one by one", group=self._consumer.group, error=repr(error)
            )
            return await self._consume_by_booking(wanted, waiting)

    async def _consume_by_booking(self, facts: Sequence[Fact], waiting: set[str]) -> ConsumeResult:
        """Bookings concurrently, the facts of each booking in order."""
        bookings: dict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            bookings[fact.key].append(fact)
        places = asyncio.Semaphore(self._consumer.at_once_max)
        parked: list[Parked] = []
        undone: list[Fact] = []
        downs: list[EngineDown] = []

        async def consume_booking(key: str, own: list[Fact]) -> None:
            must_wait = key in waiting
            for i, fact in enumerate(own):
                if must_wait:
                    parked.append(Parked(fact, 0))
                    continue
                try:
                    async with places:
                        with self._span([fact]):
                            await self._consumer.handle(fact)
                except EngineDown as down:
                    downs.append(down)
                    undone.extend(own[i:])
                    return
                except Exception as error:
                    log.warning(
                        "fact failed and is parked", group=self._consumer.group, id=fact.id, error=repr(error)
                    )
                    parked.append(Parked(fact, 1, describe_error(error)))
                    must_wait = True

        async with asyncio.TaskGroup() as group:
            for key, own in bookings.items():
                group.create_task(consume_booking(key, own))
        first = min(undone, key=lambda fact: fact.id, default=None)
        return parked, first, downs[0] if downs else None

    def _span(self, facts: Sequence[Fact]) -> AbstractContextManager[Span | None]:
        """Continues the traces of the facts that have one; nothing if none has."""
        traces = [fact.trace for fact in facts if isinstance(fact.trace, str)]
        if not traces:
            return NOTHING
        group = self._consumer.group
        about: dict[str, Value] = {"holdfast.group": group, "holdfast.facts": len(facts)}
        if len(facts) == 1:
            about |= {"holdfast.kind": facts[0].kind, "holdfast.fact_id": facts[0].id}
            about |= {"holdfast.booking_id": facts[0].booking_id} if facts[0].booking_id else {}
        return resume("consume", group, traces, about)

    async def _retry(self) -> int:
        """Parked facts that are due, the first one of each booking."""
        parked = await self._outbox.parked_due(self._consumer.group, self._limit)
        due = [one for one in parked if self._part.has(one.fact.show_id)]
        for one in due:
            try:
                with self._span([one.fact]):
                    await self._consumer.handle(one.fact)
            except EngineDown:
                raise
            except Exception as error:
                tried = Parked(one.fact, one.tries + 1, describe_error(error))
                if await self._outbox.park_again(self._consumer, tried):
                    log.error(
                        "fact dead-lettered", group=self._consumer.group, id=one.fact.id, error=repr(error)
                    )
                    metrics.add("facts_died_total", group=self._consumer.group)
            else:
                await self._outbox.unpark(self._consumer.group, one.fact.id)
        return len(due)


def only_when_full(job: Job, batch_size: int) -> Job:
    """Skip the immediate re-run unless the batch was full: later facts then share a batch."""

    async def run() -> int:
        done = await job()
        return done if done >= batch_size else 0

    run.__qualname__ = job.__qualname__
    return run


def workers_for(outbox: Outbox, consumer: Consumer, config: Config) -> list[ConsumerWorker]:
    """One for each part. Of all processes that run these, each gets some parts."""
    share = Share(time.monotonic)
    parts = parts_of(consumer.group, config.consumer_parts)
    workers = [ConsumerWorker(outbox, consumer, config, part=part, share=share) for part in parts]
    for worker in workers:
        worker.keep_turn_s = KEEP_TURN_S
    return workers


def jobs(
    outbox: Outbox, consumers: Sequence[Consumer], config: Config, turns: Turns
) -> list[tuple[Pause, Job]]:
    """The jobs of a worker process: publish, consume, measure, purge."""
    relay = Relay(outbox, config)
    workers = [one.consume for consumer in consumers for one in workers_for(outbox, consumer, config)]
    pause_s = config.relay_pause_ms / 1000
    return [
        (WhenDue(Q.is_due, pause_s, rest_s=relay.rest_s), only_when_full(relay.relay, config.relay_max)),
        *((pause_s, only_when_full(one, config.relay_max)) for one in workers),
        turns.alone(5.0, relay.measure),
        (60.0, relay.purge),
    ]
