"""Chargebacks: a payer disputes a payment with their bank, and the gateway takes its money back.

    webhook ─► look the dispute up ─► journal, tickets suspended, fact `payment.disputed` (one transaction)

The webhook only triggers the look-up. Tickets are suspended while the dispute is open or after it was lost,
and good again when it was won; HOLDFAST_CHARGEBACKS_SUSPEND_TICKETS=0 leaves them alone.
"""

from datetime import datetime
from typing import Annotated, Any

import structlog
from msgspec import Meta, Struct, field

from holdfast.bookings import public_id
from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres, Queries
from holdfast.payments.gateway import DisputeState, Gateway
from holdfast.payments.payment import Payment

Q = Queries("holdfast.payments", "chargebacks")
log = structlog.get_logger(__name__)


class ChargebackQuery(Struct, forbid_unknown_fields=True, frozen=True):
    state: DisputeState | None = None
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class ChargebackPage(Struct, frozen=True, kw_only=True):
    booking_id: str
    show_id: int
    attempt: int
    reference: str  # the gateway's
    state: DisputeState
    amount: int  # minor units of the currency
    currency: str
    reason: str  # the gateway's word
    opened_at: datetime
    changed_at: datetime


class ChargebackList(Struct, frozen=True):
    chargebacks: list[ChargebackPage]
    more: bool
    complete: bool = True  # false: some databases cannot be reached, their chargebacks are missing here
    missing_pods: list[str] = field(default_factory=list)


class Chargebacks:
    def __init__(self, postgres: Postgres, gateway: Gateway, config: Config) -> None:
        self._postgres = postgres
        self._gateway = gateway
        self._suspends = config.chargebacks_suspend_tickets

    async def refresh(self, payment: Payment) -> bool:
        """Look up the dispute of a payment and store it; True: it is new, or has changed.

        Raises GatewayDown.
        """
        if payment.reference is None:
            return False
        dispute = await self._gateway.find_dispute(reference=payment.reference)
        if dispute is None:
            return False
        is_same_currency = dispute.currency == payment.currency
        changed: bool = await self._postgres.fetchval(
            Q.record,
            payment.show_id,
            payment.number,
            payment.attempt,
            dispute.reference,
            dispute.state,
            dispute.amount_minor if is_same_currency else payment.amount_minor,
            dispute.reason,
            self._suspends,
        )
        if changed:
            metrics.add("chargebacks_total", state=dispute.state)
            log.warning("chargeback", key=payment.key, state=dispute.state, reason=dispute.reason)
        return changed

    async def list_newest(self, organiser_id: int | None, query: ChargebackQuery) -> ChargebackList:
        start = (query.page - 1) * query.size
        found = await self.newest(organiser_id, query.state, start, query.size + 1)
        return ChargebackList(found[: query.size], len(found) > query.size)

    async def newest(
        self, organiser_id: int | None, state: DisputeState | None, start: int, limit: int
    ) -> list[ChargebackPage]:
        rows = await self._postgres.fetch(Q.newest, organiser_id, state, start, limit)
        return [_page(row) for row in rows]


def _page(row: Any) -> ChargebackPage:
    copied = ("show_id", "attempt", "reference", "currency", "reason", "opened_at", "changed_at")
    return ChargebackPage(
        booking_id=public_id(row["show_id"], row["number"]),
        state=DisputeState(row["state"]),
        amount=row["amount_minor"],
        **{name: row[name] for name in copied},
    )
