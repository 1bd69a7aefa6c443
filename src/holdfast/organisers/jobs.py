"""Jobs that apply price rules and release blocks. Any number of workers may run them: row locks decide."""

import structlog

from holdfast.catalogue import Catalogue
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.price_rules_store import list_due_shows, postpone_price_update, update_prices

log = structlog.get_logger(__name__)

RETRY_AFTER_S = 60.0  # pause after an error


class PriceJobs:
    def __init__(self, postgres: Postgres, catalogue: Catalogue, pause_s: float) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._pause_s = pause_s

    async def step(self) -> int:
        """Update due prices; returns how many shows changed."""
        moved = 0
        for show_id, layout_hash in await list_due_shows(self._postgres):
            try:
                layout = await self._catalogue.layout(layout_hash)
                moved += await update_prices(self._postgres, show_id, layout, self._pause_s)
            except EngineDown:
                raise
            except Exception as error:  # a show with an error must not stop the others
                log.error("cannot apply price rules", show_id=show_id, error=repr(error))
                await postpone_price_update(self._postgres, show_id, RETRY_AFTER_S)
        if moved:
            metrics.add("price_steps_total", moved)
        return moved


BLOCKS_AT_ONCE_MAX = 50


class BlockJobs:
    def __init__(self, blocks: BlockStore) -> None:
        self._blocks = blocks

    async def release(self) -> int:
        released = await self._blocks.release_due(BLOCKS_AT_ONCE_MAX)
        if released:
            metrics.add("blocks_released_total", released)
        return released
