"""Jobs: ask the gateway for refunds that are owed, refund cancelled shows, count what a person must see to.

Any number of workers may run them at once: rows are shared out by SKIP LOCKED, and every decision is made
once, in the ledger.
"""

import asyncio

import structlog

from holdfast.engines.metrics import metrics
from holdfast.refunds.refund import Refund
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore

log = structlog.get_logger(__name__)

SHOWS_MAX = 50  # cancelled shows that are looked at in one go


class RefundJobs:
    def __init__(self, store: RefundStore, refunds: RefundService, at_once_max: int) -> None:
        self._store = store
        self._refunds = refunds
        self._at_once_max = at_once_max
        self._under_way: set[asyncio.Task[None]] = set()

    async def carry_out(self) -> int:
        """Refunds that somebody decided and nobody has asked for in time. A few at once, whatever is owed."""
        room = self._at_once_max - len(self._under_way)
        refunds = await self._store.take_due(room) if room else []
        for refund in refunds:
            task = asyncio.create_task(self._carry_out(refund))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        if not room:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        return len(refunds) or (0 if room else 1)

    async def wait_until_idle(self) -> None:
        """Wait for those under way: for who runs the job once."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def refund_shows(self) -> int:
        """Bookings of cancelled shows, a batch of each show at a time."""
        done = 0
        for show_id in await self._store.shows_to_refund(SHOWS_MAX):
            try:
                done += await self._refunds.cancel_batch(show_id)
            except Exception as error:  # one show must not keep the others from it; the next run comes back
                log.error("a cancelled show could not be refunded", show_id=show_id, error=repr(error))
        return done

    async def count(self) -> int:
        by_hand, asked = await self._store.waiting()
        metrics.measure("refunds_by_hand", by_hand)
        metrics.measure("refunds_waiting", asked)
        return 0

    async def _carry_out(self, refund: Refund) -> None:
        try:
            await self._refunds.carry_out(refund)
        except Exception as error:  # it stays due, and somebody asks again when our turn is over
            log.warning("a refund could not be carried out", refund=refund.refund_id, error=repr(error))
