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

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from holdfast.engines.bus import BusPlace, Message, OutOfStep, Reader
from holdfast.engines.down import EngineDown

DOWN_FOR_S = 0.25
OPEN_WITHIN_S = 10.0
POSITION, AFTER = "position", "after"
LOST = (KafkaError, OSError, TimeoutError)


class KafkaBus:
    def __init__(self, place: BusPlace) -> None:
        self._servers = place.url.removeprefix("kafka://").split("?")[0]
        self._place = TopicPartition(place.name, 0)
        self._timeout_s = place.timeout_s
        self._producer: Any = None
        self._looker: Any = None  # looks at the end of the log
        self._opening = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._down_until = 0.0

    async def append(self, messages: Sequence[Message], end: int) -> None:
        async with self.trouble():
            if (last := await self._last()) != end:
                raise OutOfStep(last)
            topic, part = self._place
            sent = [
                await self._producer.send(topic, one.body, partition=part, headers=_headers(one))
                for one in messages
            ]
            async with asyncio.timeout(self._timeout_s):
                await asyncio.gather(*sent)

    async def last(self) -> int:
        async with self.trouble():
            return await self._last()

    async def clear(self) -> None:
        async with self.trouble():
            admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
            await admin.start()
            try:
                ends = await self._looker.end_offsets([self._place])
                await admin.delete_records({self._place: RecordsToDelete(ends[self._place])})
            finally:
                await admin.close()

    def reader(self) -> Reader:
        return KafkaReader(self, self._place)

    async def close(self) -> None:
        producer, looker, self._producer, self._looker = self._producer, self._looker, None, None
        for one in (producer, looker):
            if one is not None:
                await one.stop()

    @asynccontextmanager
    async def trouble(self) -> AsyncIterator[None]:
        """Connected; trouble inside becomes EngineDown, and the links are given up."""
        if time.monotonic() < self._down_until:
            raise EngineDown("bus")
        try:
            async with self._opening:
                await self._open()
            yield
        except LOST as error:
            self._down_until = time.monotonic() + DOWN_FOR_S
            await self.close()
            raise EngineDown("bus", unknown=True) from error

    async def consumer(self) -> Any:
        """A link that reads from where it is told; it belongs to no group of Kafka's."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=int(self._timeout_s * 1000),
        )
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        consumer.assign([self._place])
        return consumer

    async def _open(self) -> None:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                bootstrap_servers=self._servers,
                enable_idempotence=True,  # a retry of the client is not a second message
                request_timeout_ms=int(self._timeout_s * 1000),
            )
            async with asyncio.timeout(OPEN_WITHIN_S):
                await self._producer.start()
                await self._producer.partitions_for(self._place.topic)  # made by that, where it is allowed
        if self._looker is None:
            self._looker = await self.consumer()

    async def _last(self) -> int:
        async with self._looking, asyncio.timeout(self._timeout_s):
            begin, end = await span(self._looker, self._place)
            return await position_at(self._looker, self._place, end - 1) if end > begin else 0


class KafkaReader:
    def __init__(self, bus: KafkaBus, place: Any) -> None:
        self._bus = bus
        self._place = place
        self._consumer: Any = None
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
            await consumer.stop()

    async def _read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        if self._consumer is None:
            self._consumer, self._at = await self._bus.consumer(), -1
        if self._at != after:
            await self._begin(after)
        fetched = await self._consumer.getmany(
            self._place, timeout_ms=int(max(wait_s, 0.05) * 1000), max_records=limit
        )
        found: list[Message] = []
        for record in fetched.get(self._place, []):
            message = _message(record)
            if message.position > self._at:  # else a second relay said it again
                found.append(message)
                self._at = message.position
        return found

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


def _headers(message: Message) -> list[tuple[str, bytes]]:
    return [(POSITION, str(message.position).encode()), (AFTER, str(message.after).encode())]


def _message(record: Any) -> Message:
    headers = dict(record.headers)
    return Message(int(headers[POSITION]), int(headers[AFTER]), record.value)
