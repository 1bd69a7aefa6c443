"""What a bench measures: engines and web workers as real processes, many shows and many accounts."""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import httpx2

from holdfast.accounts import NewAccount
from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.embedded import engines
from holdfast.engines.migrate import migrate
from holdfast.engines.postgres import Queries
from holdfast.layouts import Layout
from holdfast.web.caller import Caller, Role
from tests.support.shows import a_show

Q = Queries("bench")

START_WITHIN_S = 60
ACCESS_TTL_S = 3600  # the tokens of the load outlive the bench


@dataclass(frozen=True)
class Environment:
    config: Config
    app: App
    folder: Path


@asynccontextmanager
async def start_environment(
    batch_max: int = 128, postgres_settings: Mapping[str, str] | None = None
) -> AsyncIterator[Environment]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        async with engines(Path(folder) / "data", postgres_settings=postgres_settings) as both:
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
                yield Environment(replace(config, batch_max=batch_max), app, Path(folder))


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def start_workers(
    env: Environment, count: int, port: int = 0, **settings: int | float | str
) -> AsyncIterator[str]:
    """Start `count` web workers that share a port; yields their address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        probe.bind(("127.0.0.1", port))
        port = probe.getsockname()[1]
        variables = os.environ | {
            "HOLDFAST_DATABASE_URL": env.config.database_url,
            "HOLDFAST_REDIS_URL": env.config.redis_url,
            "HOLDFAST_REQUESTS_PER_SECOND_MAX": "0",
            "HOLDFAST_ACCESS_TTL_S": str(ACCESS_TTL_S),
            "HOLDFAST_BATCH_MAX": str(env.config.batch_max),
            "HOLDFAST_GATEWAY": "sandbox",
            "HOLDFAST_GATEWAY_URL": env.config.gateway_url,
            "HOLDFAST_GATEWAY_SECRET": env.config.gateway_secret,
            **{f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()},
        }
        started = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bench.server", str(port), env=variables
            )
            for _ in range(count)
        ]
        try:
            await _wait_for_workers(f"http://127.0.0.1:{port}/healthz", count)
            yield f"http://127.0.0.1:{port}"
        finally:
            for process in started:
                process.terminate()
            await asyncio.gather(*(process.wait() for process in started))


async def _wait_for_workers(url: str, count: int) -> None:
    """Wait until every worker listens. The kernel picks one per connection, hence several requests."""
    async with asyncio.timeout(START_WITHIN_S):
        successes = 0
        while successes < count * 8:
            try:
                async with httpx2.AsyncClient() as client:
                    successes = successes + 1 if (await client.get(url)).status_code == 200 else 0
            except httpx2.TransportError:
                successes = 0
                await asyncio.sleep(0.1)


async def create_callers(env: Environment, count: int, *, is_verified: bool = True) -> list[Caller]:
    """New accounts that are signed in."""
    kind = "verified" if is_verified else "unverified"
    names = [f"{kind}{i}-{os.getpid()}@example.com" for i in range(count)]
    ids = await env.app.accounts.add_many(
        [NewAccount(name, "Bench", is_verified=is_verified) for name in names]
    )
    return [Caller(i, Role.FAN, 10_000_000 + i, is_verified=is_verified) for i in ids]


async def write_tokens(env: Environment, count: int, *, is_verified: bool = True) -> Path:
    """A file with the access tokens of new accounts, one per line, for load generators."""
    callers = await create_callers(env, count, is_verified=is_verified)
    tokens = [env.app.accounts.access_token(caller) for caller in callers]
    return write_lines(env.folder / f"tokens-{'verified' if is_verified else 'unverified'}", tokens)


def write_lines(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("\n".join(lines) + "\n")
    return file


async def create_shows(
    env: Environment, layout: Layout, count: int, *, with_maps: bool = True
) -> Sequence[int]:
    """Shows on sale with consecutive ids, with their seat maps in Redis unless the bench never reads them."""
    first = await a_show(env.app, layout=layout, owner_seats_max=1000)
    ids = list(range(first, first + count))
    for query in (Q.copy_shows, Q.copy_prices, Q.copy_terms, Q.copy_sales):
        await env.app.postgres.execute(query, first, ids)
    if with_maps:
        for show_id in ids:
            await env.app.seatmap.rebuild(show_id, "bench")
    return ids
