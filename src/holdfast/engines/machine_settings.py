"""Whether all machines of a house have the same settings: each leaves marks of them in Redis.

    process ──every minute──► machines:settings   machine → when, and a mark for each setting
    doctor  ──► compares its own marks with those of machines that reported lately

A mark is a hash of the value with a key of this Redis, cut to 24 bits: equal values have equal marks, and a
guess of a secret cannot be confirmed with one.
"""

import hashlib
import hmac
import secrets
import socket
from collections import defaultdict
from dataclasses import Field, dataclass, fields
from pathlib import Path

import msgspec

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.redis import Redis

KEY = "machines:settings"
KEY_LIFE_S = 86_400
HASH_KEY = "key"  # a field that is not a machine
MARK_LENGTH = 6
REPORT_PAUSE_S = 60.0
ALIVE_S = 180  # since its last report
# Of one machine: where its files and ports are, how large its processes are, the way to the engines.
OWN = frozenset(
    (
        *("data_dir", "work_address", "crash_at", "access_log", "slow_request_ms", "trusted_proxies"),
        *("postgres_pool_max", "search_pool_max", "redis_links_max", "gateway_links_max", "hook_links_max"),
        *("layout_cache_mb", "map_cache_mb", "tokens_remembered_max", "addresses_max", "connections_max"),
        *("viewers_max", "passwords_at_once_max", "passwords_waiting_max", "refunds_at_once_max"),
        *("database_url", "database_direct_url", "redis_url", "replica_url"),
    )
)
# A start fills these in for its processes if they are not set.
FILLED_IN = frozenset(("gateway", "gateway_url", "gateway_secret", "mail_page"))


class SettingsReport(msgspec.Struct):
    at_s: int  # by the clock of Redis
    marks: dict[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    setting: str
    is_secret: bool
    machines: tuple[str, ...]  # with another value than here


class MachineSettings:
    """This machine's marks, and those of the others."""

    def __init__(self, redis: Redis, config: Config) -> None:
        self._redis = redis
        self._config = config

    async def report(self) -> int:
        """A job: leave our marks. Nothing else depends on it, so a Redis that is away is not an error."""
        try:
            report = SettingsReport(await self._now_s(), mark_settings(self._config, await self._load_key()))
            await self._redis.call("HSET", KEY, machine_name(self._config), msgspec.json.encode(report))
            await self._redis.call("EXPIRE", KEY, KEY_LIFE_S)
        except EngineDown:
            return 0
        return 0

    async def compare(self) -> tuple[list[str], list[Difference]]:
        """The other machines that reported lately, and in what they differ from here. Raises EngineDown."""
        own, now_s = mark_settings(self._config, await self._load_key()), await self._now_s()
        reply = await self._redis.call("HGETALL", KEY)
        rows = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
        found = {
            name.decode(): report.marks
            for name, body in rows
            if name.decode() not in (HASH_KEY, machine_name(self._config))
            and (report := msgspec.json.decode(body, type=SettingsReport)).at_s > now_s - ALIVE_S
        }
        return sorted(found), find_differences(own, found, unset_settings(self._config))

    async def _load_key(self) -> bytes:
        await self._redis.call("HSETNX", KEY, HASH_KEY, secrets.token_hex(16))
        return bytes(await self._redis.call("HGET", KEY, HASH_KEY) or b"")

    async def _now_s(self) -> int:
        return int((await self._redis.call("TIME"))[0])


def machine_name(config: Config) -> str:
    return f"{socket.gethostname()}:{Path(config.data_dir).absolute()}"


def compared_settings() -> list[Field[object]]:
    return [field for field in fields(Config) if field.name not in OWN]


def mark_settings(config: Config, key: bytes) -> dict[str, str]:
    """No I/O."""

    def mark(name: str) -> str:
        value = f"{name} {getattr(config, name)}".encode()
        return hmac.new(key, value, hashlib.sha256).hexdigest()[:MARK_LENGTH]

    return {field.name: mark(field.name) for field in compared_settings()}


def unset_settings(config: Config) -> frozenset[str]:
    """Those that the operator left to us here: another machine may have filled them in."""
    return frozenset(
        field.name
        for field in compared_settings()
        if field.name in FILLED_IN and getattr(config, field.name) == field.default
    )


def find_differences(
    own: dict[str, str], others: dict[str, dict[str, str]], unset: frozenset[str]
) -> list[Difference]:
    """Settings that another release does not know are not compared."""
    differing: dict[str, list[str]] = defaultdict(list)
    for machine, marks in sorted(others.items()):
        for name in own.keys() & marks.keys() - unset:
            if own[name] != marks[name]:
                differing[name].append(machine)
    secret = {field.name for field in fields(Config) if field.metadata.get("is_secret")}
    return [Difference(name, name in secret, tuple(where)) for name, where in sorted(differing.items())]
