"""A stage for things that go wrong: engines of its own that may be stopped, flushed and killed.

Two processes stand on it: `box`, and `slow`, which has two connections to the ledger. Taking both of
them (`stage.between()`) stops `slow` between its claim in Valkey and its row in the ledger, where most of
what can go wrong goes wrong.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from holdfast.app import App, asgi_app, open_app
from holdfast.bookings import Booking
from holdfast.catalogue import OrphanRule
from holdfast.claim import PoolMap
from holdfast.config import Config
from holdfast.engines.embedded import Engines, engines
from holdfast.engines.errors import EngineDown
from holdfast.holds import (
    BestAvailable,
    HoldRequest,
    NamedSeats,
    Selection,
    StandingPlaces,
    compute_claim_id,
    find_runs,
)
from holdfast.holds.api import new_request_id
from holdfast.holds.jobs import SaleJobs
from holdfast.layouts import Prefer
from tests.conftest import started
from tests.support import shows as cast
from tests.support.claim_pool import Pool
from tests.support.empty_ledger import fill_with_ledger
from tests.support.show_fixture import Till
from tests.support.wait import until


@dataclass(frozen=True)
class Stage:
    engines: Engines
    folder: Path
    app: App
    slow: App
    api: httpx2.AsyncClient

    async def till(self, seats: int = 20, **terms: Any) -> Till:
        """A show whose map has been written."""
        show = await cast.a_show(self.app, seats, **terms)
        await self.app.seatmap.rebuild(show, "test")
        return Till(self.app, show)

    def pool(self, show: int) -> Pool:
        """The show's map as Valkey has it."""
        return Pool(self.app.claims, self.app.redis, show)

    @asynccontextmanager
    async def between(self, show_id: int) -> AsyncIterator[None]:
        """While this lasts, whatever `slow` claims does not become a row."""
        await self.slow.catalogue.show_on_sale(show_id)
        await self.slow.waiting_rooms.guard.refresh()  # a hold reads it before its claim
        async with self.slow.postgres.lease(), self.slow.postgres.lease():
            yield

    async def bring_valkey_back(self) -> None:
        """Up, and every link to the one before given up."""
        await self.engines.valkey.release()
        for app in (self.app, self.slow):
            await until(partial(_answers, app))

    def jobs(self, *, shows_max: int = 200, **config: Any) -> SaleJobs:
        """Of a worker of its own."""
        app, changed = self.app, replace(self.app.config, **config)
        return SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, changed, shows_max=shows_max)

    async def fans(self, how_many: int) -> list[cast.Fan]:
        return await cast.fans(self.app, self.api, how_many)


async def _answers(app: App) -> bool:
    try:
        return bool(await app.redis.call("PING"))
    except EngineDown:
        return False


async def a_request(app: App, show_id: int, owner: int, *seats: int, **other: Any) -> HoldRequest:
    """Seats by number; or, with best= or places=, so many."""
    show = await app.catalogue.show_on_sale(show_id)
    selection: Selection = NamedSeats(seats, OrphanRule.OFF, find_runs(show.layout, seats))
    if count := other.get("best"):
        selection = BestAvailable(count, None, Prefer.BEST, False, True)
    if count := other.get("places"):
        (area,) = show.layout.areas
        selection = StandingPlaces(area.start, area.start + area.capacity, count)
    request_id = other.get("request_id") or new_request_id()
    return HoldRequest(
        show=show,
        owner_id=owner,
        request_id=request_id,
        claim_id=compute_claim_id(owner, request_id),
        body_hash=1,
        selection=selection,
    )


async def hold(app: App, show_id: int, owner: int, *seats: int, **other: Any) -> Booking:
    booking = await app.holds.hold(await a_request(app, show_id, owner, *seats, **other))
    return booking


async def shown(app: App, show_id: int) -> str:
    """The map that a new viewer gets."""
    fresh_until = time.monotonic() + app.config.map_fresh_ms / 1000
    # The loop's timers are early when it is busy.
    while (left_s := fresh_until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(left_s)
    return (await app.seatmap.snapshot(show_id)).states.decode()


async def claims_of(stage: Stage, show_id: int) -> dict[str, float]:
    """Claim -> what it has left, in ms by Valkey's clock."""
    found = await stage.app.claims.read(show_id, with_claims=True)
    assert isinstance(found, PoolMap)
    now = await stage.pool(show_id).now_ms()
    return {name: end - now for name, end in (found.claims or {}).items()}


@asynccontextmanager
async def a_stage(folder: Path) -> AsyncIterator[Stage]:
    await fill_with_ledger(folder)
    async with engines(folder) as both:
        config = Config(
            database_url=both.database_url,
            redis_url=both.redis_url,
            redis_timeout_ms=1000,
            map_fresh_ms=10,
            postgres_timeout_s=3,
            requests_per_second_max=0,
            logins_per_minute_max=0,
        )
        application = asgi_app(config)
        async with (
            open_app(config) as app,
            open_app(replace(config, postgres_pool_max=2)) as slow,
            started(application),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(application), base_url="http://box.office"
            ) as api,
        ):
            yield Stage(both, folder, app, slow, api)
