"""The background jobs of `holdfast work`, built on the application of app.py, and the consumers of facts."""

from collections.abc import Container

import holdfast.accounts.retention
import holdfast.audit_log.retention
import holdfast.bookings.retention
import holdfast.checkin.retention
import holdfast.organisations.retention
import holdfast.replay.retention
import holdfast.reports.retention
import holdfast.tickets.retention
import holdfast.waitingroom.retention
import holdfast.waitlist.retention
from holdfast.app import App, build_ledger_mark
from holdfast.audit.oversold import PAUSE_S as OVERSOLD_PAUSE_S
from holdfast.audit.oversold import OversoldGauge
from holdfast.backup import BEAT_PAUSE_S
from holdfast.engines.loop import Job
from holdfast.engines.metrics import metrics
from holdfast.engines.retention import Retention
from holdfast.engines.standbys import PAUSE_S as STANDBYS_PAUSE_S
from holdfast.engines.standbys import StandbyGauge
from holdfast.engines.turns import Turns
from holdfast.holds.jobs import SaleJobs
from holdfast.invoices.invoices import credit_note_consumer as invoice_consumer
from holdfast.notifications.jobs import NoticeDelivery
from holdfast.notifications.jobs import consumer as notice_consumer
from holdfast.notifications.jobs import jobs as notice_jobs
from holdfast.notifications.message_data import Composer
from holdfast.notifications.person_messages import PersonMessages
from holdfast.notifications.senders import build_senders
from holdfast.organisers.jobs import BlockJobs, PriceJobs
from holdfast.outbox import Consumer
from holdfast.outbox.relay import jobs as fact_jobs
from holdfast.payments.jobs import PaymentJobs, ReconciliationJobs, WebhookJobs
from holdfast.refunds.jobs import RefundJobs
from holdfast.reports.store import consumer as figure_consumer
from holdfast.search.jobs import build_consumer as search_consumer
from holdfast.search.jobs import list_jobs as search_jobs
from holdfast.waitingroom.jobs import RoomJobs
from holdfast.waitlist.jobs import POLL_PAUSE_S as WAITLIST_PAUSE_S
from holdfast.waitlist.jobs import WaitlistJobs
from holdfast.waitlist.jobs import consumer as waitlist_consumer
from holdfast.web.idempotency import purge_keys
from holdfast.webhooks_out.jobs import DeliveryJobs
from holdfast.webhooks_out.jobs import consumer as hook_consumer
from holdfast.webhooks_out.jobs import jobs as hook_jobs

RETENTION = (
    holdfast.bookings.retention,
    holdfast.accounts.retention,
    holdfast.organisations.retention,
    holdfast.tickets.retention,
    holdfast.checkin.retention,
    holdfast.reports.retention,
    holdfast.replay.retention,
    holdfast.audit_log.retention,
    holdfast.waitingroom.retention,
    holdfast.waitlist.retention,
)


def consumers(app: App) -> tuple[Consumer, ...]:
    """Every consumer of facts: docs/consumers.md."""
    consumers = (
        search_consumer(app.search_index),
        notice_consumer(app.notifications, app.waiting_rooms),
        hook_consumer(app.webhooks_out),
        waitlist_consumer(app.postgres, app.waitlists.steps),
    )
    return (*consumers, figure_consumer(app.reports), invoice_consumer(app.invoices))


def build_mail_sender(app: App) -> NoticeDelivery:
    """The sender of notifications."""
    persons = PersonMessages(app.postgres, app.mail_tokens, app.invitations)
    writer = Composer(app.postgres, app.catalogue, app.bookings, app.tickets, persons, app.config)
    return NoticeDelivery(
        app.notifications, writer, build_senders(app.config), stores_mail=bool(app.config.mail_page)
    )


def worker_jobs(app: App, only: Container[str] | None = None) -> list[tuple[float, Job]]:
    """The jobs of `holdfast work`, in any number of processes; with `only`, those of some subjects."""
    by_subject = jobs_by_subject(app).items()
    selected = [job for name, some in by_subject if only is None or name in only for job in some]
    standbys = (STANDBYS_PAUSE_S, StandbyGauge(app.postgres, app.config.ledger_standbys_min).look)
    return [*selected, (1.0, metrics.flush), (BEAT_PAUSE_S, build_ledger_mark(app).beat), standbys]


def build_retention(app: App) -> Retention:
    rules = [rule for subject in RETENTION for rule in subject.rules(app.config)]
    return Retention(app.postgres, rules, app.config.retention_rows_max)


def jobs_by_subject(app: App) -> dict[str, list[tuple[float, Job]]]:
    """runtime/subjects.py has their names."""
    turns = Turns(app.postgres)
    sale = SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config)
    waitlist = WaitlistJobs(app.postgres, app.waitlists.steps, app.config.waitlist_idle_s)
    payments = PaymentJobs(app.payments, app.saga_runner)
    webhooks, books = WebhookJobs(app.webhooks_in), ReconciliationJobs(app.reconciliation, app.config)
    refunds = RefundJobs(app.refund_store, app.refunds, app.config.refunds_at_once_max)

    async def forget_old_answers() -> int:
        return await purge_keys(app.postgres, app.config.idempotency_keep_h)

    return {
        "sale": [
            (app.config.sweep_pause_ms / 1000, sale.sweep),
            (1.0, sale.rebuild_stale),
            (app.config.compare_pause_s, sale.compare),
            (1.0, BlockJobs(app.blocks).release),
            (1.0, RoomJobs(app.postgres, app.bookings).step),
            (WAITLIST_PAUSE_S, waitlist.poll),
        ],
        "catalogue": [(1.0, PriceJobs(app.postgres, app.catalogue, app.config.price_pause_s).step)],
        "payments": [
            (0.5, payments.carry_on),
            (0.5, webhooks.look),
            (600.0, webhooks.forget),
            (app.config.reconcile_pause_s, books.compare),
            turns.alone(10.0, books.count),
            (0.5, refunds.carry_out),
            (2.0, refunds.refund_shows),
            turns.alone(10.0, refunds.count),
        ],
        "audit": [turns.alone(OVERSOLD_PAUSE_S, OversoldGauge(app.postgres).count)],
        "accounts": [(60.0, app.accounts.prune), (60.0, app.mail_tokens.prune)],
        "web": [(600.0, forget_old_answers)],
        "retention": [turns.alone(app.config.retention_pause_ms / 1000, build_retention(app).step)],
        "outbox": fact_jobs(app.outbox, consumers(app), app.config, turns),
        "search": search_jobs(app.search_index, app.search),
        "notifications": notice_jobs(build_mail_sender(app), turns),
        "webhooks": hook_jobs(DeliveryJobs(app.webhooks_out, app.config), turns),
    }
