"""Composition root: engines, subjects, routes and jobs. The only file that knows every folder."""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Optional, TypedDict

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
from holdfast.app_people import Persons, build_people
from holdfast.app_sale import build_afterwards, build_money
from holdfast.attendees import AttendeeStore
from holdfast.audit_log import AuditLog
from holdfast.bookings import Bookings, HoldLimits
from holdfast.catalogue import Catalogue
from holdfast.checkin import CheckInStore
from holdfast.checkin.passes import Passes
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.fault_injection import arm
from holdfast.engines.loop import running
from holdfast.engines.open_redis import open_redis
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.engines.replica import ReplicaReader, build_replica
from holdfast.engines.send_traces import send_traces
from holdfast.holds import HoldScripts, HoldService
from holdfast.house import House
from holdfast.invoices import Invoices
from holdfast.legal import Legal
from holdfast.notifications import NotificationStore
from holdfast.oidc import Identities
from holdfast.organisations import ApiKeys, Invitations, Organisations
from holdfast.organisers.blocks_store import BlockStore
from holdfast.organisers.layout_change import LayoutChanger
from holdfast.organisers.pod_seats import CountSeats, PodSeats
from holdfast.organisers.price_rules_store import PriceRulesStore
from holdfast.organisers.removal import CatalogueRemover
from holdfast.organisers.shows_store import ShowEditor
from holdfast.organisers.store import CatalogueEditor
from holdfast.outbox import Outbox
from holdfast.payments import Chargebacks, IncomingWebhooks, PaymentStore, Reconciliation, SagaRunner
from holdfast.pod_choice import PodChoice
from holdfast.pods import HOME, Directory, PodCounts, PodPlace, PodRouter, parse_pods
from holdfast.privacy import Erasure, PersonalData
from holdfast.refunds.service import RefundService
from holdfast.refunds.store import RefundStore
from holdfast.replay import DemandWriter, Replays
from holdfast.reports import ReportStore
from holdfast.search import SearchIndex, SearchSource, SearchStore
from holdfast.seatmap import SeatMap
from holdfast.seatmap.live import LiveMaps
from holdfast.tickets import Acceptance, Tickets, Transfers
from holdfast.waitingroom import RoomEditor, WaitingRooms
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
    router: PodRouter["App"]  # the applications of all pods, this one among them
    pod: str  # the name of this one; empty: the home database
    home: Optional["App"]  # of a pod: that of the home database, which has the people and the catalogue

    @property
    def catalogue_home(self) -> "App":
        """The application whose database has the catalogue that organisers change."""
        return self.home or self

    def pod_chooser(self) -> PodChoice | None:
        """For web/asgi.py; None without pods, so that their look-up costs nothing."""
        return PodChoice(self) if self.router.has_pods else None

    @property
    def count_seats(self) -> CountSeats | None:
        """In the databases of pods; None without pods: where the catalogue is."""
        if not self.router.has_pods:
            return None
        return PodSeats(self.router_database, self.router.directory.follow).count

    def router_database(self, show_id: int) -> Postgres:
        """Of the pod that owns the show, as this process knows."""
        return self.router.for_show(show_id).postgres

    @property
    def invitations(self) -> Invitations:
        return Invitations(self.postgres, self.organisations, self.notifications)

    @property
    def first_admin(self) -> FirstAdmin:
        return FirstAdmin(self.postgres, self.accounts, self.mail_tokens)

    # Editors see and change only what the scope of one caller covers, so each caller gets its own.

    def catalogue_editor(self, scope: Scope) -> CatalogueEditor:
        return CatalogueEditor(self.catalogue_home.postgres, scope)

    def show_editor(self, scope: Scope) -> ShowEditor:
        home = self.catalogue_home
        return ShowEditor(home.postgres, home.catalogue, self.config, scope)

    def price_rules(self, scope: Scope) -> PriceRulesStore:
        home, config = self.catalogue_home, self.config
        return PriceRulesStore(
            home.postgres, home.catalogue, scope, config.price_pause_s, config.gateway, self.count_seats
        )

    def catalogue_remover(self, scope: Scope) -> CatalogueRemover:
        home, pods = self.catalogue_home, pod_databases(self.router)
        return CatalogueRemover(home.postgres, home.catalogue, scope, pods.get if pods else None)

    def room_editor(self, scope: Scope) -> RoomEditor:
        return RoomEditor(self.postgres, self.catalogue, self.waiting_rooms, scope)

    def layout_change(self, scope: Scope) -> LayoutChanger:
        home, pods = self.catalogue_home, pod_databases(self.router)
        editor = self.show_editor(scope)
        return LayoutChanger(home.postgres, home.catalogue, editor, pods.get if pods else None)


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    """Open every subject on its engines; raises EngineDown when the ledger cannot be reached.

    With pods, the application of the home database, whose `router` has the others. A pod that cannot be
    reached does not keep the house from opening: its shows refuse, the others sell.
    """
    postgres = _open_postgres(config)
    redis = _open_redis(config, config.redis_url)
    limits_redis = _open_redis(config, config.limits_url) if config.limits_url else redis
    router: PodRouter[App] = PodRouter(Directory(postgres))
    persons = _build_persons(config, postgres, limits_redis, router)
    app = _build_app(config, (postgres, redis), persons, router)
    for place in parse_pods(config.pods):
        app.router.add(place.name, _build_pod(app, place))
    arm(config.crash_at)
    try:
        await app.accounts.open()
        await app.tickets.open()
        await app.house.refresh()
        await app.legal.refresh()
        await app.router.directory.follow()
        yield app
    finally:
        await app.identities.client.close()
        await app.search.close()
        for each in reversed(list(app.router.by_name.values())):
            await _close_sale(each)
        await app.accounts.close()
        await limits_redis.close()
        await redis.close()
        if app.replica is not None:
            await app.replica.close()
        await postgres.close()


async def _close_sale(app: App) -> None:
    """What every pod has of its own; of a pod other than home, its engines, too."""
    await app.demand.close()
    await app.webhooks_in.close()
    await app.saga_runner.gateway.close()
    await app.outbox.close()
    await app.live.close()
    app.tickets.close()
    if app.home is not None:
        await app.redis.close()
        await app.postgres.close()


def _open_postgres(config: Config) -> Postgres:
    return Postgres(
        config.database_url,
        pool_max=config.postgres_pool_max,
        timeout_s=config.postgres_timeout_s,
        settings={"idle_in_transaction_session_timeout": f"{config.postgres_idle_s}s"},
        has_standbys=config.ledger_standbys_min > 0,
        is_shared=bool(config.database_direct_url),
    )


def _open_redis(config: Config, url: str) -> Redis:
    return open_redis(url, links_max=config.redis_links_max, timeout_s=config.redis_timeout_ms / 1000)


def _build_persons(
    config: Config, postgres: Postgres, limits_redis: Redis, router: PodRouter[App]
) -> tuple[Persons, Puzzles]:
    notifications = NotificationStore(postgres, config)
    persons = build_people(config, postgres, limits_redis, notifications, partial(pod_databases, router))
    return persons, Puzzles(limits_redis, config)


def pod_databases(router: PodRouter[App]) -> dict[str, Postgres]:
    """Without that of the home database: none in a house without pods."""
    return {name: app.postgres for name, app in router.by_name.items() if name != HOME}


def _build_pod(home: App, place: PodPlace) -> App:
    """The application of another pod: people, passes and everything else of the home database are its own."""
    config = place.configure(home.config)
    postgres, redis = _open_postgres(config), _open_redis(config, config.redis_url)
    persons = Persons(**{name: getattr(home, name) for name in Persons._fields})
    app = _build_app(config, (postgres, redis), (persons, home.puzzles), home.router, home, place.name)
    home.catalogue.copies.append(app.catalogue)
    return app


def _build_app(
    config: Config,
    engines: tuple[Postgres, Redis],
    people: tuple[Persons, Puzzles],
    router: PodRouter[App],
    home: App | None = None,
    pod: str = HOME,
) -> App:
    """Builds every store and service on its engines. No engine is contacted yet."""
    (postgres, redis), (persons, puzzles) = engines, people
    batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
    catalogue, replica = _build_catalogue(config, postgres)
    limits = HoldLimits.from_config(config)
    claims, bookings = Claims(redis), Bookings(postgres, limits, **batches)
    hold_scripts = HoldScripts(redis, limits, claim_grace_ms=config.claim_grace_ms)
    seatmap = SeatMap(catalogue, bookings, claims, postgres, **_map_sizes(config))
    tickets, transfers = Tickets(postgres, catalogue), Transfers(postgres)
    rooms = WaitingRooms(postgres, catalogue, tickets, config)
    holds = HoldService(catalogue, rooms.guard, hold_scripts, bookings, seatmap, config)
    tickets_of = partial(_find_tickets, router) if config.pods and home is None else None
    money = build_money(config, postgres, holds, claims, catalogue, partial(_sells, config, router))
    app = App(
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
        waitlists=Waitlists(postgres, catalogue, seatmap, money.refunds, holds, config),
        puzzles=puzzles,
        **money._asdict(),
        outbox=Outbox(postgres, config),
        search=SearchStore(config, replica.lag if replica else None),
        search_index=SearchIndex(
            postgres, SearchSource(postgres), PodCounts(router, lambda each: each.seatmap)
        ),
        tickets=tickets,
        transfers=transfers,
        waiting_rooms=rooms,
        acceptance=Acceptance(postgres, transfers, persons.mail_tokens, persons.sessions, tickets_of),
        checkin=CheckInStore(postgres, catalogue, tickets),
        passes=home.passes if home else Passes(postgres, persons.accounts),
        **build_afterwards(
            config, postgres, catalogue, replica or postgres, home.postgres if home else postgres, pod
        )._asdict(),
        blocks=BlockStore(postgres, holds),
        demand=DemandWriter(postgres, holds.wanted),
        pages=build_page_cache(),
        replica=replica,
        router=router,
        pod=pod,
        home=home,
        **persons._asdict(),
    )
    if home is None:
        router.add(HOME, app)
    return app


def _sells(config: Config, router: PodRouter[App], show_id: int) -> bool:
    """Whether the show is in the database of this configuration."""
    app = router.find(show_id)
    return app is not None and app.config is config


def _find_tickets(router: PodRouter[App], show_id: int) -> tuple[Postgres, Transfers] | None:
    """Of a show in a pod; None: they are in the home database."""
    app = router.for_show(show_id)
    return None if app.home is None else (app.postgres, app.transfers)


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


def asgi_app(
    config: Config, more: tuple["Route", ...] = (), only: Container[str] | None = None
) -> "Application":
    """Jobs and commands have no routes: they start sooner without them."""
    from holdfast.routes import ROUTES
    from holdfast.site.pages import problem_page
    from holdfast.web.asgi import Application
    from holdfast.web_jobs import web_jobs

    @asynccontextmanager
    async def opened() -> AsyncIterator[App]:
        async def end_streams() -> int:
            if application.is_draining:
                for each in app.router.by_name.values():
                    each.live.drain()
            return 0

        async with (
            send_traces(config, "web"),
            open_app(config) as app,
            running([*web_jobs(app), (0.25, end_streams)]),
        ):
            yield app

    application = Application(opened, (*ROUTES, *more), only, problem_page)
    return application
