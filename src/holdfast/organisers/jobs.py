"""Jobs that apply price rules and release blocks. Any number of workers may run them: row locks decide."""

import structlog

from holdfast.catalogue import Catalogue
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries
from holdfast.errors import Busy
from holdfast.layouts import Layout
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.pod_seats import CountSeats, SeatsByCategory
from holdfast.organisers.price_rules_store import list_due_shows, postpone_price_update, update_prices

log = structlog.get_logger(__name__)

PRICES_DUE = Queries("holdfast.organisers", "price_rules").is_due
BLOCKS_DUE = Queries("holdfast.organisers", "blocks").is_due
RETRY_AFTER_S = 60.0  # pause after an error


class PriceJobs:
    def __init__(
        self,
        postgres: Postgres,
        catalogue: Catalogue,
        pause_s: float,
        count_seats: CountSeats | None = None,
    ) -> None:
        """`count_seats`: in a house with pods."""
        self._postgres = postgres
        self._catalogue = catalogue
        self._pause_s = pause_s
        self._count_seats = count_seats

    async def step(self) -> int:
        """Update due prices; returns how many shows changed."""
        moved = 0
        for show_id, layout_hash in await list_due_shows(self._postgres):
            try:
                layout = await self._catalogue.layout(layout_hash)
                seats = await self._seats_elsewhere(show_id, layout)
                moved += await update_prices(self._postgres, show_id, layout, self._pause_s, seats)
            except PodAway as away:  # its shows wait, the others go on
                log.warning("prices wait for a pod", show_id=show_id, error=repr(away.__cause__))
                await postpone_price_update(self._postgres, show_id, self._pause_s)
            except EngineDown:
                raise
            except Exception as error:  # a show with an error must not stop the others
                log.error("cannot apply price rules", show_id=show_id, error=repr(error))
                await postpone_price_update(self._postgres, show_id, RETRY_AFTER_S)
        if moved:
            metrics.add("price_steps_total", moved)
        return moved

    async def _seats_elsewhere(self, show_id: int, layout: Layout) -> SeatsByCategory | None:
        """None: they are counted where the catalogue is."""
        if self._count_seats is None:
            return None
        try:
            return await self._count_seats(show_id, layout)
        except (EngineDown, Busy) as error:
            raise PodAway from error


class PodAway(Exception):
    """What was sold of a show cannot be counted now."""


BLOCKS_AT_ONCE_MAX = 50


class BlockJobs:
    def __init__(self, blocks: BlockStore) -> None:
        self._blocks = blocks

    async def release(self) -> int:
        released = await self._blocks.release_due(BLOCKS_AT_ONCE_MAX)
        if released:
            metrics.add("blocks_released_total", released)
        return released
