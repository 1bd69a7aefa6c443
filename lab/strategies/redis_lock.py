"""A lock in Redis around check and write in PostgreSQL: SET NX PX, with and without a fence.

How it works. SET lock:seat token NX PX ttl gives the lock to one client. It reads the row, writes it, and
deletes the lock by a script that compares the token first. Losers are refused by Redis, within a millisecond.

How it fails. The lock ends by a clock that its owner does not watch. A client that stands still between its
check and its write for longer than the time to live (a pause of the collector, a stopped machine, a slow
network) wakes up without the lock and writes all the same: PostgreSQL does not know about locks in Redis. A
Redis that restarts, is flushed or fails over forgets the lock, with the same end.

With a fence, the lock also hands out a number that grows, and the UPDATE refuses a number that is not
larger than the last one: a late writer changes nothing. But a counter in Redis is lost together with the
locks. It starts again at 1, and then old numbers are larger than new ones.

Right for: saving work that may be done twice, such as filling a cache. Not for a sale.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.exceptions import RedisError

from holdfast.engines.redis import Script
from lab.strategies.strategy import Hold, Q, Strategy, Tools, is_free, is_held_by

ACQUIRE, RELEASE = Script("lab.strategies", "acquire"), Script("lab.strategies", "release")
PAUSE_S = 0.002  # before a confirmation tries again for a lock that another client has


class LockBusy(Exception):
    """Another client has the lock."""


class RedisLock(Strategy):
    name = "redis_lock"
    title = "Redis lock"
    uses_redis = True

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._acquire = tools.redis.register_script(ACQUIRE.source)
        self._release = tools.redis.register_script(RELEASE.source)

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        try:
            async with self.locked(hold) as number:
                row = await self.postgres.fetchrow(Q.read_seat, self.show_id, seat)
                if row is None or not is_free(row):
                    return None
                await self.tools.critical("hold", seat, client)
                return hold if await self.write_held(hold, number) else None
        except LockBusy:
            return None

    async def confirm(self, hold: Hold) -> bool:
        """A buyer who has paid tries again for the lock until the hold has lapsed."""
        give_up_at = time.monotonic() + self.times.hold_ttl_ms / 1000
        while True:
            try:
                async with self.locked(hold) as number:
                    row = await self.postgres.fetchrow(Q.read_seat, self.show_id, hold.seat)
                    if row is None or not is_held_by(row, hold):
                        return False
                    await self.tools.critical("confirm", hold.seat, hold.client)
                    return await self.write_sold(hold, number)
            except LockBusy:
                if time.monotonic() > give_up_at:
                    return False
            self.tools.retries += 1
            await asyncio.sleep(PAUSE_S)

    @asynccontextmanager
    async def locked(self, hold: Hold) -> AsyncIterator[int]:
        """The number of the lock. Its release is not awaited by the sale: the time to live ends it anyway."""
        keys = (f"lock:{self.show_id}:{hold.seat}", f"fence:{self.show_id}")
        number = int(await self._acquire(keys=keys, args=(hold.hold_id, self.times.lock_ttl_ms)))
        if number == 0:
            raise LockBusy
        self.tools.note(hold.client, f"has the lock of seat {hold.seat}, number {number}")
        try:
            yield number
        finally:
            try:
                await self._release(keys=keys[:1], args=(hold.hold_id,))
            except (OSError, RedisError):
                self.tools.note(hold.client, "cannot release the lock: Redis is away")

    async def write_held(self, hold: Hold, number: int) -> bool:
        await self.postgres.execute(Q.write_held, *self.held_values(hold))
        return True

    async def write_sold(self, hold: Hold, number: int) -> bool:
        await self.postgres.execute(Q.write_sold, *self.sold_values(hold))
        return True


class RedisLockWithFence(RedisLock):
    name = "redis_fence"
    title = "Redis lock with fence"

    async def write_held(self, hold: Hold, number: int) -> bool:
        return await self.postgres.execute(Q.write_held_fence, *self.held_values(hold), number) == "UPDATE 1"

    async def write_sold(self, hold: Hold, number: int) -> bool:
        done = await self.postgres.execute(Q.write_sold_fence, *self.sold_values(hold), number)
        return done == "INSERT 0 1"
