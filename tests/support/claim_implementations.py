"""Implementations of `holdfast.claim`'s front that the conformance tests run on, and how they are broken.

The tests use nothing but `Implementation` and the public names. For another implementation (another server,
another language behind the same calls), write a class with these methods and add it to the fixture.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from holdfast.claim import Claim, Claimed, Contents, Pool, PoolOutcome, Pools, connect, pool_keys
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.open_redis import open_redis
from tests.support.engine_folder import engine_folder
from tests.support.wait import until

SIZE = 20  # units of a pool
_pool_ids = count(1)


class Implementation(Protocol):
    def connect(self) -> Pools:
        """As another process would: no memory is shared with other connections."""

    def connect_losing_replies(self) -> Pools:
        """Requests after the next `lose_a_reply` are carried out once without their reply coming back."""

    def lose_a_reply(self) -> None: ...

    async def now_ms(self) -> int:
        """The clock that ends claims."""

    async def count_entries(self, pool_id: int) -> int:
        """How much the server stores for the pool, apart from its units."""

    async def lose_all(self) -> None:
        """The server goes on without its data."""

    async def restart(self, *, with_old_data: bool = False) -> None:
        """Another server process; with the data of the last `save`, or none."""

    async def save(self) -> None: ...

    async def stop(self) -> None: ...

    async def start(self) -> None: ...


class OnValkey:
    """The library on an embedded Valkey of its own."""

    def __init__(self, engines: Engines, link: "LossyLink", *, batch_max: int) -> None:
        self._engines = engines
        self._link = link
        self._batch_max = batch_max
        self._redis = open_redis(engines.redis_url, links_max=1, timeout_s=5)
        self._saved: dict[bytes, bytes] = {}

    def connect(self) -> Pools:
        return connect(self._engines.redis_url, batch_max=self._batch_max)

    def connect_losing_replies(self) -> Pools:
        return connect(self._link.url, batch_max=self._batch_max)

    def lose_a_reply(self) -> None:
        self._link.loses_next = True

    async def now_ms(self) -> int:
        seconds, micros = await self._redis.call("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def count_entries(self, pool_id: int) -> int:
        _, ends, owners, _, _ = pool_keys(f"pool:{pool_id}")
        return int(await self._redis.call("ZCARD", ends)) + int(await self._redis.call("HLEN", owners))

    async def lose_all(self) -> None:
        await self._redis.call("FLUSHALL")

    async def save(self) -> None:
        keys = await self._redis.call("KEYS", "*")
        self._saved = {key: await self._redis.call("DUMP", key) for key in keys}

    async def restart(self, *, with_old_data: bool = False) -> None:
        await self.stop()
        await self.start()
        for key, dump in self._saved.items() if with_old_data else ():
            await self._redis.call("RESTORE", key, 0, dump)

    async def stop(self) -> None:
        await self._engines.valkey.hold()
        await self._redis.close()

    async def start(self) -> None:
        await self._engines.valkey.release()


class LossyLink:
    """A way to the server that can lose a reply: the request arrives, and the connection ends before it."""

    def __init__(self, target: str, own: Path) -> None:
        self._target = target
        self.url = f"unix://{own}"
        self.loses_next = False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._target)
        await asyncio.gather(self._pump(reader, back, False), self._pump(there, writer, True))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, has_replies: bool
    ) -> None:
        with suppress(OSError):  # the other side has gone
            while data := await reader.read(65_536):
                if has_replies and self.loses_next:
                    self.loses_next = False
                    break
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def a_lossy_link(redis_url: str, folder: Path) -> AsyncIterator[LossyLink]:
    own = folder / "lossy.sock"
    link = LossyLink(redis_url.removeprefix("unix://"), own)
    server = await asyncio.start_unix_server(link.carry, str(own))
    try:
        yield link
    finally:
        server.close()


@asynccontextmanager
async def on_valkey(*, batch_max: int) -> AsyncIterator[OnValkey]:
    with engine_folder() as folder:
        async with (
            engines(folder, database_url="not used") as both,
            a_lossy_link(both.redis_url, folder) as link,
        ):
            yield OnValkey(both, link, batch_max=batch_max)


class Store:
    """A durable store: what its rows say, and how often they were read."""

    def __init__(self) -> None:
        self.contents = Contents()
        self.reads = 0
        self.is_quick = asyncio.Event()
        self.is_quick.set()

    async def load(self) -> Contents:
        self.reads += 1
        found = self.contents
        await self.is_quick.wait()  # what was read may be old by the time it arrives
        return found


def new_pool_id() -> int:
    return next(_pool_ids)


async def take(
    pool: Pool, *units: int, owner: int = 1, ttl_s: float = 60, claim_id: str | None = None
) -> Claim:
    return claimed(await pool.claim(units, owner=owner, ttl_s=ttl_s, claim_id=claim_id))


def claimed(outcome: PoolOutcome) -> Claim:
    assert isinstance(outcome, Claimed), outcome
    return outcome.claim


def won(outcomes: Sequence[PoolOutcome]) -> list[Claimed]:
    return [outcome for outcome in outcomes if isinstance(outcome, Claimed)]


async def states(pool: Pool) -> str:
    return (await pool.read()).units.decode()


async def wait_for_end(server: Implementation, pool: Pool, claim: Claim) -> None:
    """Until the server's clock is past the end of the claim."""
    end_ms = ((await pool.read(with_claims=True)).claims or {}).get(str(claim), 0)

    async def is_over() -> bool:
        return await server.now_ms() > end_ms

    await until(is_over)
