"""Follows the changes of a pool, from the stream that its scripts write."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from holdfast.claim.claim import Change, PoolMap
from holdfast.claim.store import PoolId, pool_keys
from holdfast.engines.redis import Redis, parse_streams

BLOCK_MS = 500  # so long Redis waits for a change; shorter than the time-out of a link
COUNT = 200  # changes per round trip

Read = Callable[[int], Awaitable[PoolMap | int]]


async def follow(
    redis: Redis, key: PoolId, read: Read, version: int
) -> AsyncGenerator[Change | PoolMap, None]:
    """Changes in order, each the one right after the one before; or a map, where that cannot be had."""
    while True:
        changes = await _read_stream(redis, pool_keys(key)[4], version)
        for change in changes:
            if change.version != version + 1:  # the map was rebuilt, or the stream is shorter than our gap
                break
            version = change.version
            yield change
        else:
            if changes:
                continue
        # Nothing new for a moment, or a gap. Reading ends what has expired, which no job does, and rebuilds a
        # lost map: both are then in the stream.
        found = await read(version)
        if isinstance(found, PoolMap) and (changes or found.version < version):
            version = found.version
            yield found


async def _read_stream(redis: Redis, key: str, version: int) -> list[Change]:
    found = await redis.call("XREAD", "COUNT", COUNT, "BLOCK", BLOCK_MS, "STREAMS", key, f"{version}-0")
    pairs = parse_streams(found)
    return [_parse(entry_id, fields[1]) for _, entries in pairs for entry_id, fields in entries]


def _parse(entry_id: bytes, changed: Any) -> Change:
    """`7-0`, `12H,13H`. Of a unit that is there twice, the last."""
    parts = changed.decode("ascii").split(",") if changed else ()
    return Change(int(entry_id.partition(b"-")[0]), {int(part[:-1]): ord(part[-1]) for part in parts})
