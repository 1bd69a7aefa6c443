"""Are the Redis servers and the bus fit: for holds, for rate limits (limits_url), for facts (bus_url)."""

import asyncio
from collections.abc import AsyncIterator
from importlib.util import find_spec
from urllib.parse import urlsplit

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis_memory import FULL_FROM, NO_ROOM_FROM, RedisMemory
from holdfast.engines.startup_checks import (
    ANSWER_WITHIN_S,
    EVICTS,
    EngineRefused,
    holds_facts,
    other_redis_facts,
)
from holdfast.runtime.check_ledger import NOT_RUNNING, describe_engine
from holdfast.runtime.check_settings import Finding, Severity

LIMITS, BUS = "HOLDFAST_LIMITS_URL", "HOLDFAST_BUS_URL"
# Schemes of buses that are not Redis: the module of their client, and their usual port.
OTHER_BUSES = {"nats": ("nats", 4222), "tls": ("nats", 4222), "kafka": ("aiokafka", 9092)}


async def check_holds(redis_url: str) -> AsyncIterator[Finding]:
    if not redis_url:
        yield Finding("holds", Severity.OK, NOT_RUNNING)
        return
    try:
        facts = await holds_facts(redis_url)
    except OperatorError as trouble:
        yield Finding("holds", Severity.FAIL, "not reached", str(trouble))
        return
    for finding in describe_engine("holds", facts):
        yield finding
    yield judge_memory(facts.memory)


async def check_limits(config: Config) -> AsyncIterator[Finding]:
    """Without them every process limits for itself: people may try as often as there are processes."""
    if config.limits_url:
        yield await _check_server("rate limits", config.limits_url, LIMITS, "counted tries")


async def check_bus(config: Config) -> AsyncIterator[Finding]:
    """Without it facts are read from the ledger: mail, search and webhooks are up to a second later."""
    if not config.bus_url:
        return
    scheme = urlsplit(config.bus_url).scheme
    if scheme not in OTHER_BUSES:
        yield await _check_server("bus", config.bus_url, BUS, "facts")
        return
    module, port = OTHER_BUSES[scheme]
    if find_spec(module) is None:
        extra = "kafka" if scheme == "kafka" else "nats"
        yield Finding("bus", Severity.FAIL, "its client is missing", f"pip install 'holdfast[{extra}]'")
    else:
        yield await _check_hosts(config.bus_url, port)


async def _check_server(what: str, url: str, setting: str, held: str) -> Finding:
    """Evictions are a warning here: a lost count or fact is not a lost hold, and facts are sent again."""
    try:
        facts = await other_redis_facts(url, setting, held)
    except EngineRefused as trouble:
        return Finding(what, Severity.FAIL, "refuses us", str(trouble))
    except OperatorError as trouble:
        return Finding(what, Severity.WARN, "not reached", str(trouble))
    faults = sorted(facts.faults, key=lambda fault: EVICTS in fault)  # the worse ones first
    if not faults:
        return Finding(what, Severity.OK, facts.version)
    health = Severity.WARN if EVICTS in faults[0] else Severity.FAIL
    return Finding(what, health, facts.version, faults[0])


async def _check_hosts(url: str, default_port: int) -> Finding:
    """One of its hosts accepts a connection."""
    hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
    trouble = ""
    for host in hosts:
        parts = urlsplit(f"//{host}")
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S / len(hosts)):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port or default_port)
        except (OSError, ValueError) as error:
            trouble = f"{host}: {' '.join(str(error).split()) or type(error).__name__}"
        else:
            writer.close()
            return Finding("bus", Severity.OK, f"{host} accepts connections")
    fix = f"the bus cannot be reached: {trouble}; is it up, and is {BUS} right?"
    return Finding("bus", Severity.WARN, "not reached", fix)


def judge_memory(found: RedisMemory) -> Finding:
    what = "memory of holds"
    if found.share < FULL_FROM:
        return Finding(what, Severity.OK, str(found))
    fix = (
        "a full Redis refuses holds, and PostgreSQL sells alone, slower: raise its maxmemory, or give it a "
        "machine with more memory"
    )
    return Finding(what, Severity.FAIL if found.share >= NO_ROOM_FROM else Severity.WARN, str(found), fix)


async def warn_of_other_servers(config: Config) -> list[str]:
    """At a start: OperatorError for addresses that cannot work, else a line per server that is away."""
    for url, setting in ((config.limits_url, LIMITS), (config.bus_url, BUS)):
        if url and urlsplit(url).scheme not in OTHER_BUSES:
            _refuse_malformed(url, setting)
    found = [one for check in (check_limits, check_bus) async for one in check(config)]
    return [f"{one.what}: {one.detail}; {one.fix}" for one in found if one.health is not Severity.OK]


def _refuse_malformed(url: str, setting: str) -> None:
    try:
        open_redis(url, links_max=1, timeout_s=1)
    except ValueError as error:
        raise OperatorError(f"{setting} cannot be parsed: {error}") from None
