"""Pools in Redis: claim, settle, read, build. The only module in claim that talks to an engine."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec
from redis.exceptions import ResponseError

from holdfast.claim.claim import (
    Blueprint,
    Claim,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    LimitReached,
    MapMissing,
    NotEnoughUnits,
    PoolClosed,
    PoolMap,
    Settlement,
    UnitsTaken,
)
from holdfast.engines.errors import EngineDown
from holdfast.engines.redis import Redis, Script

CLAIM = Script("holdfast.claim", "claim")
SETTLE = Script("holdfast.claim", "settle")
BUILD = Script("holdfast.claim", "build")
BEGIN_REBUILD = Script("holdfast.claim", "begin_rebuild")
REBUILD = Script("holdfast.claim", "rebuild")
FREE_UNITS = Script("holdfast.claim", "free_units")
READ = Script("holdfast.claim", "read")

RETENTION_MS = 24 * 3600 * 1000  # Redis drops a pool one day after it closes, unless it is built again
PLACEHOLDER = b"||"  # in every pool, so that no key of it is ever empty: build.lua
KEYS_CACHED_MAX = 4096  # pools

PoolId = int | str

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class Claims:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def claim_many(self, pool_id: PoolId, requests: Sequence[ClaimRequest]) -> list[ClaimOutcome]:
        """All units of a request or none; many requests in one round trip, in their order."""
        packed = pack([_arguments(request) for request in requests])
        reply = await self._redis.script(CLAIM, pool_keys(pool_id), (packed,))
        if reply == b"map_missing":
            return [MapMissing()] * len(requests)
        epoch, version, outcomes = unpack(reply)
        pairs = zip(requests, outcomes, strict=True)
        return [_parse_outcome(request, epoch, version, one) for request, one in pairs]

    async def settle_many(self, pool_id: PoolId, settlements: Sequence[Settlement]) -> int | None:
        """The epoch of the map that was changed; None: there is no map."""
        reply = await self._settle(pool_id, settlements)
        return None if reply is None else int(reply[0])

    async def settle_each(self, pool_id: PoolId, settlements: Sequence[Settlement]) -> list[bool] | None:
        """For each settlement: was there anything to do? None: there is no map."""
        reply = await self._settle(pool_id, settlements)
        return None if reply is None else list(reply[2])

    async def _settle(self, pool_id: PoolId, settlements: Sequence[Settlement]) -> Any | None:
        reply = await self._redis.script(SETTLE, pool_keys(pool_id), (_packed(settlements),))
        return None if reply == b"map_missing" else unpack(reply)

    async def settle_pools(
        self, by_pool: Mapping[int, Sequence[Settlement]]
    ) -> dict[int, ResponseError | EngineDown]:
        """Several pools in one round trip; the errors of those that could not be settled, by pool. A pool
        without a map has nothing to settle."""
        calls = [(pool_keys(pool_id), (_packed(some),)) for pool_id, some in by_pool.items()]
        pairs = zip(by_pool, await self._redis.scripts(SETTLE, calls), strict=True)
        return {pool_id: reply for pool_id, reply in pairs if isinstance(reply, (ResponseError, EngineDown))}

    async def read(
        self, pool_id: PoolId, *, known: int = 0, with_claims: bool = False
    ) -> PoolMap | int | None:
        """The map; or only its version, if that is the `known` one; None: there is no map."""
        extra = "claims" if with_claims else ""
        reply = await self._redis.script(READ, pool_keys(pool_id), (known, extra))
        match reply:
            case [b"map", _, _, None, *_]:
                raise ValueError("the states of its units are missing")
            case [b"map", epoch, version, units, flat]:
                pairs = zip(flat[::2], flat[1::2], strict=True)
                claims = {name.decode(): float(end) for name, end in pairs if name != PLACEHOLDER}
                return PoolMap(int(epoch), int(version), units, claims)
            case [b"map", epoch, version, units]:
                return PoolMap(int(epoch), int(version), units)
            case [b"same", version]:
                return int(version)
            case [b"map_missing"]:
                return None
        raise AssertionError(f"read.lua returned {reply!r}")

    async def epoch(self, pool_id: PoolId) -> tuple[int, bool]:
        """The epoch of the map (0: none, or broken), and whether this run of the Redis server wrote it."""
        try:
            meta_key = pool_keys(pool_id)[3]
            found, run_id = await self._redis.call_with_run_id("HMGET", meta_key, "epoch", "run_id")
            return int(found[0] or 0), found[1] is not None and found[1].decode() == run_id
        except (
            ResponseError,
            ValueError,
        ):  # a header of another type, or without a number: build replaces it
            return 0, False

    async def build(self, pool_id: PoolId, plan: Blueprint) -> bool:
        """Replace the map. False: Redis has one of this epoch or a later one, and it stays."""
        args = [plan.epoch, *_map_arguments(plan)]
        return bool(await self._redis.script(BUILD, pool_keys(pool_id), args))

    async def begin_rebuild(
        self, pool_id: PoolId, token: str, how: Literal["begin", "replace", "renew"], lease_ms: int
    ) -> bool | float:
        """Get the permit to rebuild a map, or renew it. True: load now, then `rebuild`. False: there is a
        map, or the permit is lost. Else another process is rebuilding, and has these seconds to finish."""
        reply = await self._redis.script(BEGIN_REBUILD, pool_keys(pool_id)[3:4], (token, lease_ms, how))
        return int(reply) / 1000 if isinstance(reply, int) else bool(reply == b"begun")

    async def rebuild(self, pool_id: PoolId, token: str, plan: Blueprint, *, lowest: int = 0) -> int | None:
        """Publish a map with the permit of `begin_rebuild`; its first version, at least `lowest`. None: the
        permit is gone, so the map that was loaded may be outdated. The epoch of the plan is ignored."""
        args = [token, lowest, *_map_arguments(plan)]
        reply = await self._redis.script(REBUILD, pool_keys(pool_id), args)
        return None if reply is None else int(reply)

    async def free_units(self, pool_id: PoolId, units: Sequence[int]) -> int | None:
        """Free these committed units; how many were committed. None: there is no map. Slower than to settle
        "free" with the claim: all claims of the pool are searched for the units."""
        args = (pack(sorted(set(units))),)
        reply = await self._redis.script(FREE_UNITS, pool_keys(pool_id), args)
        return None if reply == b"map_missing" else int(unpack(reply)[2])

    async def delete(self, pool_id: PoolId) -> None:
        await self._redis.call("UNLINK", *pool_keys(pool_id))


def _packed(settlements: Sequence[Settlement]) -> bytes:
    return pack([(one.action, str(one.claim), one.ms) for one in settlements])


def _map_arguments(plan: Blueprint) -> list[Any]:
    """As write_map.lua takes them."""
    flat_owners = [part for pair in plan.owners.items() for part in pair]
    flat_fields = [part for pair in plan.fields.items() for part in pair]
    window = [plan.opens_in_ms, plan.closes_in_ms, max(plan.closes_in_ms, 0) + RETENTION_MS]
    packed = [pack(list(plan.claims)), pack(flat_owners), pack(list(plan.lapses))]
    return [plan.units, *window, *packed, *flat_fields]


@lru_cache(maxsize=KEYS_CACHED_MAX)
def pool_keys(pool_id: PoolId) -> tuple[str, ...]:
    """All keys of a pool share the hash tag: one slot, so a script changes them in one atomic step."""
    return tuple([f"{name}:{{{pool_id}}}" for name in ("units", "ends", "owners", "meta", "changes")])


def _arguments(request: ClaimRequest) -> tuple[object, ...]:
    units = sorted(set(request.units))  # the scripts expect them in order and without duplicates
    any_units = (request.first, request.end, request.count)
    # The owner as text: a Lua script would round a number above 10^14.
    return request.claim_id, str(request.owner), request.ttl_ms, request.limit, units, *any_units


def _parse_outcome(request: ClaimRequest, epoch: int, version: int, reply: list[Any]) -> ClaimOutcome:
    match reply:
        case ["claimed", units]:
            return Claimed(Claim(request.claim_id, request.owner, tuple(units)), epoch, version)
        case ["taken", units]:
            return UnitsTaken(tuple(units))
        case ["over_limit", has]:
            return LimitReached(has)
        case ["not_enough", free]:
            return NotEnoughUnits(free)
        case ["closed"]:
            return PoolClosed()
    raise AssertionError(f"claim.lua returned {reply!r}")
