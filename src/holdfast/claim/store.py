"""Pools in Redis: claim, settle, read, build. The only file in claim/ that talks to an engine."""

from collections.abc import Sequence
from typing import Any

import msgspec

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
from holdfast.engines.lua import Script
from holdfast.engines.redis import Redis

CLAIM = Script("holdfast.claim", "claim")
SETTLE = Script("holdfast.claim", "settle")
BUILD = Script("holdfast.claim", "build")
READ = Script("holdfast.claim", "read")

KEEP_MS = 24 * 3600 * 1000  # a pool nobody builds anew is forgotten a day after it closes
NOBODYS = b"||"  # stands in every pool, so that no key of it is ever empty: build.lua

pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode


class Claims:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def claim_many(self, pool_id: int, wishes: Sequence[ClaimRequest]) -> list[ClaimOutcome]:
        async with self._redis.lease() as link:
            packed = pack([_arguments(wish) for wish in wishes])
            reply = await link.script(CLAIM, pool_keys(pool_id), (link.run_id, packed))
        if reply == b"unbuilt":
            return [MapMissing()] * len(wishes)
        epoch, _, outcomes = unpack(reply)
        return [_outcome(wish, epoch, one) for wish, one in zip(wishes, outcomes, strict=True)]

    async def settle_many(self, pool_id: int, parts: Sequence[Settlement]) -> int | None:
        """The epoch of the map they were settled in, or None: there is no map to settle them in."""
        async with self._redis.lease() as link:
            packed = pack([(part.what, str(part.claim), part.ms) for part in parts])
            reply = await link.script(SETTLE, pool_keys(pool_id), (link.run_id, packed))
        return None if reply == b"unbuilt" else int(unpack(reply)[0])

    async def read(self, pool_id: int, *, known: int = 0, with_claims: bool = False) -> PoolMap | int | None:
        """The map; or its version, if it is the `known` one; or None, if there is no map."""
        async with self._redis.lease() as link:
            wanted = "claims" if with_claims else ""
            reply = await link.script(READ, pool_keys(pool_id), (link.run_id, known, wanted))
        match reply:
            case [b"map", epoch, version, units, flat]:
                pairs = zip(flat[::2], flat[1::2], strict=True)
                claims = {name.decode(): float(end) for name, end in pairs if name != NOBODYS}
                return PoolMap(int(epoch), int(version), units, claims)
            case [b"map", epoch, version, units]:
                return PoolMap(int(epoch), int(version), units)
            case [b"same", version]:
                return int(version)
            case [b"unbuilt"]:
                return None
        raise AssertionError(f"read.lua answered {reply!r}")

    async def epoch(self, pool_id: int) -> tuple[int, bool]:
        """The epoch of whatever map is there (0: none), and whether this very server wrote it."""
        async with self._redis.lease() as link:
            epoch, run_id = await link.call("HMGET", pool_keys(pool_id)[3], "epoch", "run_id")
            return int(epoch or 0), run_id is not None and run_id.decode() == link.run_id

    async def build(self, pool_id: int, plan: Blueprint) -> bool:
        async with self._redis.lease() as link:
            flat_owners = [part for pair in plan.owners.items() for part in pair]
            flat_fields = [part for pair in plan.fields.items() for part in pair]
            args: list[Any] = [link.run_id, plan.epoch, plan.units, plan.opens_in_ms, plan.closes_in_ms]
            args += [max(plan.closes_in_ms, 0) + KEEP_MS]
            args += [pack(list(plan.claims)), pack(flat_owners), *flat_fields]
            return bool(await link.script(BUILD, pool_keys(pool_id), args))


def pool_keys(pool_id: int) -> list[str]:
    """All keys of a pool share the hash tag: one slot, one thread, one step."""
    return [f"{name}:{{{pool_id}}}" for name in ("units", "ends", "owners", "meta", "changes")]


def _arguments(wish: ClaimRequest) -> tuple[object, ...]:
    units = sorted(set(wish.units))  # in order and each once, as the scripts take them to be
    return wish.claim_id, wish.owner, wish.life_ms, wish.limit, units, wish.first, wish.end, wish.count


def _outcome(wish: ClaimRequest, epoch: int, reply: list[Any]) -> ClaimOutcome:
    match reply:
        case ["claimed", units]:
            return Claimed(Claim(wish.claim_id, wish.owner, tuple(units)), epoch)
        case ["taken", units]:
            return UnitsTaken(tuple(units))
        case ["limit", has]:
            return LimitReached(has)
        case ["few", free]:
            return NotEnoughUnits(free)
        case ["shut"]:
            return PoolClosed()
    raise AssertionError(f"claim.lua answered {reply!r}")
