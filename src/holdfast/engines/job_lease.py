"""One worker at a time for a job whose work is the same for all of them.

A key in Redis with an end, renewed by each run: if its worker dies, another one takes over a little later.
It saves work and nothing else depends on it: two workers at once do the same thing twice.
"""

import secrets

from holdfast.engines.redis import Redis


class JobLease:
    def __init__(self, redis: Redis, name: str, *, lease_s: float) -> None:
        self._redis = redis
        self._key = f"job:{name}"
        self._token = secrets.token_hex(8)
        self._lease_ms = max(1, round(lease_s * 1000))

    async def take(self) -> bool:
        """Whether this worker has the job now. Raises EngineDown."""
        if await self._redis.call("SET", self._key, self._token, "NX", "PX", self._lease_ms):
            return True
        if await self._redis.call("GET", self._key) != self._token.encode():
            return False
        return bool(await self._redis.call("PEXPIRE", self._key, self._lease_ms))
