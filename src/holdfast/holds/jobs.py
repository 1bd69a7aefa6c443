"""Jobs of the sale: close expired holds, rebuild maps, compare maps with PostgreSQL (R25, R19).

Any number of workers may run them at once: rows are shared out by SKIP LOCKED, maps by the sale's lock.
"""

import time

import structlog

from holdfast.bookings import Bookings
from holdfast.claim import Claims, PoolMap
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.holds.comparison import MapDifference, differences
from holdfast.seatmap import SeatMap

log = structlog.get_logger(__name__)

SHOWS_MAX = 200  # compared or rebuilt in one go
TRAFFIC_S = 30  # a show with a move since then is compared


class SaleJobs:
    def __init__(self, bookings: Bookings, claims: Claims, seatmap: SeatMap, config: Config) -> None:
        self._bookings = bookings
        self._claims = claims
        self._seatmap = seatmap
        self._config = config
        self._seen: dict[tuple[int, MapDifference], float] = {}

    async def sweep(self) -> int:
        """Close the rows of expired holds. Their seats have been free for other buyers since expires_at."""
        closed = await self._bookings.sweep(self._config.sweep_max)
        if closed:
            metrics.add("bookings_total", len(closed), move="expire")
        return len(closed)

    async def rebuild_stale(self) -> int:
        """Rebuild maps that were marked: Redis was unreachable, or the show was changed."""
        if await self._is_redis_down():
            return 0
        shows = await self._bookings.stale_sales(SHOWS_MAX)
        done = 0
        for show_id in shows:
            try:
                await self._seatmap.rebuild(show_id, "marked")
                done += 1
            except EngineDown:
                raise
            except Exception as error:  # one broken show must not stop the rebuild of the others
                log.error("cannot rebuild a map", show_id=show_id, error=repr(error))
        return done

    async def compare(self) -> int:
        """Compare map and rows of shows with traffic; lasting differences are fixed by a rebuild."""
        for show_id in await self._bookings.shows_with_moves(TRAFFIC_S, SHOWS_MAX):
            await self.compare_show(show_id)
        return 0

    async def compare_show(self, show_id: int) -> list[MapDifference]:
        """Differences that were there at the previous comparison too."""
        try:
            found = await self._claims.read(show_id, with_claims=True)
        except EngineDown:
            return []
        if not isinstance(found, PoolMap):
            return []
        # The map is read before the rows: a claim may become a row in between, and a row may end. Such a
        # difference is gone at the next comparison, so only those that last count as faults.
        now = time.monotonic()
        current = differences(found, await self._bookings.live_bookings(show_id))
        seen = {key for key in self._seen if key[0] == show_id}
        for key in seen - {(show_id, difference) for difference in current}:
            del self._seen[key]
        lasting = [d for d in current if now - self._seen.setdefault((show_id, d), now) >= self._tolerance_s]
        if lasting:
            for difference in lasting:
                metrics.add("map_corrections_total", kind=difference.kind)
                del self._seen[show_id, difference]
            log.warning("map and bookings differ", show_id=show_id, count=len(lasting), first=str(lasting[0]))
            # Marked first: if this process dies before the rebuild, the job for marked maps does it.
            await self._bookings.mark_map_stale(show_id)
            await self._seatmap.rebuild(show_id, "differs")
        return lasting

    @property
    def _tolerance_s(self) -> float:
        return self._config.compare_pause_s * 0.75

    async def _is_redis_down(self) -> bool:
        try:
            await self._claims.epoch(0)
        except EngineDown:
            return True
        return False
