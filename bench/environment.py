"""The stage of a bench: engines, many shows, many people, and web workers, all real processes."""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import httpx2

from holdfast.accounts import NewAccount
from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.migrate import migrate
from holdfast.engines.sql import Queries
from holdfast.layouts import Layout
from holdfast.web.caller import Caller, Role
from tests.support.shows import a_show

Q = Queries("bench")

START_WITHIN_S = 60
ACCESS_TTL_S = 3600  # tokens of the load live as long as the bench


@dataclass(frozen=True)
class Stage:
    engines: Engines
    config: Config
    app: App
    folder: Path


@asynccontextmanager
async def stage(batch_max: int = 128) -> AsyncIterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        async with engines(Path(folder) / "data") as both:
            connection = await asyncpg.connect(both.database_url)
            await migrate(connection)
            await connection.close()
            config = Config(
                database_url=both.database_url,
                redis_url=both.redis_url,
                requests_per_second_max=0,
                access_ttl_s=ACCESS_TTL_S,
            )
            async with open_app(config) as app:
                yield Stage(both, replace(config, batch_max=batch_max), app, Path(folder))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def workers(on: Stage, how_many: int, port: int = 0) -> AsyncIterator[str]:
    """The address of `how_many` web workers that share a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        probe.bind(("127.0.0.1", port))
        port = probe.getsockname()[1]
        env = os.environ | {
            "HOLDFAST_DATABASE_URL": on.config.database_url,
            "HOLDFAST_REDIS_URL": on.config.redis_url,
            "HOLDFAST_REQUESTS_PER_SECOND_MAX": "0",
            "HOLDFAST_ACCESS_TTL_S": str(ACCESS_TTL_S),
            "HOLDFAST_BATCH_MAX": str(on.config.batch_max),
            "HOLDFAST_GATEWAY_URL": on.config.gateway_url,
            "HOLDFAST_GATEWAY_SECRET": on.config.gateway_secret,
        }
        started = [
            await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.server", str(port), env=env)
            for _ in range(how_many)
        ]
        try:
            await _answers(f"http://127.0.0.1:{port}/healthz", how_many)
            yield f"http://127.0.0.1:{port}"
        finally:
            for process in started:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in started))


async def _answers(url: str, how_many: int) -> None:
    """Every worker listens: new connections land on any of them, so ask often enough."""
    async with asyncio.timeout(START_WITHIN_S):
        fine = 0
        while fine < how_many * 8:
            try:
                async with httpx2.AsyncClient() as client:
                    fine = fine + 1 if (await client.get(url)).status_code == 200 else 0
            except httpx2.TransportError:
                fine = 0
                await asyncio.sleep(0.1)


async def tokens(on: Stage, how_many: int) -> list[str]:
    people = [NewAccount(f"bench{i}-{os.getpid()}@example.com", "Bench") for i in range(how_many)]
    ids = await on.app.accounts.add_many(people)
    return [on.app.accounts.access_token(Caller(i, Role.FAN, 10_000_000 + i)) for i in ids]


async def shows(on: Stage, layout: Layout, how_many: int, *, built: bool = True) -> Sequence[int]:
    """So many shows on sale, numbered consecutively; their maps are built unless nobody will ask."""
    first = await a_show(on.app, layout=layout, owner_seats_max=1000)
    ids = list(range(first, first + how_many))
    for query in (Q.copy_shows, Q.copy_prices, Q.copy_terms, Q.copy_sales):
        await on.app.postgres.execute(query, first, ids)
    if built:
        for show_id in ids:
            await on.app.seatmap.rebuild(show_id, "bench")
    return ids
