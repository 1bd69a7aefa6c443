"""The front of the library: `connect` to a server, `open` pools on it."""

from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from holdfast.claim.claim import Blueprint, Contents
from holdfast.claim.contents import NO_END_MS, plan_map
from holdfast.claim.pool import Pool
from holdfast.claim.rebuilder import Load, Rebuilder
from holdfast.claim.store import Claims, PoolId
from holdfast.engines.open_redis import open_redis

SIZE_MAX = 1_000_000  # units; a map is read as a whole
WATCHER_LINKS_MAX = 4  # of `Pool.changes`: they wait for changes, and claims do not wait for them
WATCHER_TIMEOUT_MIN_S = 2.0  # longer than Redis waits for a change


def connect(
    url: str, *, links_max: int = 4, timeout_s: float = 1.0, prefix: str = "pool:", batch_max: int = 128
) -> "Pools":
    """Pools on the Redis or Valkey server at `url`. Use it as `async with connect(…) as pools`.

    `links_max`: connections of this process. `timeout_s`: for a reply. `prefix`: in the keys of all pools.
    `batch_max`: calls that share a round trip.
    """
    return Pools(url, links_max=links_max, timeout_s=timeout_s, prefix=prefix, batch_max=batch_max)


class Pools:
    """Connections to one server. Made by `connect`."""

    def __init__(self, url: str, *, links_max: int, timeout_s: float, prefix: str, batch_max: int) -> None:
        self._redis = open_redis(url, links_max=links_max, timeout_s=timeout_s, name="redis")
        watcher_timeout_s = max(timeout_s, WATCHER_TIMEOUT_MIN_S)
        self._watchers = open_redis(
            url, links_max=WATCHER_LINKS_MAX, timeout_s=watcher_timeout_s, name="redis"
        )
        self._claims = Claims(self._redis)
        self._prefix = prefix
        self._batch_max = batch_max
        self._pools: WeakValueDictionary[str, Pool] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._redis.close()
        await self._watchers.close()

    async def open(
        self,
        pool_id: PoolId,
        *,
        size: int,
        load: Load | None = None,
        opens_at: datetime | None = None,
        closes_at: datetime | None = None,
        quarantine_s: float = 0.0,
    ) -> Pool:
        """The pool with this id; its map is built if there is none.

        `load` returns what the durable store has. It is called for every map that is built: now, and whenever
        Redis has lost it. Without it, all units of a new map are free. `quarantine_s`: a new map grants
        nothing for so long, so that claims of a lost one have ended by then.

        A pool that is open in this process already is returned as it is.
        """
        key = self._key(pool_id)
        if not 1 <= size <= SIZE_MAX:
            raise ValueError(f"a pool has 1 to {SIZE_MAX} units, not {size}")
        if (pool := self._pools.get(key)) is None:
            plan = partial(_plan, size, opens_at, closes_at, quarantine_s)
            rebuilder = Rebuilder(self._claims, key, load, plan)
            pool = Pool(
                key,
                size,
                self._claims,
                rebuilder=rebuilder,
                watchers=self._watchers,
                batch_max=self._batch_max,
            )
            self._pools[key] = pool
        found = len((await pool.read()).units)
        if found != size:
            raise ValueError(f"pool {pool_id} has {found} units, not {size}: delete it to change its size")
        return pool

    async def delete(self, pool_id: PoolId) -> None:
        """Delete the map. A process that has the pool open builds a new one at its next call."""
        self._pools.pop(self._key(pool_id), None)
        await self._claims.delete(self._key(pool_id))

    def _key(self, pool_id: PoolId) -> str:
        key = f"{self._prefix}{pool_id}"
        if set(key) & set("{}"):  # they mark the part of a key that decides where a cluster stores it
            raise ValueError(f"a pool id has no braces: {pool_id}")
        return key


def _plan(
    size: int,
    opens_at: datetime | None,
    closes_at: datetime | None,
    quarantine_s: float,
    contents: Contents,
) -> Blueprint:
    """Redis gets durations: its clock may differ from this one."""
    now = datetime.now(UTC)
    opens_in_ms = _ms_between(now, opens_at) if opens_at else 0
    closes_in_ms = _ms_between(now, closes_at) if closes_at else NO_END_MS
    opens_in_ms = max(opens_in_ms, round(quarantine_s * 1000))
    return plan_map(size, contents, opens_in_ms=opens_in_ms, closes_in_ms=closes_in_ms)


def _ms_between(now: datetime, then: datetime) -> int:
    return round((then - now).total_seconds() * 1000)
