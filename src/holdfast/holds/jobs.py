"""Jobs of the sale: close expired holds, rebuild maps, compare maps with PostgreSQL (R25, R19).

Any number of workers may run them at once: rows are shared out by SKIP LOCKED, maps by the sale's lock, and
one worker at a time compares.
"""

import time

import structlog

from holdfast.bookings import Bookings
from holdfast.claim import Claims, PoolMap
from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.job_lease import JobLease
from holdfast.engines.metrics import metrics
from holdfast.engines.redis import Redis
from holdfast.holds.comparison import MapDifference, differences
from holdfast.seatmap import SeatMap

log = structlog.get_logger(__name__)

SHOWS_MAX = 200  # compared or rebuilt in one go
TRAFFIC_S = 30  # a show with a move since then is compared first
DIFFERENCES_MAX = 1000  # remembered of one show: a single one that lasts has the whole map rebuilt
LEASE_ROUNDS = 4  # a worker that skipped so many rounds is presumed dead, and another one compares


class SaleJobs:
    def __init__(
        self,
        bookings: Bookings,
        claims: Claims,
        seatmap: SeatMap,
        redis: Redis,
        config: Config,
        *,
        shows_max: int = SHOWS_MAX,
    ) -> None:
        self._bookings = bookings
        self._claims = claims
        self._seatmap = seatmap
        self._redis = redis
        self._config = config
        self._shows_max = shows_max
        self._seen: dict[int, dict[MapDifference, float]] = {}  # by show; since when
        self._busy_after = self._open_after = 0  # the last show of each list that was compared
        lease_s = max(1.0, config.compare_pause_s * LEASE_ROUNDS)
        self._comparing = JobLease(redis, "compare", lease_s=lease_s)

    async def sweep(self) -> int:
        """Close the rows of expired holds. Their seats have been free for other buyers since expires_at."""
        closed = await self._bookings.sweep(self._config.sweep_max)
        if closed:
            metrics.add("bookings_total", len(closed), move="expire")
        return len(closed)

    async def rebuild_stale(self) -> int:
        """Rebuild maps that were marked: Redis was unreachable, or the show was changed."""
        if not await self._redis.is_reachable():
            return 0
        shows = await self._bookings.stale_sales(self._shows_max)
        done = 0
        for show_id in shows:
            try:
                await self._seatmap.rebuild(show_id, "marked")
                done += 1
            except EngineDown as down:
                if down.engine != "holds":
                    raise
                log.info("Redis unreachable; a marked map waits", show_id=show_id)  # of a cluster: its node
            except Exception as error:  # one broken show must not stop the rebuild of the others
                log.error("cannot rebuild a map", show_id=show_id, error=repr(error))
        return done

    async def compare(self) -> int:
        """Compare map and rows of every open sale in turn, in one worker; differences that last are fixed by
        a rebuild. First shows that differed the last time and shows with traffic, then the next open sales:
        a show without traffic may have missed an update, too."""
        try:
            if not await self._may_compare():
                self._seen.clear()
                return 0
            for show_id in await self._shows_to_compare():
                await self._compare_or_log(show_id)
        except EngineDown:  # nothing to compare with
            return 0
        return 0

    async def _may_compare(self) -> bool:
        try:
            return await self._comparing.take()
        except EngineDown:  # of a cluster, the node with the lease: workers do the same work meanwhile
            return await self._redis.is_reachable()

    async def _shows_to_compare(self) -> list[int]:
        most = self._shows_max
        busy = await self._bookings.shows_with_moves(TRAFFIC_S, self._busy_after, most)
        following = await self._bookings.open_sales(self._open_after, most)
        # A full part goes on behind its last show the next time; a part that is not full was the last one.
        self._busy_after = busy[-1] if len(busy) == most else 0
        self._open_after = following[-1] if len(following) == most else 0
        return list(dict.fromkeys([*self._seen, *busy, *following]))

    async def _compare_or_log(self, show_id: int) -> None:
        try:
            await self.compare_show(show_id)
        except EngineDown as down:
            if down.engine != "holds":
                raise
            # Of a cluster, its node; maps of other nodes are compared. With one server, all end here at once.
        except Exception as error:  # a broken map is replaced, and does not stop the others' comparison
            log.error("cannot compare a map", show_id=show_id, error=repr(error))
            await self._bookings.mark_map_stale(show_id)

    async def compare_show(self, show_id: int) -> list[MapDifference]:
        """Differences that were there at the previous comparison too."""
        found = await self._claims.read(show_id, with_claims=True)
        if not isinstance(found, PoolMap):
            self._seen.pop(show_id, None)
            return []
        # The map is read before the rows: a claim may become a row in between, and a row may end. Such a
        # difference is gone at the next comparison, so only those that last count as faults.
        now = time.monotonic()
        current = differences(found, await self._bookings.live_bookings(show_id))[:DIFFERENCES_MAX]
        before = self._seen.pop(show_id, {})
        seen = {difference: before.get(difference, now) for difference in current}
        lasting = [difference for difference, since in seen.items() if now - since >= self._tolerance_s]
        if lasting:
            await self._correct(show_id, found.epoch, lasting)
        elif seen:
            self._seen[show_id] = seen
        return lasting

    async def _correct(self, show_id: int, epoch: int, lasting: list[MapDifference]) -> None:
        for difference in lasting:
            metrics.add("map_corrections_total", kind=difference.kind)
        log.warning("map and bookings differ", show_id=show_id, count=len(lasting), first=str(lasting[0]))
        # Marked first: if this process dies before the rebuild, the job for marked maps does it. Only the
        # map that was compared: if another process has replaced it since, the difference is gone.
        if await self._bookings.mark_map_stale(show_id, epoch):
            await self._seatmap.rebuild(show_id, "differs")

    @property
    def _tolerance_s(self) -> float:
        return self._config.compare_pause_s * 0.75
