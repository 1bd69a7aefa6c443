"""Pools in Redis: claim, settle, read, build. The only module in claim that talks to an engine."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

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
from holdfast.engines.redis import Redis, Script

CLAIM = Script("holdfast.claim", "claim")
SETTLE = Script("holdfast.claim", "settle")
BUILD = Script("holdfast.claim", "build")
READ = Script("holdfast.claim", "read")

RETENTION_MS = 24 * 3600 * 1000  # Redis drops a pool one day after it closes, unless it is built again
PLACEHOLDER = b"||"  # in every pool, so that no key of it is ever empty: build.lua
KEYS_CACHED_MAX = 4096  # pools

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class Claims:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def claim_many(self, pool_id: int, requests: Sequence[ClaimRequest]) -> list[ClaimOutcome]:
        """All units of a request or none; many requests in one round trip, in their order."""
        async with self._redis.lease() as link:
            packed = pack([_arguments(request) for request in requests])
            reply = await link.script(CLAIM, pool_keys(pool_id), (link.run_id, packed))
        if reply == b"map_missing":
            return [MapMissing()] * len(requests)
        epoch, _, outcomes = unpack(reply)
        return [_parse_outcome(request, epoch, one) for request, one in zip(requests, outcomes, strict=True)]

    async def settle_many(self, pool_id: int, settlements: Sequence[Settlement]) -> int | None:
        """The epoch of the map that was changed; None: there is no map."""
        async with self._redis.lease() as link:
            packed = pack([(one.action, str(one.claim), one.ms) for one in settlements])
            reply = await link.script(SETTLE, pool_keys(pool_id), (link.run_id, packed))
        return None if reply == b"map_missing" else int(unpack(reply)[0])

    async def settle_pools(self, by_pool: Mapping[int, Sequence[Settlement]]) -> dict[int, ResponseError]:
        """Several pools in one round trip; the errors of those that could not be settled, by pool. A pool
        without a map has nothing to settle."""
        async with self._redis.lease() as link:
            calls = [
                (
                    pool_keys(pool_id),
                    (link.run_id, pack([(one.action, str(one.claim), one.ms) for one in settlements])),
                )
                for pool_id, settlements in by_pool.items()
            ]
            replies = await link.scripts(SETTLE, calls)
        pairs = zip(by_pool, replies, strict=True)
        return {pool_id: reply for pool_id, reply in pairs if isinstance(reply, ResponseError)}

    async def read(self, pool_id: int, *, known: int = 0, with_claims: bool = False) -> PoolMap | int | None:
        """The map; or only its version, if that is the `known` one; None: there is no map."""
        async with self._redis.lease() as link:
            extra = "claims" if with_claims else ""
            reply = await link.script(READ, pool_keys(pool_id), (link.run_id, known, extra))
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

    async def epoch(self, pool_id: int) -> tuple[int, bool]:
        """The epoch of the map (0: none, or broken), and whether this run of the Redis server wrote it."""
        try:
            async with self._redis.lease() as link:
                epoch, run_id = await link.call("HMGET", pool_keys(pool_id)[3], "epoch", "run_id")
                return int(epoch or 0), run_id is not None and run_id.decode() == link.run_id
        except (
            ResponseError,
            ValueError,
        ):  # a header of another type, or without a number: build replaces it
            return 0, False

    async def build(self, pool_id: int, plan: Blueprint) -> bool:
        """Replace the map. False: Redis has one of this epoch or a later one, and it stays."""
        async with self._redis.lease() as link:
            flat_owners = [part for pair in plan.owners.items() for part in pair]
            flat_fields = [part for pair in plan.fields.items() for part in pair]
            args: list[Any] = [link.run_id, plan.epoch, plan.units, plan.opens_in_ms, plan.closes_in_ms]
            args += [max(plan.closes_in_ms, 0) + RETENTION_MS]
            args += [pack(list(plan.claims)), pack(flat_owners), pack(list(plan.lapses)), *flat_fields]
            return bool(await link.script(BUILD, pool_keys(pool_id), args))


@lru_cache(maxsize=KEYS_CACHED_MAX)
def pool_keys(pool_id: int) -> tuple[str, ...]:
    """All keys of a pool share the hash tag: one slot, so a script changes them in one atomic step."""
    return tuple([f"{name}:{{{pool_id}}}" for name in ("units", "ends", "owners", "meta", "changes")])


def _arguments(request: ClaimRequest) -> tuple[object, ...]:
    units = sorted(set(request.units))  # the scripts expect them in order and without duplicates
    any_units = (request.first, request.end, request.count)
    return request.claim_id, request.owner, request.ttl_ms, request.limit, units, *any_units


def _parse_outcome(request: ClaimRequest, epoch: int, reply: list[Any]) -> ClaimOutcome:
    match reply:
        case ["claimed", units]:
            return Claimed(Claim(request.claim_id, request.owner, tuple(units)), epoch)
        case ["taken", units]:
            return UnitsTaken(tuple(units))
        case ["over_limit", has]:
            return LimitReached(has)
        case ["not_enough", free]:
            return NotEnoughUnits(free)
        case ["closed"]:
            return PoolClosed()
    raise AssertionError(f"claim.lua returned {reply!r}")
