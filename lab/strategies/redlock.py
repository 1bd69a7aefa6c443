"""Redlock: the same lock on five independent servers; three of them are enough to have it.

How it works. SET NX PX on all five at once. With at least three of five, and time left after the round trips,
the lock is taken; otherwise what was taken is released. One server may be lost without losing the lock.

How it fails. As the single lock does: the majority ends by clocks, too, and a client that stands still
writes after its lock has ended. It hands out no number that could serve as a fence. And if two servers are
down while the lock is taken, one server that restarts empty is enough for a second majority. A clock that
jumps on one server does the same.

Right for: the same as the single lock, if it may not depend on one server. It costs five times the commands.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.exceptions import RedisError

from lab.strategies.redis_lock import RELEASE, LockBusy, RedisLock
from lab.strategies.strategy import Hold, Tools

DRIFT = 0.01  # of the time to live: what the servers' clocks may differ by
TRIES = (OSError, TimeoutError, RedisError)


class Redlock(RedisLock):
    name = "redlock"
    title = "Redlock on five"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._releases = [voter.register_script(RELEASE.source) for voter in tools.voters]

    @asynccontextmanager
    async def locked(self, hold: Hold) -> AsyncIterator[int]:
        key, began = f"lock:{self.show_id}:{hold.seat}", time.monotonic()
        ttl_ms = self.times.lock_ttl_ms
        votes = sum(
            await asyncio.gather(*(self._vote(i, key, hold.hold_id) for i in range(len(self._releases))))
        )
        left_ms = ttl_ms - 1000 * (time.monotonic() - began) - DRIFT * ttl_ms
        try:
            if votes <= len(self._releases) // 2 or left_ms <= 0:
                raise LockBusy
            self.tools.note(hold.client, f"has the lock of seat {hold.seat} on {votes} of 5 servers")
            yield votes
        finally:
            await asyncio.gather(*(self._give_back(i, key, hold.hold_id) for i in range(len(self._releases))))

    async def _vote(self, voter: int, key: str, token: str) -> bool:
        try:
            return bool(await self.tools.voters[voter].set(key, token, nx=True, px=self.times.lock_ttl_ms))
        except TRIES:
            return False  # a server that does not answer has not voted

    async def _give_back(self, voter: int, key: str, token: str) -> bool:
        try:
            return bool(await self._releases[voter](keys=(key,), args=(token,)))
        except TRIES:
            return False
