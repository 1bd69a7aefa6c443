"""Composition of what a sale needs beside holds: money, and what follows a purchase."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.attendees import AttendeeStore
from holdfast.audit_log import AuditLog
from holdfast.catalogue import Catalogue
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.engines.replica import ReplicaReader
from holdfast.holds import HoldService
from holdfast.invoices import Invoices
from holdfast.notifications import NotificationStore
from holdfast.payments import (
    AfterPayment,
    Chargebacks,
    IncomingWebhooks,
    PaymentStore,
    Reconciliation,
    SagaRunner,
    open_gateway,
)
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore
from holdfast.replay import QueueReader, Replays
from holdfast.reports import ReportStore
from holdfast.webhooks_out import OutgoingWebhooks


class Money(NamedTuple):
    """Fields of App: payments and refunds."""

    payments: PaymentStore
    saga_runner: SagaRunner
    webhooks_in: IncomingWebhooks
    reconciliation: Reconciliation
    chargebacks: Chargebacks
    refund_store: RefundStore
    refunds: RefundService


def build_money(
    config: Config,
    postgres: Postgres,
    holds: HoldService,
    claims: Claims,
    catalogue: Catalogue,
    sells: Callable[[int], bool],
) -> Money:
    """`sells`: whether the show is one of this database."""
    payments, refund_store = PaymentStore(postgres, config), RefundStore(postgres, config)
    saga_runner = SagaRunner(payments, holds, claims, catalogue, open_gateway(config), config)
    refunds = RefundService(refund_store, payments, saga_runner, holds, catalogue)
    reconciliation = Reconciliation(postgres, payments, saga_runner, sells)
    chargebacks = Chargebacks(postgres, saga_runner.gateway, config)
    afterwards = AfterPayment(chargebacks, refunds.refresh_from_gateway)
    return Money(
        payments=payments,
        saga_runner=saga_runner,
        webhooks_in=IncomingWebhooks(postgres, payments, saga_runner, reconciliation, afterwards, config),
        reconciliation=reconciliation,
        chargebacks=chargebacks,
        refund_store=refund_store,
        refunds=refunds,
    )


class Afterwards(NamedTuple):
    """Fields of App: what follows a sale."""

    invoices: Invoices
    notifications: NotificationStore
    webhooks_out: OutgoingWebhooks
    reports: ReportStore
    replays: Replays
    audit_log: AuditLog
    attendees: AttendeeStore


def build_afterwards(
    config: Config,
    postgres: Postgres,
    catalogue: Catalogue,
    reports_from: Postgres | ReplicaReader,
    home: Postgres,
    pod: str,
) -> Afterwards:
    return Afterwards(
        invoices=Invoices(home, postgres),
        notifications=NotificationStore(postgres, config),
        webhooks_out=OutgoingWebhooks(postgres, catalogue, config, pod),
        reports=ReportStore(postgres, catalogue, reports_from),
        replays=Replays(postgres, catalogue, QueueReader(postgres).load),
        audit_log=AuditLog(postgres, pod),
        attendees=AttendeeStore(postgres, catalogue),
    )
