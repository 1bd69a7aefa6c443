"""The background jobs of `holdfast work`, built on the application of app.py, and the consumers of facts."""

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial

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
from holdfast.app import App, pod_databases
from holdfast.audit.oversold import PAUSE_S as OVERSOLD_PAUSE_S
from holdfast.audit.oversold import OversoldGauge
from holdfast.backup import BEAT_PAUSE_S, BackupGauge
from holdfast.backup.record import PAUSE_S as BACKUP_PAUSE_S
from holdfast.bookings.due import CANCELLED_SHOWS_DUE, LAPSED_DUE, STALE_MAPS_DUE
from holdfast.engines.due_look import with_look
from holdfast.engines.loop import Job, Pause, WhenDue, label_with_pod
from holdfast.engines.machine_gauges import machine_jobs
from holdfast.engines.machine_settings import REPORT_PAUSE_S as MACHINES_PAUSE_S
from holdfast.engines.machine_settings import MachineSettings
from holdfast.engines.metrics import metrics
from holdfast.engines.redis_gauge import PAUSE_S as REDIS_PAUSE_S
from holdfast.engines.redis_gauge import RedisGauge
from holdfast.engines.retention import Retention
from holdfast.engines.standbys import PAUSE_S as STANDBYS_PAUSE_S
from holdfast.engines.standbys import StandbyGauge
from holdfast.engines.turns import Turns
from holdfast.engines.worker_beat import beat
from holdfast.holds.jobs import SaleJobs
from holdfast.invoices.invoices import credit_note_consumer as invoice_consumer
from holdfast.notifications.every_pod import PodComposer
from holdfast.notifications.jobs import NoticeDelivery
from holdfast.notifications.jobs import consumer as notice_consumer
from holdfast.notifications.jobs import jobs as notice_jobs
from holdfast.notifications.message_data import Composer
from holdfast.notifications.person_messages import PersonMessages
from holdfast.notifications.senders import build_senders
from holdfast.organisers.jobs import BLOCKS_DUE, PRICES_DUE, BlockJobs, PriceJobs
from holdfast.outbox import Consumer, Fact
from holdfast.outbox.relay import jobs as fact_jobs
from holdfast.payments.jobs import PAYMENTS_DUE, WEBHOOKS_DUE, PaymentJobs, ReconciliationJobs, WebhookJobs
from holdfast.pods import FOLLOW_S as DIRECTORY_PAUSE_S
from holdfast.pods import CatchUp, PodGauge, PodStore
from holdfast.privacy import PodErasure
from holdfast.refunds.jobs import REFUNDS_DUE, RefundJobs
from holdfast.reports.store import consumer as figure_consumer
from holdfast.runtime.check_certificates import PAUSE_S as CERTIFICATE_PAUSE_S
from holdfast.runtime.check_certificates import CertificateGauge, keep_own_servers
from holdfast.runtime.check_services import GATEWAY_PAUSE_S, GatewayGauge
from holdfast.search.jobs import build_consumer as search_consumer
from holdfast.search.jobs import list_jobs as search_jobs
from holdfast.waitingroom.jobs import ROOMS_DUE, RoomJobs
from holdfast.waitlist.jobs import POLL_PAUSE_S as WAITLIST_PAUSE_S
from holdfast.waitlist.jobs import WAITLISTS_DUE, WaitlistJobs
from holdfast.waitlist.jobs import consumer as waitlist_consumer
from holdfast.web.idempotency import purge_keys
from holdfast.web_jobs import build_ledger_mark
from holdfast.webhooks_out.jobs import DeliveryJobs
from holdfast.webhooks_out.jobs import consumer as hook_consumer
from holdfast.webhooks_out.jobs import jobs as hook_jobs

RETENTION = (
    holdfast.bookings.retention,
    holdfast.tickets.retention,
    holdfast.checkin.retention,
    holdfast.reports.retention,
    holdfast.replay.retention,
    holdfast.audit_log.retention,
    holdfast.waitingroom.retention,
    holdfast.waitlist.retention,
)  # of every pod; accounts and organisations are deleted in the home database, and pods follow

ERASURE_PAUSE_S = 2.0

# In a pod. The rest works on people, catalogue or search, and is done in the home database.
POD_SUBJECTS = frozenset({"sale", "payments", "audit", "retention", "outbox", "notifications", "webhooks"})


def consumers(app: App) -> tuple[Consumer, ...]:
    """Every consumer of facts: docs/consumers.md."""
    if app.home is not None:
        return pod_consumers(app, app.home)
    consumers = (
        search_consumer(app.search_index),
        notice_consumer(app.notifications, app.waiting_rooms),
        hook_consumer(app.webhooks_out),
        waitlist_consumer(app.postgres, app.waitlists.steps),
    )
    return (*consumers, figure_consumer(app.reports), invoice_consumer(app.invoices))


def pod_consumers(app: App, home: App) -> tuple[Consumer, ...]:
    """Facts of a pod's shows. What organisers change is a fact of the home database, too: their endpoints get
    it from there. Search and invoices are written in the home database; the checkpoint is the pod's."""
    hooks = hook_consumer(app.webhooks_out)
    catch_up = CatchUp(home.postgres, app.postgres, app.pod)
    return (
        search_consumer(home.search_index),
        _after_home(notice_consumer(app.notifications, app.waiting_rooms), catch_up),
        replace(hooks, kinds=tuple(kind for kind in hooks.kinds if not kind.startswith("show."))),
        waitlist_consumer(app.postgres, app.waitlists.steps),
        figure_consumer(app.reports),
        invoice_consumer(app.invoices),
    )


def _after_home(consumer: Consumer, catch_up: CatchUp) -> Consumer:
    """The consumer, which sees every account as it was at home when the fact happened, or later."""
    act = consumer.call
    assert act is not None

    async def call(fact: Fact) -> None:
        await catch_up.wait()
        await act(fact)

    return replace(consumer, call=call)


def build_mail_sender(app: App) -> NoticeDelivery:
    """The sender of notifications."""
    composer = build_composer(app) if not app.router.has_pods else build_pod_composer(app)
    return NoticeDelivery(
        app.notifications, composer, build_senders(app.config), stores_mail=bool(app.config.mail_page)
    )


def build_pod_composer(app: App) -> PodComposer:
    def composer_for(show_id: int) -> Composer:
        return build_composer(app.router.for_show(show_id))

    return PodComposer(build_composer(app), composer_for, app.router_database, app.router.directory.follow)


def build_composer(app: App) -> Composer:
    persons = PersonMessages(app.postgres, app.mail_tokens, app.invitations)
    return Composer(app.postgres, app.catalogue, app.bookings, app.tickets, persons, app.config)


def worker_jobs(app: App, only: Container[str] | None = None) -> list[tuple[Pause, Job]]:
    """The jobs of `holdfast work`, in any number of processes; with `only`, those of some subjects."""
    if not app.router.has_pods:
        return [*_jobs_of_pod(app, only), (1.0, metrics.flush)]
    selected = [
        job
        for name, each in app.router.by_name.items()
        for job in label_with_pod(name or "home", _jobs_of_pod(each, only))
    ]
    gauge = PodGauge({name: each.postgres for name, each in app.router.by_name.items()})
    pods = Turns(app.postgres).alone(STANDBYS_PAUSE_S, gauge.look)
    return [*selected, (1.0, metrics.flush), (DIRECTORY_PAUSE_S, app.router.directory.follow), pods]


def _jobs_of_pod(app: App, only: Container[str] | None) -> list[tuple[Pause, Job]]:
    subjects = {
        name: some
        for name, some in jobs_by_subject(app).items()
        if (app.home is None or name in POD_SUBJECTS) and (only is None or name in only)
    }
    standbys = (STANDBYS_PAUSE_S, StandbyGauge(app.postgres, app.config.ledger_standbys_min).look)
    machine = (MACHINES_PAUSE_S, MachineSettings(app.redis, app.config).report)
    jobs = with_look(app.postgres, [job for some in subjects.values() for job in some])
    return [*jobs, (BEAT_PAUSE_S, build_ledger_mark(app).beat), standbys, machine, *watching_jobs(app)]


def watching_jobs(app: App) -> list[tuple[Pause, Job]]:
    """What the doctor looks at, as metrics: of every worker, whatever subjects it works for."""
    config, turns = app.config, Turns(app.postgres)
    engines = [
        *machine_jobs(app.postgres, app.redis, config),
        beat(turns),
        (BACKUP_PAUSE_S, BackupGauge(app.postgres, config.backup_age_max_h).look),
        (REDIS_PAUSE_S, RedisGauge(config.redis_url).look),
    ]
    if app.home is not None:
        return [*engines, (CERTIFICATE_PAUSE_S, CertificateGauge(keep_own_servers(config)).look)]
    return [
        *engines,
        (CERTIFICATE_PAUSE_S, CertificateGauge(config).look),
        (GATEWAY_PAUSE_S, GatewayGauge(app.saga_runner.gateway, config).look),
    ]


def build_pod_erasure(app: App) -> PodErasure:
    return PodErasure(app.postgres, partial(pod_databases, app.router), PodStore(app.postgres).count_moves)


def build_retention(app: App) -> Retention:
    rules = [rule for subject in RETENTION for rule in subject.rules(app.config)]
    if app.home is None:
        pods = [pod.postgres for name, pod in app.router.by_name.items() if name]
        rules += holdfast.accounts.retention.rules(app.config, pods)
        rules += holdfast.organisations.retention.rules(app.config)
    return Retention(app.postgres, rules, app.config.retention_rows_max)


def jobs_by_subject(app: App) -> dict[str, Sequence[tuple[Pause, Job]]]:
    """runtime/subjects.py has their names."""
    turns = Turns(app.postgres)
    sale = SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config)
    waitlist = WaitlistJobs(app.postgres, app.waitlists.steps, app.config.waitlist_idle_s)
    payments = PaymentJobs(app.payments, app.saga_runner)
    webhooks, books = WebhookJobs(app.webhooks_in), ReconciliationJobs(app.reconciliation, app.config)
    refunds = RefundJobs(app.refund_store, app.refunds, app.config.refunds_at_once_max)
    prices = PriceJobs(app.postgres, app.catalogue, app.config.price_pause_s, app.count_seats)

    async def forget_old_answers() -> int:
        return await purge_keys(app.postgres, app.config.idempotency_keep_h)

    return {
        "sale": [
            (WhenDue(LAPSED_DUE, app.config.sweep_pause_ms / 1000), sale.sweep),
            (WhenDue(STALE_MAPS_DUE, 1.0), sale.rebuild_stale),
            (app.config.compare_pause_s, sale.compare),
            (WhenDue(BLOCKS_DUE, 1.0), BlockJobs(app.blocks).release),
            (WhenDue(ROOMS_DUE, 1.0), RoomJobs(app.postgres, app.bookings).step),
            (WhenDue(WAITLISTS_DUE, WAITLIST_PAUSE_S), waitlist.poll),
        ],
        "catalogue": [(WhenDue(PRICES_DUE, 1.0), prices.step)],
        "payments": [
            (WhenDue(PAYMENTS_DUE, 1.0), payments.carry_on),
            (WhenDue(WEBHOOKS_DUE, 1.0), webhooks.look),
            (600.0, webhooks.forget),
            (app.config.reconcile_pause_s, books.compare),
            turns.alone(10.0, books.count),
            (WhenDue(REFUNDS_DUE, 1.0), refunds.carry_out),
            (WhenDue(CANCELLED_SHOWS_DUE, 2.0), refunds.refund_shows),
            turns.alone(10.0, refunds.count),
        ],
        "audit": [turns.alone(OVERSOLD_PAUSE_S, OversoldGauge(app.postgres).count)],
        "accounts": [
            *((60.0, app.accounts.prune), (60.0, app.mail_tokens.prune)),
            *([turns.alone(ERASURE_PAUSE_S, build_pod_erasure(app).finish)] if app.router.has_pods else []),
        ],
        "web": [(600.0, forget_old_answers)],
        "retention": [turns.alone(app.config.retention_pause_ms / 1000, build_retention(app).step)],
        "outbox": fact_jobs(app.outbox, consumers(app), app.config, turns),
        "search": search_jobs(app.search_index, app.search),
        "notifications": notice_jobs(build_mail_sender(app), turns),
        "webhooks": hook_jobs(DeliveryJobs(app.webhooks_out, app.config), turns),
    }
