"""The duty that gives seats kept back to the sale when their time has come (R33)."""

from holdfast.engines.meter import meter
from holdfast.sale.blocks.store import Blocks

BLOCKS_AT_ONCE_MAX = 50


class BlockDuties:
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    async def release(self) -> int:
        released = await self._blocks.release_due(BLOCKS_AT_ONCE_MAX)
        if released:
            meter.add("blocks_released_total", released)
        return released
