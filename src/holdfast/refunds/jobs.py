"""Jobs: ask the gateway for refunds that are owed, refund cancelled shows, count what a person must see to.

Any number of workers may run them at once: rows are shared out by SKIP LOCKED, and every decision is made
once, in the ledger.
"""

import asyncio

import structlog

from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Queries
from holdfast.refunds.refund import Refund
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore

log = structlog.get_logger(__name__)

REFUNDS_DUE = Queries("holdfast.refunds").is_due
SHOWS_MAX = 50  # cancelled shows that are looked at in one go


class RefundJobs:
    def __init__(self, store: RefundStore, refunds: RefundService, at_once_max: int) -> None:
        self._store = store
        self._refunds = refunds
        self._at_once_max = at_once_max
        self._under_way: set[asyncio.Task[None]] = set()

    async def carry_out(self) -> int:
        """Due refunds, a few at once: a cancelled show must not flood the gateway."""
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
        """Wait for the refunds in progress: for callers that run the job once."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def refund_shows(self) -> int:
        """Bookings of cancelled shows, a batch of each show at a time."""
        done = 0
        for show_id in await self._store.shows_to_refund(SHOWS_MAX):
            try:
                done += await self._refunds.cancel_batch(show_id)
            except Exception as error:  # one show must not block the others; the next run retries
                log.error("refunding a cancelled show failed", show_id=show_id, error=repr(error))
        return done

    async def count(self) -> int:
        by_hand, requested = await self._store.waiting()
        metrics.measure("refunds_by_hand", by_hand)
        metrics.measure("refunds_waiting", requested)
        return 0

    async def _carry_out(self, refund: Refund) -> None:
        try:
            await self._refunds.carry_out(refund)
        except Exception as error:  # it becomes due again when our lease ends
            log.warning("refund not carried out", refund=refund.refund_id, error=repr(error))
