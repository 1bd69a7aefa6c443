"""Composition root: engines, subjects, routes and jobs. The only file that knows every folder."""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import holdfast.accounts.api
import holdfast.accounts.retention
import holdfast.bookings.api
import holdfast.bookings.retention
import holdfast.catalogue.api
import holdfast.checkin.api
import holdfast.checkin.passes_api
import holdfast.checkin.retention
import holdfast.holds.api
import holdfast.invoices.api
import holdfast.notifications.api
import holdfast.notifications.demo_mailbox_api
import holdfast.organisers.api
import holdfast.organisers.blocks_api
import holdfast.payments.api
import holdfast.refunds.api
import holdfast.reports.api
import holdfast.reports.retention
import holdfast.search.api
import holdfast.seatmap.api
import holdfast.seatmap.live_api
import holdfast.site.account
import holdfast.site.after_purchase
import holdfast.site.booking_page
import holdfast.site.browse
import holdfast.site.held_forms
import holdfast.site.my_bookings
import holdfast.site.pages
import holdfast.site.payment
import holdfast.site.refund_page
import holdfast.site.show_page
import holdfast.tickets.api
import holdfast.tickets.mobile_page_api
import holdfast.tickets.retention
import holdfast.webhooks_out.api
from holdfast.accounts import Accounts, Sessions
from holdfast.audit.oversold import PAUSE_S as OVERSOLD_PAUSE_S
from holdfast.audit.oversold import OversoldGauge
from holdfast.backup import BEAT_PAUSE_S, LedgerMark
from holdfast.bookings import Bookings
from holdfast.catalogue import Catalogue
from holdfast.checkin import CheckInStore
from holdfast.checkin.passes import Passes
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.fault_injection import arm
from holdfast.engines.loop import Job, running
from holdfast.engines.metrics import metrics
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.engines.retention import Retention
from holdfast.engines.turns import Turns
from holdfast.holds import HoldScripts, HoldService
from holdfast.holds.jobs import SaleJobs
from holdfast.invoices import Invoices
from holdfast.invoices.invoices import credit_note_consumer as invoice_consumer
from holdfast.notifications import NotificationStore
from holdfast.notifications.jobs import NoticeDelivery
from holdfast.notifications.jobs import consumer as notice_consumer
from holdfast.notifications.jobs import jobs as notice_jobs
from holdfast.notifications.message_data import Composer
from holdfast.notifications.senders import build_senders
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.jobs import BlockJobs, PriceJobs
from holdfast.organisers.layout_change import LayoutChanger
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.shows_store import ShowEditor
from holdfast.organisers.store import CatalogueEditor, Scope
from holdfast.outbox import Consumer, Outbox
from holdfast.outbox.relay import jobs as fact_jobs
from holdfast.payments import (
    AfterPayment,
    Chargebacks,
    IncomingWebhooks,
    PaymentStore,
    Reconciliation,
    SagaRunner,
    open_gateway,
)
from holdfast.payments.jobs import PaymentJobs, ReconciliationJobs, WebhookJobs
from holdfast.refunds.jobs import RefundJobs
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore
from holdfast.reports import ReportStore
from holdfast.reports.store import consumer as figure_consumer
from holdfast.search import SearchIndex, SearchSource, SearchStore
from holdfast.search.jobs import build_consumer as search_consumer
from holdfast.search.jobs import list_jobs as search_jobs
from holdfast.seatmap import SeatMap
from holdfast.seatmap.live import LiveMaps
from holdfast.site.pages import problem_page
from holdfast.tickets import Tickets, Transfers
from holdfast.web.asgi import Application
from holdfast.web.idempotency import purge_keys
from holdfast.web.response_cache import CacheablePage, RenderedPage, build_page_cache
from holdfast.web.routing import Route
from holdfast.webhooks_out import OutgoingWebhooks
from holdfast.webhooks_out.jobs import DeliveryJobs
from holdfast.webhooks_out.jobs import consumer as hook_consumer
from holdfast.webhooks_out.jobs import jobs as hook_jobs

ROUTES: tuple[Route, ...] = (
    *holdfast.holds.api.ROUTES,
    *holdfast.bookings.api.ROUTES,
    *holdfast.payments.api.ROUTES,
    *holdfast.refunds.api.ROUTES,
    *holdfast.invoices.api.ROUTES,
    *holdfast.tickets.api.ROUTES,
    *holdfast.tickets.mobile_page_api.ROUTES,
    *holdfast.checkin.api.ROUTES,
    *holdfast.seatmap.api.ROUTES,
    *holdfast.seatmap.live_api.ROUTES,
    *holdfast.catalogue.api.ROUTES,
    *holdfast.search.api.ROUTES,
    *holdfast.organisers.blocks_api.ROUTES,
    *holdfast.checkin.passes_api.ROUTES,
    *holdfast.organisers.api.ROUTES,
    *holdfast.accounts.api.ROUTES,
    *holdfast.webhooks_out.api.ROUTES,
    *holdfast.reports.api.ROUTES,
    *holdfast.notifications.api.ROUTES,
    *holdfast.notifications.demo_mailbox_api.ROUTES,
    *holdfast.site.pages.ROUTES,
    *holdfast.site.browse.ROUTES,
    *holdfast.site.show_page.ROUTES,
    *holdfast.site.booking_page.ROUTES,
    *holdfast.site.payment.ROUTES,
    *holdfast.site.after_purchase.ROUTES,
    *holdfast.site.refund_page.ROUTES,
    *holdfast.site.held_forms.ROUTES,
    *holdfast.site.my_bookings.ROUTES,
    *holdfast.site.account.ROUTES,
)

RETENTION = (
    holdfast.bookings.retention,
    holdfast.accounts.retention,
    holdfast.tickets.retention,
    holdfast.checkin.retention,
    holdfast.reports.retention,
)


@dataclass(frozen=True, slots=True)
class App:
    """The application of one process: every subject, on its engines."""

    config: Config
    postgres: Postgres
    redis: Redis
    catalogue: Catalogue
    accounts: Accounts
    bookings: Bookings
    hold_scripts: HoldScripts
    claims: Claims
    seatmap: SeatMap
    live: LiveMaps
    holds: HoldService
    payments: PaymentStore
    saga_runner: SagaRunner
    webhooks_in: IncomingWebhooks
    reconciliation: Reconciliation
    chargebacks: Chargebacks
    refund_store: RefundStore
    refunds: RefundService
    outbox: Outbox
    search: SearchStore
    search_index: SearchIndex
    tickets: Tickets
    transfers: Transfers
    checkin: CheckInStore
    passes: Passes
    invoices: Invoices
    blocks: BlockStore
    notifications: NotificationStore
    webhooks_out: OutgoingWebhooks
    reports: ReportStore
    sessions: Sessions
    pages: Cache[CacheablePage, RenderedPage]

    # Editors see and change only what the scope of one caller covers, so each caller gets its own.

    def catalogue_editor(self, scope: Scope) -> CatalogueEditor:
        return CatalogueEditor(self.postgres, scope)

    def show_editor(self, scope: Scope) -> ShowEditor:
        return ShowEditor(self.postgres, self.catalogue, self.config, scope)

    def price_rules(self, scope: Scope) -> PriceRulesStore:
        return PriceRulesStore(
            self.postgres, self.catalogue, scope, self.config.price_pause_s, self.config.gateway
        )

    def layout_change(self, scope: Scope) -> LayoutChanger:
        return LayoutChanger(self.postgres, self.catalogue, self.show_editor(scope))


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    """Open every subject on its engines; raises EngineDown when the ledger cannot be reached."""
    postgres = Postgres(
        config.database_url,
        pool_max=config.postgres_pool_max,
        timeout_s=config.postgres_timeout_s,
        settings={"idle_in_transaction_session_timeout": f"{config.postgres_idle_s}s"},
    )
    redis = Redis(
        config.redis_url, links_max=config.redis_links_max, timeout_s=config.redis_timeout_ms / 1000
    )
    app = _build_app(config, postgres, redis)
    arm(config.crash_at)
    try:
        await app.accounts.open()
        await app.tickets.open()
        yield app
    finally:
        await app.webhooks_in.close()
        await app.saga_runner.gateway.close()
        await app.outbox.close()
        await app.search.close()
        await app.live.close()
        app.tickets.close()
        await app.accounts.close()
        await redis.close()
        await postgres.close()


def _build_app(config: Config, postgres: Postgres, redis: Redis) -> App:
    """Builds every store and service on its engines. No engine is contacted yet."""
    batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
    catalogue = Catalogue(postgres, layout_bytes_max=config.layout_cache_mb * 1_000_000)
    claims, bookings = Claims(redis), Bookings(postgres, **batches)
    hold_scripts = HoldScripts(redis, claim_grace_ms=config.claim_grace_ms)
    accounts = Accounts(postgres, redis, config)
    seatmap = SeatMap(
        catalogue,
        bookings,
        claims,
        postgres,
        fresh_s=config.map_fresh_ms / 1000,
        bytes_max=config.map_cache_mb * 1_000_000,
    )
    holds = HoldService(catalogue, hold_scripts, claims, bookings, seatmap, config)
    payments, refund_store = PaymentStore(postgres, config), RefundStore(postgres, config)
    saga_runner = SagaRunner(payments, holds, claims, catalogue, open_gateway(config), config)
    refunds = RefundService(refund_store, payments, saga_runner, holds, catalogue)
    reconciliation = Reconciliation(postgres, payments, saga_runner)
    chargebacks = Chargebacks(postgres, saga_runner.gateway, config)
    afterwards = AfterPayment(chargebacks, refunds.refresh_from_gateway)
    tickets = Tickets(postgres, catalogue)
    return App(
        config=config,
        postgres=postgres,
        redis=redis,
        catalogue=catalogue,
        accounts=accounts,
        bookings=bookings,
        hold_scripts=hold_scripts,
        claims=claims,
        seatmap=seatmap,
        live=LiveMaps(seatmap, config),
        holds=holds,
        payments=payments,
        saga_runner=saga_runner,
        webhooks_in=IncomingWebhooks(postgres, payments, saga_runner, reconciliation, afterwards, config),
        reconciliation=reconciliation,
        chargebacks=chargebacks,
        refund_store=refund_store,
        refunds=refunds,
        outbox=Outbox(postgres, config),
        search=SearchStore(config),
        search_index=SearchIndex(postgres, SearchSource(postgres), seatmap),
        tickets=tickets,
        transfers=Transfers(postgres),
        checkin=CheckInStore(postgres, catalogue, tickets),
        passes=Passes(postgres, accounts),
        invoices=Invoices(postgres),
        blocks=BlockStore(postgres, holds),
        notifications=NotificationStore(postgres, config),
        webhooks_out=OutgoingWebhooks(postgres, config),
        reports=ReportStore(postgres, catalogue),
        sessions=Sessions(postgres, accounts, config),
        pages=build_page_cache(),
    )


def asgi_app(config: Config, more: tuple[Route, ...] = (), only: Container[str] | None = None) -> Application:
    @asynccontextmanager
    async def opened() -> AsyncIterator[App]:
        async def end_streams() -> int:
            if application.is_draining:
                app.live.drain()
            return 0

        async with open_app(config) as app, running([*web_jobs(app), (0.1, end_streams)]):
            yield app

    application = Application(opened, (*ROUTES, *more), only, problem_page)
    return application


def web_jobs(app: App) -> list[tuple[float, Job]]:
    """The jobs that every web process runs for itself."""
    return [
        (app.config.revocations_refresh_s, app.accounts.catch_up),
        (0.05, app.live.follow),
        (0.05, app.live.look),
        (1.0, metrics.flush),
        (BEAT_PAUSE_S, build_ledger_mark(app).beat),
    ]


def build_ledger_mark(app: App) -> LedgerMark:
    return LedgerMark(app.postgres, app.redis, Path(app.config.data_dir))


def consumers(app: App) -> tuple[Consumer, ...]:
    """Every consumer of facts: docs/consumers.md."""
    consumers = (
        search_consumer(app.search_index),
        notice_consumer(app.notifications),
        hook_consumer(app.webhooks_out),
    )
    return (*consumers, figure_consumer(app.reports), invoice_consumer(app.invoices))


def build_mail_sender(app: App) -> NoticeDelivery:
    """The sender of notifications."""
    writer = Composer(app.postgres, app.catalogue, app.bookings, app.tickets, app.config)
    return NoticeDelivery(
        app.notifications, writer, build_senders(app.config), stores_mail=bool(app.config.mail_page)
    )


def worker_jobs(app: App, only: Container[str] | None = None) -> list[tuple[float, Job]]:
    """The jobs of `holdfast work`, in any number of processes; with `only`, those of some subjects."""
    by_subject = jobs_by_subject(app).items()
    selected = [job for name, some in by_subject if only is None or name in only for job in some]
    return [*selected, (1.0, metrics.flush), (BEAT_PAUSE_S, build_ledger_mark(app).beat)]


def build_retention(app: App) -> Retention:
    rules = [rule for subject in RETENTION for rule in subject.rules(app.config)]
    return Retention(app.postgres, rules, app.config.retention_rows_max)


def jobs_by_subject(app: App) -> dict[str, list[tuple[float, Job]]]:
    """roles.py has their names."""
    turns = Turns(app.postgres)
    sale = SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config)
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
        "accounts": [(60.0, app.accounts.prune)],
        "web": [(600.0, forget_old_answers)],
        "retention": [turns.alone(app.config.retention_pause_ms / 1000, build_retention(app).step)],
        "outbox": fact_jobs(app.outbox, consumers(app), app.config, turns),
        "search": search_jobs(app.search_index, app.search),
        "notifications": notice_jobs(build_mail_sender(app), turns),
        "webhooks": hook_jobs(DeliveryJobs(app.webhooks_out, app.config), turns),
    }
