"""A log in NATS JetStream: a stream with one subject. nats://name:password@host:4222,other:4222?replicas=3

With replicas, an append is acknowledged when most of the nodes have it: one of three may die with its disk.
Every message says after which sequence number of the stream it belongs; the server refuses any other place.
Its own window for duplicates is not used: it would reject messages sent again after the stream was emptied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from holdfast.engines.bus import BusPlace, Message, OutOfStep, Reader
from holdfast.engines.errors import EngineDown

DOWN_FOR_S = 0.25
WRONG_PLACE = 10071  # "wrong last sequence"
OTHER_SETTINGS = 10058  # "stream name already in use with a different configuration"
LOOK_S = 2.0  # pause between two checks that the server still has an idle reader
LISTENS_FOR_S = 60.0  # the server drops a reader that is idle for this long
POSITION, AFTER = "Position", "After"
LOST = (NatsError, OSError, TimeoutError)


def servers_in(url: str) -> list[str]:
    """An address for each node; name and password are the same for all."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    credentials, at, hosts = rest.rstrip("/").rpartition("@")
    return [f"{scheme}://{credentials}{at}{host.strip()}" for host in hosts.split(",")]


def replicas_in(place: BusPlace) -> int:
    given = parse_qs(urlsplit(place.url).query).get("replicas")
    return int(given[0]) if given else place.replicas


class NatsBus:
    def __init__(self, place: BusPlace) -> None:
        self._servers = servers_in(place.url)
        self._stream = place.name
        self._timeout_s = place.timeout_s
        self._config = StreamConfig(
            name=place.name,
            subjects=[place.name],
            max_msgs=place.messages_max,
            discard=DiscardPolicy.OLD,
            storage=StorageType.FILE,
            num_replicas=replicas_in(place),
        )
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._down_until = 0.0

    async def append(self, messages: Sequence[Message], end: int) -> None:
        async with self.stream() as stream:
            sequence, position = await self._end(stream)
            if position != end:
                raise OutOfStep(position)
            try:
                await asyncio.gather(
                    *(self._publish(stream, one, sequence + i) for i, one in enumerate(messages))
                )
            except APIError as error:
                if error.err_code != WRONG_PLACE:
                    raise
                raise OutOfStep((await self._end(stream))[1]) from error

    async def last(self) -> int:
        async with self.stream() as stream:
            return (await self._end(stream))[1]

    async def clear(self) -> None:
        async with self.stream() as stream:
            await stream.purge_stream(self._stream)

    def reader(self) -> Reader:
        return NatsReader(self, self._stream)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[JetStreamContext]:
        """The stream, made if it was not there. Trouble becomes EngineDown, and the link is given up."""
        if time.monotonic() < self._down_until:
            raise EngineDown("bus")
        try:
            client = await self._connected()
            yield client.jetstream(timeout=self._timeout_s)
        except LOST as error:
            self._down_until = time.monotonic() + DOWN_FOR_S
            await self.close()
            raise EngineDown("bus", unknown=True) from error

    async def _connected(self) -> Client:
        async with self._opening, asyncio.timeout(self._timeout_s):
            if self._client is None or not self._client.is_connected:
                self._client = Client()
                await self._client.connect(  # to any of them, so that a node without a leader is left again
                    self._servers,
                    allow_reconnect=False,  # a fresh link finds out what the server still has
                    max_reconnect_attempts=1,
                    connect_timeout=self._timeout_s / len(self._servers),  # type: ignore[arg-type]
                    error_cb=_ignore_error,
                )
                await self._make(self._client.jetstream(timeout=self._timeout_s))
        return self._client

    async def _make(self, stream: JetStreamContext) -> None:
        """The stream as it is configured. One that has other settings, as fewer replicas, is changed."""
        try:
            await stream.add_stream(self._config)
        except APIError as error:
            if error.err_code != OTHER_SETTINGS:
                raise
            await stream.update_stream(self._config)

    async def _publish(self, stream: JetStreamContext, message: Message, after_sequence: int) -> None:
        headers = {
            "Nats-Expected-Last-Sequence": str(after_sequence),
            POSITION: str(message.position),
            AFTER: str(message.after),
        }
        await stream.publish(self._stream, message.body, headers=headers)

    async def _end(self, stream: JetStreamContext) -> tuple[int, int]:
        """Sequence number and position of the newest message; the position is 0 when there is none."""
        state = (await stream.stream_info(self._stream)).state
        if not state.messages:
            return state.last_seq, 0
        return state.last_seq, await position_at(stream, self._stream, state.last_seq)


class NatsReader:
    def __init__(self, bus: NatsBus, name: str) -> None:
        self._bus = bus
        self._name = name
        self._at = -1  # the position that the server goes on from
        self._link: JetStreamContext | None = None
        self._subscription: JetStreamContext.PullSubscription | None = None
        self._looked_at = 0.0

    async def read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        async with self._bus.stream() as stream:
            try:
                return await self._read(stream, after, limit, wait_s)
            except BaseException:
                self._subscription = None
                raise

    async def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            async with self._bus.stream():
                await subscription.unsubscribe()

    async def _read(self, stream: JetStreamContext, after: int, limit: int, wait_s: float) -> list[Message]:
        if self._subscription is None or self._at != after or not self._is_of(stream):
            await self._begin(stream, after)
        assert self._subscription is not None
        try:
            raw = await self._subscription.fetch(limit, timeout=max(wait_s, 0.05))
        except TimeoutError:  # the client's own kind, or asyncio's where the server's answer came last
            await self._look()
            return []
        if not raw:
            return []
        found = [Message(_number(m.headers, POSITION), _number(m.headers, AFTER), m.data) for m in raw]
        self._at = found[-1].position
        return [message for message in found if message.position > after]

    async def _look(self) -> None:
        """Nothing came: the client reports the same if the node that had our place in the log is dead."""
        if self._subscription is None or time.monotonic() < self._looked_at + LOOK_S:
            return
        self._looked_at = time.monotonic()
        try:
            await self._subscription.consumer_info()
        except NotFoundError:
            self._subscription = None

    def _is_of(self, stream: JetStreamContext) -> bool:
        return self._link is not None and self._link._nc is stream._nc

    async def _begin(self, stream: JetStreamContext, after: int) -> None:
        if self._subscription is not None and self._is_of(stream):
            await self._subscription.unsubscribe()
        first = await first_after(stream, self._name, after)
        self._subscription = await stream.pull_subscribe(
            self._name,
            stream=self._name,
            config=ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=first,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=LISTENS_FOR_S,
            ),
        )
        self._link, self._at = stream, after


async def first_after(stream: JetStreamContext, name: str, position: int) -> int:
    """Sequence number of the first message beyond a position: positions grow along the stream."""
    state = (await stream.stream_info(name)).state
    low, high = max(1, state.first_seq), state.last_seq + 1
    while low < high:
        middle = (low + high) // 2
        if await position_at(stream, name, middle) > position:
            high = middle
        else:
            low = middle + 1
    return low


async def position_at(stream: JetStreamContext, name: str, sequence: int) -> int:
    """0 for one that has been trimmed meanwhile: whatever was there is before everything that is."""
    try:
        return _number((await stream.get_msg(name, sequence)).headers, POSITION)
    except NotFoundError:
        return 0


def _number(headers: dict[str, str] | None, name: str) -> int:
    return int((headers or {}).get(name, 0))


async def _ignore_error(_error: Exception) -> None:
    """Errors are raised by the call that fails; the client would log them a second time."""
