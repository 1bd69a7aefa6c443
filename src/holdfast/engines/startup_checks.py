"""What an engine must be like before we sell from it. Looked at once, at the start; a clear no otherwise."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import asyncpg
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from holdfast.engines.clocks import compare_ledger_clock
from holdfast.engines.errors import OperatorError
from holdfast.engines.ledger_hosts import LedgerHosts, split_hosts
from holdfast.engines.postgres import Queries
from holdfast.engines.redis_memory import UNKNOWN_MEMORY, RedisMemory, combine, parse_memory
from holdfast.engines.redis_nodes import RedisNode, connected, find_cluster_faults, find_nodes
from holdfast.engines.redis_url import RedisPlace, parse_redis_url

if TYPE_CHECKING:
    from redis.asyncio import Redis

Q = Queries("holdfast.engines")
ANSWER_WITHIN_S = 5.0
POSTGRES_MAJORS = range(15, 19)
REDIS_OLDEST = (6, 2)
REDIS_SETTING = "HOLDFAST_REDIS_URL"
HELD = "holds"  # what the Redis of REDIS_SETTING has
EVICTS = "maxmemory-policy"  # in the fault of a server that evicts
PROBES = 3  # statements after which a shared connection has shown itself
# What a server connection says that another client has prepared statements on.
SHARED = (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError)


class EngineRefused(OperatorError):
    """The server answers, and will not serve us: waiting does not help."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    version: str
    faults: tuple[str, ...]  # each says what is wrong and what to do next; none: fit to sell from
    ahead_s: float  # its clock, compared with ours; of several, the one that differs most
    warnings: tuple[str, ...] = ()  # it sells, but not as well as it could
    memory: RedisMemory = UNKNOWN_MEMORY  # of Redis


async def connect(database_url: str) -> asyncpg.Connection:
    """A connection to the ledger, or an OperatorError that says why not."""
    connection = await _connect(database_url)
    if await _is_pooled(connection) and await _shares_sessions(connection, database_url):
        connection.terminate()
        raise OperatorError(
            "PostgreSQL is behind a pooler that shares a connection between clients, which breaks prepared "
            "statements and session locks: set pool_mode = session in PgBouncer, or name the server itself "
            "in HOLDFAST_DATABASE_DIRECT_URL"
        )
    return connection


async def _is_pooled(connection: asyncpg.Connection) -> bool:
    """A pooler names a process id of its own, which is not that of the server process."""
    try:
        return int(await connection.fetchval(Q.server_process)) != connection.get_server_pid()
    except SHARED:
        return True


async def _shares_sessions(connection: asyncpg.Connection, database_url: str) -> bool:
    """Two clients with a session each have a server process each, and each stays with its own."""
    second = await _connect(database_url)
    try:
        seen = [
            {int(await one.fetchval(Q.server_process)) for _ in range(PROBES)} for one in (connection, second)
        ]
    except SHARED:
        return True
    finally:
        second.terminate()
    return any(len(processes) > 1 for processes in seen) or seen[0] == seen[1]


async def _connect(database_url: str) -> asyncpg.Connection:
    try:
        # A single host may be a standby here: `ledger_facts` explains that.
        hosts = LedgerHosts(database_url, role="primary" if len(split_hosts(database_url)) > 1 else "any")
        return await hosts.connect(timeout=ANSWER_WITHIN_S, command_timeout=None)
    except asyncpg.TargetServerAttributeNotMatched:
        raise OperatorError(
            "no host in HOLDFAST_DATABASE_URL is a primary: promote a standby, or name the primary's host"
        ) from None
    except (ValueError, asyncpg.ClientConfigurationError, asyncpg.InterfaceError) as error:
        raise OperatorError(f"HOLDFAST_DATABASE_URL cannot be parsed: {_line(error)}") from None
    except asyncpg.InvalidCatalogNameError as error:
        raise OperatorError(f"PostgreSQL: {_line(error)}; make it with `createdb`") from None
    except asyncpg.ProtocolViolationError as error:
        raise OperatorError(
            f"PgBouncer refused us: {_line(error)}; take it out of HOLDFAST_DATABASE_URL or list it in "
            "ignore_startup_parameters of PgBouncer"
        ) from None
    except asyncpg.PostgresError as error:
        raise OperatorError(f"PostgreSQL refused us: {_line(error)}; look at HOLDFAST_DATABASE_URL") from None
    except (OSError, TimeoutError) as error:
        raise OperatorError(
            f"PostgreSQL cannot be reached: {_line(error)}; is it up, and is HOLDFAST_DATABASE_URL right?"
        ) from None


async def ledger_facts(connection: asyncpg.Connection) -> EngineFacts:
    found = await connection.fetchrow(Q.ledger_settings)
    assert found is not None
    ahead_s = await compare_ledger_clock(connection)
    return EngineFacts(found["version"], find_ledger_faults(dict(found)), ahead_s)


def find_ledger_faults(found: dict[str, Any]) -> tuple[str, ...]:
    faults = []
    if int(found["version_number"]) // 10_000 not in POSTGRES_MAJORS:
        faults.append(f"PostgreSQL {found['version']} is not supported: use 15, 16, 17 or 18")
    if found["is_standby"]:
        faults.append("this PostgreSQL is a read-only standby: point HOLDFAST_DATABASE_URL to the primary")
    for name in ("fsync", "full_page_writes"):
        if found[name] != "on":
            faults.append(f"PostgreSQL has {name} = {found[name]} and would lose bookings: turn it on")
    if found["synchronous_commit"] == "off":
        faults.append(
            "PostgreSQL has synchronous_commit = off and would lose bookings: set it to on or local"
        )
    if found["server_encoding"] != "UTF8":
        faults.append(f"the database is in {found['server_encoding']}: make one with ENCODING 'UTF8'")
    return tuple(faults)


async def holds_facts(redis_url: str) -> EngineFacts:
    """Check every Redis server for holds; raises OperatorError if none is reachable."""
    try:
        place = parse_redis_url(redis_url)
        nodes = await find_nodes(place)
        found = [await _look(place, node) for node in nodes]
    except ValueError as error:
        raise OperatorError(f"HOLDFAST_REDIS_URL cannot be parsed: {_line(error)}") from None
    except (AuthenticationError, NoPermissionError) as error:
        raise EngineRefused(f"Redis refused us: {_line(error)}; look at HOLDFAST_REDIS_URL") from None
    except ResponseError as error:
        raise EngineRefused(
            f"Redis does not answer as a {place.kind}: {_line(error)}; look at HOLDFAST_REDIS_URL"
        ) from None
    except (RedisError, OSError, TimeoutError) as error:
        raise OperatorError(
            f"Redis cannot be reached: {_line(error)}; is it up, and is HOLDFAST_REDIS_URL right?"
        ) from None
    names = dict.fromkeys(one.version for one in found if one.version)
    return EngineFacts(
        ", ".join([*names, *_describe(nodes)]),
        tuple(dict.fromkeys(fault for one in found for fault in one.faults)),
        max((one.ahead_s for one in found), key=abs),
        tuple(dict.fromkeys(warning for one in found for warning in one.warnings)),
        combine(one.memory for one in found),
    )


async def other_redis_facts(redis_url: str, setting: str, held: str) -> EngineFacts:
    """As `holds_facts`, for a server that another setting names. `held`: what would be lost with its keys."""
    try:
        found = await holds_facts(redis_url)
    except OperatorError as trouble:
        raise type(trouble)(str(trouble).replace(REDIS_SETTING, setting)) from None
    named = (fault.replace(REDIS_SETTING, setting) for fault in found.faults)
    faults = (one.replace(f"throw {HELD}", f"throw {held}") if EVICTS in one else one for one in named)
    return replace(found, faults=tuple(faults))


async def _look(place: RedisPlace, node: RedisNode) -> EngineFacts:
    """One server. If there are others, being away is a warning: they can sell."""
    try:
        async with connected(node.url) as client:
            found = await client.info("everything")
            ahead_s = 0.0 if _is_sentinel(found) else await _ahead_s(client)
            faults, warnings = find_redis_faults(found, place.kind, is_primary=node.is_primary), list[str]()
            if place.kind == "cluster" and node.is_primary:
                of_cluster, warnings = await find_cluster_faults(client)
                faults = (*faults, *of_cluster)
    except (AuthenticationError, NoPermissionError, ValueError):
        raise
    except (RedisError, OSError, TimeoutError) as error:
        if place.kind != "cluster" and node.is_primary:
            raise
        what = "a primary" if node.is_primary else "a replica"
        return EngineFacts("", (), 0.0, (f"{node.name}, {what}, cannot be reached: {_line(error)}",))
    named = tuple(f"{node.name}: {fault}" if node.name else fault for fault in faults)
    return EngineFacts(_redis_name(found), named, ahead_s, tuple(warnings), parse_memory(found))


def _describe(nodes: list[RedisNode]) -> list[str]:
    if len(nodes) == 1:
        return []
    primaries = sum(node.is_primary for node in nodes)
    return [f"primaries: {primaries}, replicas: {len(nodes) - primaries}"]


async def _ahead_s(client: "Redis") -> float:
    before = time.time()
    seconds, micros = await client.time()
    return float(seconds + micros / 1e6 - (before + time.time()) / 2)


def _is_sentinel(found: dict[str, Any]) -> bool:
    return "sentinel" in (found.get("redis_mode"), found.get("server_mode"))


def find_redis_faults(
    found: dict[str, Any], kind: str = "server", *, is_primary: bool = True
) -> tuple[str, ...]:
    if _is_sentinel(found):
        return (
            "this is a Sentinel, not a Redis server: name the service that it watches, as in "
            "HOLDFAST_REDIS_URL=redis+sentinel://host:26379,host:26379/service/0",
        )
    faults = []
    if int(found.get("cluster_enabled", 0)) and kind != "cluster":
        faults.append(
            "this Redis is a node of a Redis Cluster (cluster_enabled:1): set "
            "HOLDFAST_REDIS_URL=redis+cluster://host:6379,host:6379"
        )
    version = str(found["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < REDIS_OLDEST:
        faults.append(f"Redis {version} is too old: use Redis 6.2 or newer, or Valkey")
    if (policy := found.get("maxmemory_policy")) != "noeviction":
        faults.append(
            f"Redis has maxmemory-policy {policy} and would throw {HELD} away: set it to noeviction, with "
            "CONFIG SET and in its configuration file"
        )
    if is_primary and found.get("role") != "master":
        faults.append("this Redis is a replica: point HOLDFAST_REDIS_URL to the primary")
    return tuple(faults)


async def check_engines(connection: asyncpg.Connection, redis_url: str) -> None:
    """Fit to sell from, both of them; or Trouble with the first thing to put right."""
    for facts in (await ledger_facts(connection), await holds_facts(redis_url)):
        if facts.faults:
            raise OperatorError(facts.faults[0])


def _redis_name(found: dict[str, Any]) -> str:
    if valkey := found.get("valkey_version"):
        return f"Valkey {valkey}"
    return f"Redis {found['redis_version']}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
