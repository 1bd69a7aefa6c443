"""Jobs: payments left by a dead process, a silent gateway or a slow payer; reconciliation; webhooks."""

import asyncio
from datetime import timedelta

import structlog

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.payments.payment import Payment
from holdfast.payments.reconciliation import Reconciliation
from holdfast.payments.saga_runner import SagaRunner
from holdfast.payments.store import PaymentStore
from holdfast.payments.webhooks import IncomingWebhooks

log = structlog.get_logger(__name__)

PAYMENTS_DUE = Queries("holdfast.payments").is_due
WEBHOOKS_DUE = Queries("holdfast.payments", "webhooks").is_due
AT_ONCE_MAX = 64  # payments that a worker carries on at the same time


class PaymentJobs:
    def __init__(self, payments: PaymentStore, saga_runner: SagaRunner) -> None:
        self._payments = payments
        self._saga_runner = saga_runner
        self._under_way: set[asyncio.Task[None]] = set()

    async def carry_on(self) -> int:
        """Due payments from the ledger, each in its own task: a silent gateway delays no other payment."""
        room = AT_ONCE_MAX - len(self._under_way)
        payments = await self._payments.take_due(room) if room else []
        for payment in payments:
            task = asyncio.create_task(self._carry_on(payment))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return len(payments)

    async def _carry_on(self, payment: Payment) -> None:
        try:
            await self._saga_runner.carry_on(payment)
        except Exception as error:  # it becomes due again when our lease ends
            log.warning("payment not carried on", key=payment.key, error=repr(error))


class ReconciliationJobs:
    def __init__(self, reconciliation: Reconciliation, config: Config) -> None:
        self._reconciliation = reconciliation
        self._pause = timedelta(seconds=config.reconcile_pause_s * 0.75)

    async def compare(self) -> int:
        """One process at a time: the first takes the lease, the others return at once."""
        async with self._reconciliation.lock() as is_ours:
            since = await self._reconciliation.since(self._pause) if is_ours else None
            if since is not None:
                await self._reconciliation.compare(since.at, is_deep=since.is_deep)
        return 0

    async def count(self) -> int:
        await self._reconciliation.count()
        return 0


SETTLED_AT_ONCE_MAX = 1000
LOOKS_AT_ONCE_MAX = 32
FORGOTTEN_AT_ONCE_MAX = 1000


class WebhookJobs:
    def __init__(self, webhooks: IncomingWebhooks) -> None:
        self._webhooks = webhooks

    async def look(self) -> int:
        """Webhooks whose payment is settled in one statement; the others one by one, at the gateway."""
        settled = await self._webhooks.settle_due(SETTLED_AT_ONCE_MAX)
        due = await self._webhooks.take_due(LOOKS_AT_ONCE_MAX)
        await asyncio.gather(*map(self._webhooks.look, due))
        return settled + len(due)

    async def forget(self) -> int:
        return await self._webhooks.delete_old(FORGOTTEN_AT_ONCE_MAX)
