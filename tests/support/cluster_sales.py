"""Sales on a cluster of Redis: a box office, and what its map and its ledger have."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace

from holdfast.app import App
from holdfast.bookings import Booking
from holdfast.claim import PoolMap, pool_keys
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.errors import Refusal
from holdfast.holds.comparison import differences
from holdfast.holds.jobs import SaleJobs
from tests.support.opened import open_app
from tests.support.redis_servers import Cluster, Server
from tests.support.show_fixture import Till

TIMEOUT_MS = 1000


@asynccontextmanager
async def a_box(config: Config, cluster: Cluster) -> AsyncIterator[App]:
    on_cluster = replace(config, redis_url=cluster.url, redis_timeout_ms=TIMEOUT_MS, map_fresh_ms=10)
    async with open_app(on_cluster) as opened:
        yield opened


async def is_on_map(box: App, booking: Booking) -> bool:
    """Redis has the hold, and not PostgreSQL alone."""
    found = await box.claims.read(booking.show_id, with_claims=True)
    return isinstance(found, PoolMap) and str(booking.claim) in (found.claims or ())


async def epoch_of(box: App, show: int) -> int:
    """Of the sale: every rebuild of its map raises it."""
    sale = await box.bookings.sale(show)
    assert sale is not None
    return sale.epoch


async def find_faults(box: App, *shows: int) -> list[str]:
    """Of the ledger, and of maps that differ from it once marked ones are rebuilt."""
    await SaleJobs(box.bookings, box.claims, box.seatmap, box.redis, box.config).rebuild_stale()
    found: list[str] = []
    for show in shows:
        found += await Till(box, show).violations()
        seen = await box.claims.read(show, with_claims=True)
        if isinstance(seen, PoolMap):
            found += [str(one) for one in differences(seen, await box.bookings.live_bookings(show))]
    return found


async def is_served(box: App, show: int) -> bool:
    """Redis serves the show again."""
    try:
        await box.claims.read(show)
    except EngineDown:
        return False
    return True


async def outcome_of(asking: Awaitable[Booking]) -> Booking | Refusal | EngineDown:
    try:
        return await asking
    except (Refusal, EngineDown) as refusal:
        return refusal


async def has_map(replica: Server) -> bool:
    """It has the keys; for a command it would only name their owner."""
    keys = (await replica.fields("INFO", "keyspace")).get("db0", "keys=0").split(",")[0]
    return int(keys.removeprefix("keys=")) >= len(pool_keys(0))
