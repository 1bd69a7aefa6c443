"""Holdfast as it is deployed: `holdfast serve` with two web workers, `holdfast work`, the sandbox gateway.

Its limits per address are off: all buyers come from one address.
"""

import platform
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.peers.plan import Hall, SeatCount
from holdfast.accounts import NewAccount
from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.embedded.binaries import find_postgres, find_valkey
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.postgres import Queries
from holdfast.layouts import Layout
from holdfast.sandbox import load_or_create_secret
from holdfast.web.caller import Caller, Role
from tests.support.box_office import ACCESS_TTL_S, jobs, running
from tests.support.shows import a_show

Q = Queries("bench.peers")

WEB_WORKERS = 2
ACCOUNTS = 1_000
PRICE_MINOR = 1500
NO_LIMITS = dict.fromkeys(
    (
        "requests_per_second_max",
        "guests_per_minute_max",
        "range_seats_max",
        "range_lapses_per_hour_max",
        "puzzle_from_holds_per_second",
    ),
    0,
)


@dataclass(frozen=True)
class RunningHoldfast:
    url: str
    app: App
    tokens: list[str]

    async def create_halls(self, layout: Layout, count: int, *, is_free: bool) -> list[Hall]:
        """Shows on sale with their maps in Valkey; the guests of free ones pay nothing."""
        price = 0 if is_free else PRICE_MINOR
        shows = [
            await a_show(self.app, layout=layout, owner_seats_max=1000, price_minor=price)
            for _ in range(count)
        ]
        for show in shows:
            await self.app.seatmap.rebuild(show, "bench")
        return [Hall(str(show)) for show in shows]

    async def count_seats(self, halls: list[Hall]) -> SeatCount:
        """Of these shows: seats of a booking that is held, being paid for or confirmed."""
        row = await self.app.postgres.fetchrow(Q.holdfast_seats, [int(hall.event) for hall in halls])
        assert row is not None
        return SeatCount(**row)


@asynccontextmanager
async def start_holdfast(cache: Path) -> AsyncIterator[RunningHoldfast]:
    """On the disk of the cache folder, where the data of the other systems is, too."""
    with tempfile.TemporaryDirectory(prefix="holdfast-", dir=cache) as name:
        path = Path(name)
        words = (
            "serve",
            "--port",
            "0",
            "--workers",
            str(WEB_WORKERS),
            "--data",
            str(path / "data"),
            "--json",
        )
        async with running(path / "serve.log", words, NO_LIMITS) as facts:
            folder = DataFolder(path / "data")
            async with jobs(folder, **NO_LIMITS), open_app(_read_config(folder)) as app:
                yield RunningHoldfast(facts["url"], app, await _create_tokens(app))


def _read_config(folder: DataFolder) -> Config:
    started = folder.running()
    assert started is not None
    return Config(
        database_url=started.database_url,
        redis_url=started.redis_url,
        gateway_url=(folder.run / "sandbox.url").read_text(),
        gateway_secret=load_or_create_secret(folder.path / "sandbox"),
        access_ttl_s=ACCESS_TTL_S,
    )


async def _create_tokens(app: App) -> list[str]:
    new = [NewAccount(f"peer{i}@example.com", "Bench", is_verified=True) for i in range(ACCOUNTS)]
    ids = await app.accounts.add_many(new)
    callers = [Caller(i, Role.FAN, 10_000_000 + i, is_verified=True) for i in ids]
    return [app.accounts.access_token(caller) for caller in callers]


def read_engine_versions() -> dict[str, str]:
    """Of the engines, which both systems use, and of Holdfast."""
    return {
        "Holdfast": version("holdfast"),
        "PostgreSQL": find_postgres().version,
        "Valkey": find_valkey().version,
        "Python": platform.python_version(),
    }
