"""A log in Kafka: a topic with one partition. kafka://host:9092,other:9092

Kafka does not refuse a message that is out of place. We look before we append; two writers that look at once
leave duplicates, which readers skip, and never another order: each sends what it sends from the end it saw.
How long the topic keeps messages is the topic's setting, not ours.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from holdfast.engines.bus import BusPlace, Message, OutOfStep, Reader
from holdfast.engines.errors import EngineDown

DOWN_FOR_S = 0.25
OPEN_WITHIN_S = 10.0
STOP_WITHIN_S = 2.0
POLL_S = 0.5  # a reader's question stays with the server this long
LOOK_POLL_S = 0.02  # short, because reading the end of the log should not wait
TIMEOUT_MIN_S = 4 * POLL_S
POSITION, AFTER = "position", "after"
LOST = (KafkaError, OSError, TimeoutError)

log = structlog.get_logger(__name__)


class KafkaBus:
    def __init__(self, place: BusPlace) -> None:
        self._servers = place.url.removeprefix("kafka://").split("?")[0]
        self._place = TopicPartition(place.name, 0)
        self._producer: Any = None
        self._looker: Any = None  # looks at the end of the log
        self._opening = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._down_until = 0.0
        self._readers: list[KafkaReader] = []  # each has its own connection to close
        self.troubles = 0  # so far; a link from before the last one is not to be trusted
        # Where we left the log: its end for Kafka, and the position of its last message.
        self._known = (-1, 0)
        self.timeout_s = max(place.timeout_s, TIMEOUT_MIN_S)

    async def append(self, messages: Sequence[Message], end: int) -> None:
        async with self._links() as (producer, looker):
            if (last := await self._last(looker)) != end:
                raise OutOfStep(last)
            topic, part = self._place
            async with asyncio.timeout(self.timeout_s):
                sent = [
                    await producer.send(topic, one.body, partition=part, headers=_headers(one))
                    for one in messages
                ]
                stored = await asyncio.gather(*sent)
            self._known = (stored[-1].offset + 1, messages[-1].position)

    async def last(self) -> int:
        async with self._links() as (_, looker):
            return await self._last(looker)

    async def clear(self) -> None:
        async with self._links() as (_, looker):
            admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
            await admin.start()
            try:
                ends = await looker.end_offsets([self._place])
                await admin.delete_records({self._place: RecordsToDelete(ends[self._place])})
            finally:
                await admin.close()

    def reader(self) -> Reader:
        reader = KafkaReader(self, self._place)
        self._readers.append(reader)
        return reader

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()
        await self._give_up()

    async def _give_up(self) -> None:
        producer, looker, self._producer, self._looker = self._producer, self._looker, None, None
        self._known = (-1, 0)
        for one in (producer, looker):
            if one is not None:
                await stop(one)

    @asynccontextmanager
    async def trouble(self) -> AsyncIterator[None]:
        """What goes wrong inside becomes EngineDown, for a moment to everybody."""
        if time.monotonic() < self._down_until:
            raise EngineDown("bus")
        try:
            yield
        except LOST as error:
            self._down_until = time.monotonic() + DOWN_FOR_S
            self.troubles += 1
            raise EngineDown("bus", unknown=True) from error

    async def consumer(self, poll_s: float = POLL_S) -> Any:
        """A connection that reads from a given position; it belongs to no Kafka consumer group."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=int(poll_s * 1000),
            request_timeout_ms=int(self.timeout_s * 1000),
        )
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                await consumer.start()
        except BaseException:
            await stop(consumer)
            raise
        consumer.assign([self._place])
        return consumer

    @asynccontextmanager
    async def _links(self) -> AsyncIterator[tuple[Any, Any]]:
        """Who writes and who looks. After trouble both are given up: fresh ones find out what is there."""
        async with self.trouble():
            try:
                async with self._opening:
                    await self._open()
                    links = self._producer, self._looker
                yield links
            except LOST:
                await self._give_up()
                raise

    async def _open(self) -> None:
        if self._producer is None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                enable_idempotence=True,  # a retry of the client is not a second message
                request_timeout_ms=int(self.timeout_s * 1000),
            )
            try:
                async with asyncio.timeout(OPEN_WITHIN_S):
                    await producer.start()
                    await producer.partitions_for(self._place.topic)  # made by that, where it is allowed
            except BaseException:
                await stop(producer)
                raise
            self._producer = producer
        if self._looker is None:
            self._looker = await self.consumer(LOOK_POLL_S)

    async def _last(self, looker: Any) -> int:
        async with self._looking, asyncio.timeout(self.timeout_s):
            begin, end = await span(looker, self._place)
            if end == begin:
                return 0
            if end == self._known[0]:
                return self._known[1]
            looker.resume(self._place)
            position = await position_at(looker, self._place, end - 1)
            looker.pause(self._place)
            return position


class KafkaReader:
    """Has its own connection, so that its errors do not affect the writer."""

    def __init__(self, bus: KafkaBus, place: Any) -> None:
        self._bus = bus
        self._place = place
        self._consumer: Any = None
        self._opened_after = 0  # troubles
        self._at = -1

    async def read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        async with self._bus.trouble():
            try:
                return await self._read(after, limit, wait_s)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await stop(consumer)

    async def _read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        if self._opened_after != self._bus.troubles:
            await self.close()
        if self._consumer is None:
            self._opened_after = self._bus.troubles
            self._consumer, self._at = await self._bus.consumer(), -1
        if self._at != after:
            async with asyncio.timeout(self._bus.timeout_s):
                await self._begin(after)
        fetched = await self._consumer.getmany(
            self._place, timeout_ms=int(max(wait_s, 0.05) * 1000), max_records=limit
        )
        found: list[Message] = []
        for record in fetched.get(self._place, []):
            message = _message(record)
            if message.position > self._at:  # else a second relay sent it again
                found.append(message)
                self._at = message.position
        if not fetched:
            await self._look()
        return found

    async def _look(self) -> None:
        """Nothing came: the client reports the same if the server is down or was reset."""
        async with asyncio.timeout(self._bus.timeout_s):
            _, end = await span(self._consumer, self._place)
            if await self._consumer.position(self._place) > end:
                self._at = -1

    async def _begin(self, after: int) -> None:
        """The first message beyond that position: positions grow along the log."""
        low, high = await span(self._consumer, self._place)
        while low < high:
            middle = (low + high) // 2
            if await position_at(self._consumer, self._place, middle) > after:
                high = middle
            else:
                low = middle + 1
        self._consumer.seek(self._place, low)
        self._at = after


async def span(consumer: Any, place: Any) -> tuple[int, int]:
    begins, ends = await asyncio.gather(consumer.beginning_offsets([place]), consumer.end_offsets([place]))
    return begins[place], ends[place]


async def position_at(consumer: Any, place: Any, offset: int) -> int:
    consumer.seek(place, offset)
    return _message(await consumer.getone(place)).position


async def stop(link: Any) -> None:
    """In a task of its own: with its server gone, a link's stop() is itself cancelled by what it cancels."""
    stopping = asyncio.create_task(link.stop())
    _, late = await asyncio.wait({stopping}, timeout=STOP_WITHIN_S)
    if late:
        stopping.cancel()
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.info("a link to Kafka did not stop well", error=repr(error))


def _headers(message: Message) -> list[tuple[str, bytes]]:
    return [(POSITION, str(message.position).encode()), (AFTER, str(message.after).encode())]


def _message(record: Any) -> Message:
    headers = dict(record.headers)
    return Message(int(headers[POSITION]), int(headers[AFTER]), record.value)
