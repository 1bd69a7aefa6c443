"""The duty that carries payments on: whatever a dead process, a silent gateway or a slow payer has left."""

import asyncio

import structlog

from holdfast.payments.cashier.store import Cashier
from holdfast.payments.payment import Payment
from holdfast.payments.store import PaymentBook

log = structlog.get_logger(__name__)

AT_ONCE_MAX = 64  # payments a worker carries on at the same time


class PaymentDuties:
    def __init__(self, book: PaymentBook, cashier: Cashier) -> None:
        self._book = book
        self._cashier = cashier
        self._under_way: set[asyncio.Task[None]] = set()

    async def carry_on(self) -> int:
        """Found by the ledger alone. One that waits for its gateway does not keep the others waiting."""
        room = AT_ONCE_MAX - len(self._under_way)
        payments = await self._book.take_due(room) if room else []
        for payment in payments:
            task = asyncio.create_task(self._carry_on(payment))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return len(payments)

    async def _carry_on(self, payment: Payment) -> None:
        try:
            await self._cashier.carry_on(payment)
        except Exception as error:  # it stays due, and somebody looks again when our turn is over
            log.warning("a payment could not be carried on", key=payment.key, error=repr(error))
