"""Composition root: engines, subjects, routes and jobs. The only file that knows every folder."""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from holdfast.accounts import (
    AccountAdmin,
    Accounts,
    FirstAdmin,
    MailTokens,
    Passkeys,
    People,
    SecondFactors,
    Sessions,
)
from holdfast.attendees import AttendeeStore
from holdfast.audit_log import AuditLog
from holdfast.backup import BEAT_PAUSE_S, LedgerMark
from holdfast.bookings import Bookings, HoldLimits
from holdfast.catalogue import Catalogue
from holdfast.checkin import CheckInStore
from holdfast.checkin.passes import Passes
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.fault_injection import arm
from holdfast.engines.loop import Job, running
from holdfast.engines.metrics import metrics
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.engines.replica import LOOK_PAUSE_S, ReplicaReader, build_replica
from holdfast.holds import HoldScripts, HoldService
from holdfast.house import House
from holdfast.house.store import REFRESH_PAUSE_S
from holdfast.invoices import Invoices
from holdfast.legal import Legal
from holdfast.notifications import NotificationStore
from holdfast.oidc import Identities
from holdfast.oidc.client import ProviderClient
from holdfast.organisations import ApiKeys, Invitations, Organisations
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.layout_change import LayoutChanger
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.removal import CatalogueRemover
from holdfast.organisers.shows_store import ShowEditor
from holdfast.organisers.store import CatalogueEditor
from holdfast.outbox import Outbox
from holdfast.payments import (
    AfterPayment,
    Chargebacks,
    IncomingWebhooks,
    PaymentStore,
    Reconciliation,
    SagaRunner,
    open_gateway,
)
from holdfast.privacy import Erasure, PersonalData
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore
from holdfast.replay import FLUSH_PAUSE_S, DemandWriter, QueueReader, Replays
from holdfast.reports import ReportStore
from holdfast.search import SearchIndex, SearchSource, SearchStore
from holdfast.seatmap import SeatMap
from holdfast.seatmap.live import LiveMaps
from holdfast.tickets import Acceptance, Tickets, Transfers
from holdfast.waitingroom import RoomEditor, WaitingRooms
from holdfast.waitingroom.guard import FOLLOW_S
from holdfast.waitingroom.web_load import REPORT_PAUSE_S, LoadReporter
from holdfast.waitlist import Waitlists
from holdfast.web.caller import Scope
from holdfast.web.puzzles import Puzzles
from holdfast.web.response_cache import CacheablePage, RenderedPage, build_page_cache
from holdfast.webhooks_out import OutgoingWebhooks

if TYPE_CHECKING:
    from holdfast.web.asgi import Application
    from holdfast.web.routing import Route


@dataclass(frozen=True, slots=True)
class App:
    """The application of one process: every subject, on its engines."""

    config: Config
    postgres: Postgres
    redis: Redis
    catalogue: Catalogue
    accounts: Accounts
    organisations: Organisations
    api_keys: ApiKeys
    house: House
    legal: Legal
    bookings: Bookings
    hold_scripts: HoldScripts
    claims: Claims
    seatmap: SeatMap
    live: LiveMaps
    holds: HoldService
    waitlists: Waitlists
    puzzles: Puzzles
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
    waiting_rooms: WaitingRooms
    acceptance: Acceptance
    checkin: CheckInStore
    passes: Passes
    invoices: Invoices
    blocks: BlockStore
    notifications: NotificationStore
    webhooks_out: OutgoingWebhooks
    reports: ReportStore
    replays: Replays
    demand: DemandWriter
    audit_log: AuditLog
    attendees: AttendeeStore
    sessions: Sessions
    mail_tokens: MailTokens
    people: People
    second_factors: SecondFactors
    identities: Identities
    passkeys: Passkeys
    account_admin: AccountAdmin
    personal_data: PersonalData
    erasure: Erasure
    pages: Cache[CacheablePage, RenderedPage]
    replica: ReplicaReader | None

    @property
    def invitations(self) -> Invitations:
        return Invitations(self.postgres, self.organisations, self.notifications)

    @property
    def first_admin(self) -> FirstAdmin:
        return FirstAdmin(self.postgres, self.accounts, self.mail_tokens)

    # Editors see and change only what the scope of one caller covers, so each caller gets its own.

    def catalogue_editor(self, scope: Scope) -> CatalogueEditor:
        return CatalogueEditor(self.postgres, scope)

    def show_editor(self, scope: Scope) -> ShowEditor:
        return ShowEditor(self.postgres, self.catalogue, self.config, scope)

    def price_rules(self, scope: Scope) -> PriceRulesStore:
        return PriceRulesStore(
            self.postgres, self.catalogue, scope, self.config.price_pause_s, self.config.gateway
        )

    def catalogue_remover(self, scope: Scope) -> CatalogueRemover:
        return CatalogueRemover(self.postgres, self.catalogue, scope)

    def room_editor(self, scope: Scope) -> RoomEditor:
        return RoomEditor(self.postgres, self.catalogue, self.waiting_rooms, scope)

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
        has_standbys=config.ledger_standbys_min > 0,
        is_shared=bool(config.database_direct_url),
    )
    redis = _open_redis(config, config.redis_url)
    limits_redis = _open_redis(config, config.limits_url) if config.limits_url else redis
    app = _build_app(config, postgres, redis, limits_redis)
    arm(config.crash_at)
    try:
        await app.accounts.open()
        await app.tickets.open()
        await app.house.refresh()
        await app.legal.refresh()
        yield app
    finally:
        await app.demand.close()
        await app.webhooks_in.close()
        await app.identities.client.close()
        await app.saga_runner.gateway.close()
        await app.outbox.close()
        await app.search.close()
        await app.live.close()
        app.tickets.close()
        await app.accounts.close()
        await limits_redis.close()
        await redis.close()
        if app.replica is not None:
            await app.replica.close()
        await postgres.close()


def _open_redis(config: Config, url: str) -> Redis:
    return open_redis(url, links_max=config.redis_links_max, timeout_s=config.redis_timeout_ms / 1000)


def _build_app(config: Config, postgres: Postgres, redis: Redis, limits_redis: Redis) -> App:
    """Builds every store and service on its engines. No engine is contacted yet."""
    batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
    catalogue, replica = _build_catalogue(config, postgres)
    limits = HoldLimits.from_config(config)
    claims, bookings = Claims(redis), Bookings(postgres, limits, **batches)
    hold_scripts = HoldScripts(redis, limits, claim_grace_ms=config.claim_grace_ms)
    seatmap = SeatMap(catalogue, bookings, claims, postgres, **_map_sizes(config))
    tickets, transfers = Tickets(postgres, catalogue), Transfers(postgres)
    rooms = WaitingRooms(postgres, catalogue, tickets, config)
    holds = HoldService(catalogue, rooms.guard, hold_scripts, bookings, seatmap, config)
    payments, refund_store = PaymentStore(postgres, config), RefundStore(postgres, config)
    saga_runner = SagaRunner(payments, holds, claims, catalogue, open_gateway(config), config)
    refunds = RefundService(refund_store, payments, saga_runner, holds, catalogue)
    reconciliation = Reconciliation(postgres, payments, saga_runner)
    chargebacks = Chargebacks(postgres, saga_runner.gateway, config)
    afterwards = AfterPayment(chargebacks, refunds.refresh_from_gateway)
    notifications = NotificationStore(postgres, config)
    persons = _build_people(config, postgres, limits_redis, notifications)
    return App(
        config=config,
        postgres=postgres,
        redis=redis,
        catalogue=catalogue,
        bookings=bookings,
        hold_scripts=hold_scripts,
        claims=claims,
        seatmap=seatmap,
        live=LiveMaps(seatmap, config),
        holds=holds,
        waitlists=Waitlists(postgres, catalogue, seatmap, refunds, holds, config),
        puzzles=Puzzles(limits_redis, config),
        payments=payments,
        saga_runner=saga_runner,
        webhooks_in=IncomingWebhooks(postgres, payments, saga_runner, reconciliation, afterwards, config),
        reconciliation=reconciliation,
        chargebacks=chargebacks,
        refund_store=refund_store,
        refunds=refunds,
        outbox=Outbox(postgres, config),
        search=SearchStore(config, replica.lag if replica else None),
        search_index=SearchIndex(postgres, SearchSource(postgres), seatmap),
        tickets=tickets,
        transfers=transfers,
        waiting_rooms=rooms,
        acceptance=Acceptance(postgres, transfers, persons.mail_tokens, persons.sessions),
        checkin=CheckInStore(postgres, catalogue, tickets),
        passes=Passes(postgres, persons.accounts),
        invoices=Invoices(postgres),
        blocks=BlockStore(postgres, holds),
        notifications=notifications,
        webhooks_out=OutgoingWebhooks(postgres, catalogue, config),
        reports=ReportStore(postgres, catalogue, replica or postgres),
        replays=Replays(postgres, catalogue, QueueReader(postgres).load),
        demand=DemandWriter(postgres, holds.wanted),
        audit_log=AuditLog(postgres),
        attendees=AttendeeStore(postgres, catalogue),
        pages=build_page_cache(),
        replica=replica,
        **persons._asdict(),
    )


def _build_catalogue(config: Config, postgres: Postgres) -> tuple[Catalogue, ReplicaReader | None]:
    """What may be some seconds old is read from the replica: lists, and above, reports and searches."""
    sizes = {"pool_max": config.postgres_pool_max, "timeout_s": config.postgres_timeout_s}
    replica = build_replica(postgres, config.replica_url, config.replica_lag_max_s, **sizes)
    layout_bytes_max = config.layout_cache_mb * 1_000_000
    catalogue = Catalogue(postgres, layout_bytes_max=layout_bytes_max, lists=replica)
    if replica is not None:
        catalogue.on_change = replica.lag.note_write
    return catalogue, replica


class _MapSizes(TypedDict):
    fresh_s: float
    bytes_max: int


def _map_sizes(config: Config) -> _MapSizes:
    return {"fresh_s": config.map_fresh_ms / 1000, "bytes_max": config.map_cache_mb * 1_000_000}


class _Persons(NamedTuple):
    """Fields of App."""

    accounts: Accounts
    organisations: Organisations
    api_keys: ApiKeys
    house: House
    legal: Legal
    sessions: Sessions
    mail_tokens: MailTokens
    people: People
    second_factors: SecondFactors
    identities: Identities
    passkeys: Passkeys
    account_admin: AccountAdmin
    personal_data: PersonalData
    erasure: Erasure


def _build_people(
    config: Config, postgres: Postgres, limits_redis: Redis, notifications: NotificationStore
) -> _Persons:
    accounts, tokens = Accounts(postgres, limits_redis, config), MailTokens(postgres)
    organisations = Organisations(postgres, accounts, config)
    people = People(postgres, accounts, tokens, notifications)
    factors = SecondFactors(postgres, accounts, notifications, config)
    admin = AccountAdmin(postgres, accounts, tokens)
    return _Persons(
        accounts=accounts,
        api_keys=ApiKeys(postgres, accounts.limits),
        organisations=organisations,
        house=House(postgres, organisations),
        legal=Legal(postgres),
        sessions=Sessions(postgres, accounts, config),
        mail_tokens=tokens,
        people=people,
        identities=Identities(postgres, people, ProviderClient(config)),
        second_factors=factors,
        passkeys=Passkeys(postgres, accounts, factors, config),
        account_admin=admin,
        personal_data=PersonalData(postgres, people, factors),
        erasure=Erasure(postgres, accounts, admin),
    )


def asgi_app(
    config: Config, more: tuple["Route", ...] = (), only: Container[str] | None = None
) -> "Application":
    """Jobs and commands have no routes: they start sooner without them."""
    from holdfast.routes import ROUTES
    from holdfast.site.pages import problem_page
    from holdfast.web.asgi import Application

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
        (REFRESH_PAUSE_S, app.house.refresh),
        (REFRESH_PAUSE_S, app.legal.refresh),
        (FOLLOW_S, app.waiting_rooms.guard.follow),
        (REPORT_PAUSE_S, build_load_reporter(app).report),
        (0.05, app.live.follow),
        (0.05, app.live.look),
        (FLUSH_PAUSE_S, app.demand.flush),
        (1.0, metrics.flush),
        (BEAT_PAUSE_S, build_ledger_mark(app).beat),
        *([(LOOK_PAUSE_S, app.replica.look)] if app.replica else []),
    ]


def build_load_reporter(app: App) -> LoadReporter:
    return LoadReporter(
        app.postgres,
        app.waiting_rooms.guard,
        app.live.viewers_of,
        payments_max=app.config.gateway_links_max,
    )


def build_ledger_mark(app: App) -> LedgerMark:
    return LedgerMark(app.postgres, app.redis, Path(app.config.data_dir))
