"""How full a Redis server is, and whether it throws keys away. No I/O: reads the reply of INFO."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FULL_FROM = 0.8  # of its memory: the alert HoldfastRedisFull has the same
NO_ROOM_FROM = 0.95


@dataclass(frozen=True, slots=True)
class RedisMemory:
    used_bytes: int = 0
    limit_bytes: int = 0  # maxmemory; without one, the memory of its machine; 0: unknown
    has_limit: bool = False  # maxmemory is set
    evicts: int = 0  # servers whose policy is not noeviction
    evicted: int = 0  # keys, since the server started

    @property
    def share(self) -> float:
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0

    def __str__(self) -> str:
        limit = "maxmemory" if self.has_limit else "memory of its machine"
        of = f" of {_megabytes(self.limit_bytes)} ({limit})" if self.limit_bytes else ""
        lost = f"; {self.evicted} keys were evicted since its start" if self.evicted else ""
        return f"{_megabytes(self.used_bytes)}{of}{lost}"


UNKNOWN_MEMORY = RedisMemory()


def parse_memory(info: Mapping[str, Any]) -> RedisMemory:
    limit = int(info.get("maxmemory", 0))
    return RedisMemory(
        used_bytes=int(info.get("used_memory", 0)),
        limit_bytes=limit or int(info.get("total_system_memory", 0)),
        has_limit=limit > 0,
        evicts=int(info.get("maxmemory_policy", "noeviction") != "noeviction"),
        evicted=int(info.get("evicted_keys", 0)),
    )


def combine(servers: Iterable[RedisMemory]) -> RedisMemory:
    """The fullest of several servers, with the evictions of all of them."""
    found = list(servers)
    fullest = max(found, key=lambda one: one.share, default=UNKNOWN_MEMORY)
    return RedisMemory(
        used_bytes=fullest.used_bytes,
        limit_bytes=fullest.limit_bytes,
        has_limit=fullest.has_limit,
        evicts=sum(one.evicts for one in found),
        evicted=sum(one.evicted for one in found),
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB"
