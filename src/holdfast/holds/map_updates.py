"""PostgreSQL has decided; the seat map in Redis follows, many updates in one round trip.

A map that cannot be updated is marked in PostgreSQL: the decision is durable, so the buyer's answer must not
fail because Redis did, and the mark survives this process, an outage of Redis and a night without workers.
A marked map is rebuilt by the next worker, or by the next hold of the show.
"""

from collections.abc import Sequence

import structlog

from holdfast.bookings import Bookings
from holdfast.claim import Claims, Settlement
from holdfast.engines import fault_injection
from holdfast.engines.batch import Batcher
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.seatmap import SeatMap

log = structlog.get_logger(__name__)


class MapUpdates:
    def __init__(
        self, bookings: Bookings, claims: Claims, seatmap: SeatMap, *, batch_max: int, waiting_max: int
    ) -> None:
        self._bookings = bookings
        self._claims = claims
        self._seatmap = seatmap
        self._settle = Batcher(self._settle_many, batch_max=batch_max, waiting_max=waiting_max)

    async def update(self, show_id: int, *settlements: Settlement) -> None:
        try:
            with fault_injection.fault_points(f"map.{settlements[0].action}"):
                is_settled = await self._settle((show_id, settlements))
        except EngineDown:
            is_settled = False
        if not is_settled:
            metrics.add("map_updates_missed_total", len(settlements))
            await self._mark(show_id)

    async def catch_up(self, show_id: int, epoch: int) -> None:
        """PostgreSQL has a later epoch than the map of a claim: make sure that Redis gets there too."""
        try:
            found, is_own_run = await self._claims.epoch(show_id)
            if found < epoch or not is_own_run:
                await self._seatmap.rebuild(show_id, "behind")
        except EngineDown:
            log.info("Redis unreachable; its map is rebuilt when it is back", show_id=show_id)

    async def _mark(self, show_id: int) -> None:
        try:
            await self._bookings.mark_map_stale(show_id)
        except EngineDown:  # both engines are away: the comparison of all open sales finds the difference
            log.warning("a map that was not updated could not be marked", show_id=show_id)

    async def _settle_many(self, updates: Sequence[tuple[int, tuple[Settlement, ...]]]) -> list[bool]:
        """False for updates of a show whose map is broken or out of reach; the others are not concerned."""
        by_show: dict[int, list[Settlement]] = {}
        for show_id, settlements in updates:
            by_show.setdefault(show_id, []).extend(settlements)
        failed = await self._claims.settle_pools(by_show)
        for show_id, error in failed.items():
            if not isinstance(error, EngineDown):
                log.error("a map cannot be updated", show_id=show_id, error=str(error))
        return [show_id not in failed for show_id, _ in updates]
