"""How long the certificates of the public address and of the engines are still good."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from holdfast.config import Config
from holdfast.engines.certificates import (
    TlsServer,
    find_ledger_servers,
    find_public_server,
    find_redis_servers,
    load_days_left,
)
from holdfast.engines.metrics import metrics
from holdfast.runtime.check_settings import Finding, Severity

DAYS_WARN = 14  # the alert HoldfastCertificateEnding has the same
DAYS_FAIL = 3  # the alert HoldfastCertificateUrgent has the same
ANSWER_WITHIN_S = 5.0
PAUSE_S = 30.0
NAMES = {"public": "the public address"}


def find_servers(config: Config) -> list[TlsServer]:
    """Every server that we or our buyers may speak TLS with."""
    return [
        *find_public_server(config.public_url),
        *find_ledger_servers("ledger", config.database_url),
        *find_ledger_servers("ledger", config.database_direct_url),
        *find_ledger_servers("replica", config.replica_url),
        *find_redis_servers("holds", config.redis_url),
        *find_redis_servers("limits", config.limits_url),
        *find_redis_servers("bus", config.bus_url),
    ]


def keep_own_servers(config: Config) -> Config:
    """Of a pod: without the servers that it shares with the home database."""
    return replace(config, public_url="", limits_url="", bus_url="")


async def load_ends(config: Config) -> list[tuple[TlsServer, float | Exception]]:
    """Days left of each server that speaks TLS, or why they are not known."""
    servers = list(dict.fromkeys(find_servers(config)))
    found = await asyncio.gather(*(_load_end(server) for server in servers))
    return [(server, end) for server, end in zip(servers, found, strict=True) if end is not None]


async def _load_end(server: TlsServer) -> float | Exception | None:
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await load_days_left(server)
    except OSError as error:
        return error


async def check_certificates(config: Config) -> AsyncIterator[Finding]:
    for server, found in await load_ends(config):
        if isinstance(found, float):
            yield judge_days(server, found)
        elif server.place == "public":  # an engine that is away has a line of its own
            yield _unreachable(server, found)


def judge_days(server: TlsServer, days: float) -> Finding:
    what = f"certificate of {NAMES.get(server.place, server.place)}"
    if days >= DAYS_WARN:
        return Finding(what, Severity.OK, f"{server}: {days:.0f} days left")
    detail = f"{server}: {days:.1f} days left" if days > 0 else f"{server}: it ended {-days:.1f} days ago"
    fix = "renew it, reload the server that has it, and look why it was not renewed by itself"
    return Finding(what, Severity.FAIL if days < DAYS_FAIL else Severity.WARN, detail, fix)


def _unreachable(server: TlsServer, error: Exception) -> Finding:
    line = " ".join(str(error).split()) or type(error).__name__
    fix = "buyers cannot reach it: look at DNS, at the proxy in front, and at HOLDFAST_PUBLIC_URL"
    return Finding("certificate of the public address", Severity.WARN, f"{server}: {line}", fix)


class CertificateGauge:
    def __init__(self, config: Config) -> None:
        self._config = config

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog. A server that is away keeps its last value."""
        ends: dict[str, float] = {}
        for server, found in await load_ends(self._config):
            if isinstance(found, float):
                ends[server.place] = min(found, ends.get(server.place, found))
        for place, days in ends.items():
            metrics.measure("certificate_days_left", days, place=place)
        return 0
