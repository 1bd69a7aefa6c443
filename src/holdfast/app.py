"""Composition root: engines, subjects, routes and duties. The only file that knows everybody."""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass

import holdfast.catalogue.admin.routes
import holdfast.catalogue.routes
import holdfast.figures.routes
import holdfast.gate.passes.routes
import holdfast.gate.routes
import holdfast.hooks.routes
import holdfast.invoices.routes
import holdfast.notices.mailbox.routes
import holdfast.notices.routes
import holdfast.payments.books.routes
import holdfast.payments.refunds.desk.routes
import holdfast.payments.refunds.routes
import holdfast.payments.routes
import holdfast.payments.webhooks.routes
import holdfast.people.routes
import holdfast.sale.blocks.routes
import holdfast.sale.routes
import holdfast.search.routes
import holdfast.seatmap.live.routes
import holdfast.seatmap.routes
import holdfast.site.account.routes
import holdfast.site.browse.routes
import holdfast.site.checkout.routes
import holdfast.site.routes
import holdfast.site.seats.routes
import holdfast.tickets.phone.routes
import holdfast.tickets.routes
import holdfast.tickets.transfers.routes
from holdfast.audit import oversold
from holdfast.catalogue import Catalogue, Programme
from holdfast.catalogue.prices.worker import PriceDuties
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.cache import Cache
from holdfast.engines.crash import arm
from holdfast.engines.loop import Duty, running
from holdfast.engines.meter import meter
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.figures import Figures
from holdfast.figures.worker import consumer as figure_consumer
from holdfast.gate import Gate
from holdfast.holds import Holds
from holdfast.hooks import Hooks
from holdfast.hooks.worker import HookDuties
from holdfast.hooks.worker import consumer as hook_consumer
from holdfast.hooks.worker import duties as hook_duties
from holdfast.invoices import Invoices
from holdfast.invoices.worker import consumer as invoice_consumer
from holdfast.ledger import Ledger
from holdfast.notices import Notices
from holdfast.notices.senders import senders_of
from holdfast.notices.worker import Post
from holdfast.notices.worker import consumer as notice_consumer
from holdfast.notices.worker import duties as notice_duties
from holdfast.notices.writing.store import Writer
from holdfast.outbox import Consumer, Outbox
from holdfast.outbox.worker import duties as fact_duties
from holdfast.payments import Books, Cashier, PaymentBook, Webhooks, gateway_of
from holdfast.payments.books.worker import BookDuties
from holdfast.payments.refunds.returns.store import Refunds
from holdfast.payments.refunds.store import RefundBook
from holdfast.payments.refunds.worker import RefundDuties
from holdfast.payments.webhooks.worker import WebhookDuties
from holdfast.payments.worker import PaymentDuties
from holdfast.people import People, Visits
from holdfast.sale import Sales
from holdfast.sale.blocks.store import Blocks
from holdfast.sale.blocks.worker import BlockDuties
from holdfast.sale.worker import SaleDuties
from holdfast.search import Finder, Index
from holdfast.search.worker import consumer as search_consumer
from holdfast.search.worker import duties as search_duties
from holdfast.seatmap import SeatMap
from holdfast.seatmap.live.store import LiveMaps
from holdfast.site import apology
from holdfast.site.store import Kept, Wanted, kept_pages
from holdfast.tickets import Tickets
from holdfast.web.asgi import Application
from holdfast.web.keys import purge_keys
from holdfast.web.routing import Route

ROUTES: tuple[Route, ...] = (
    *holdfast.sale.routes.ROUTES,
    *holdfast.payments.routes.ROUTES,
    *holdfast.payments.webhooks.routes.ROUTES,
    *holdfast.payments.books.routes.ROUTES,
    *holdfast.payments.refunds.routes.ROUTES,
    *holdfast.payments.refunds.desk.routes.ROUTES,
    *holdfast.invoices.routes.ROUTES,
    *holdfast.tickets.routes.ROUTES,
    *holdfast.tickets.transfers.routes.ROUTES,
    *holdfast.tickets.phone.routes.ROUTES,
    *holdfast.gate.routes.ROUTES,
    *holdfast.seatmap.routes.ROUTES,
    *holdfast.seatmap.live.routes.ROUTES,
    *holdfast.catalogue.routes.ROUTES,
    *holdfast.search.routes.ROUTES,
    *holdfast.sale.blocks.routes.ROUTES,
    *holdfast.gate.passes.routes.ROUTES,
    *holdfast.catalogue.admin.routes.ROUTES,
    *holdfast.people.routes.ROUTES,
    *holdfast.hooks.routes.ROUTES,
    *holdfast.figures.routes.ROUTES,
    *holdfast.notices.routes.ROUTES,
    *holdfast.notices.mailbox.routes.ROUTES,
    *holdfast.site.routes.ROUTES,
    *holdfast.site.browse.routes.ROUTES,
    *holdfast.site.seats.routes.ROUTES,
    *holdfast.site.checkout.routes.ROUTES,
    *holdfast.site.account.routes.ROUTES,
)


@dataclass(frozen=True, slots=True)
class Box:
    """One process' box office: every subject, on its engines."""

    config: Config
    postgres: Postgres
    redis: Redis
    catalogue: Catalogue
    people: People
    ledger: Ledger
    holds: Holds
    claims: Claims
    seatmap: SeatMap
    live: LiveMaps
    sales: Sales
    payments: PaymentBook
    cashier: Cashier
    webhooks: Webhooks
    books: Books
    refund_book: RefundBook
    refunds: Refunds
    outbox: Outbox
    search: Finder
    index: Index
    tickets: Tickets
    gate: Gate
    notices: Notices
    hooks: Hooks
    figures: Figures
    visits: Visits
    pages: Cache[Wanted, Kept]


@asynccontextmanager
async def box_office(config: Config) -> AsyncIterator[Box]:
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
    box = _assembled(config, postgres, redis)
    arm(config.crash_at)
    try:
        await box.people.open()
        await box.tickets.open()
        yield box
    finally:
        await box.webhooks.close()
        await box.cashier.gateway.close()
        await box.outbox.close()
        await box.search.close()
        await box.live.close()
        box.tickets.close()
        await box.people.close()
        await redis.close()
        await postgres.close()


def _assembled(config: Config, postgres: Postgres, redis: Redis) -> Box:
    """Who stands on whom. Nothing is asked of an engine yet."""
    batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
    catalogue, claims, ledger = Catalogue(postgres), Claims(redis), Ledger(postgres, **batches)
    holds, people = Holds(redis, **batches), People(postgres, redis, config)
    seatmap = SeatMap(catalogue, ledger, claims, postgres, fresh_s=config.map_fresh_ms / 1000)
    sales = Sales(catalogue, holds, claims, ledger, seatmap, config)
    payments = PaymentBook(postgres, config)
    cashier = Cashier(payments, sales, claims, catalogue, gateway_of(config), config)
    refunds = Refunds(refund_book := RefundBook(postgres, config), payments, cashier, sales, catalogue)
    books, tickets = Books(postgres, payments, cashier), Tickets(postgres, catalogue)
    return Box(
        config=config,
        postgres=postgres,
        redis=redis,
        catalogue=catalogue,
        people=people,
        ledger=ledger,
        holds=holds,
        claims=claims,
        seatmap=seatmap,
        live=LiveMaps(seatmap, config),
        sales=sales,
        payments=payments,
        cashier=cashier,
        webhooks=Webhooks(postgres, payments, cashier, books, refunds.hear, config),
        books=books,
        refund_book=refund_book,
        refunds=refunds,
        outbox=Outbox(postgres, config),
        search=Finder(config),
        index=Index(postgres, Programme(postgres), seatmap),
        tickets=tickets,
        gate=Gate(postgres, catalogue, tickets),
        notices=Notices(postgres, config),
        hooks=Hooks(postgres, config),
        figures=Figures(postgres, catalogue),
        visits=Visits(postgres, people, config),
        pages=kept_pages(),
    )


def asgi_app(config: Config, more: tuple[Route, ...] = (), only: Container[str] | None = None) -> Application:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Box]:
        async def end_streams() -> int:
            if application.is_draining:
                box.live.drain()
            return 0

        async with box_office(config) as box, running([*web_duties(box), (0.1, end_streams)]):
            yield box

    application = Application(opened, (*ROUTES, *more), only, apology)
    return application


def web_duties(box: Box) -> list[tuple[float, Duty]]:
    """What every web process does for itself."""
    return [
        (box.config.revocations_refresh_s, box.people.catch_up),
        (0.05, box.live.follow),
        (0.05, box.live.look),
        (1.0, meter.flush),
    ]


def consumers(box: Box) -> tuple[Consumer, ...]:
    """Who hears of facts: docs/consumers.md."""
    told = (search_consumer(box.index), notice_consumer(box.notices), hook_consumer(box.hooks))
    return (*told, figure_consumer(box.figures), invoice_consumer(Invoices(box.postgres)))


def post_of(box: Box) -> Post:
    """Who sends people what there is to tell them."""
    writer = Writer(box.postgres, box.catalogue, box.ledger, box.tickets, box.config)
    return Post(box.notices, writer, senders_of(box.config), keeps=bool(box.config.mail_page))


def duties(box: Box, only: Container[str] | None = None) -> list[tuple[float, Duty]]:
    """What `holdfast work` does, in any number of processes; with `only`, what those subjects have to do."""
    by_subject = duties_by_subject(box).items()
    asked = [duty for name, some in by_subject if only is None or name in only for duty in some]
    return [*asked, (1.0, meter.flush)]


def duties_by_subject(box: Box) -> dict[str, list[tuple[float, Duty]]]:
    """roles.py has their names."""
    sale = SaleDuties(box.ledger, box.claims, box.seatmap, box.config)
    payments = PaymentDuties(box.payments, box.cashier)
    webhooks, books = WebhookDuties(box.webhooks), BookDuties(box.books, box.config)
    refunds = RefundDuties(box.refund_book, box.refunds, box.config.refunds_at_once_max)

    async def count_oversold() -> int:
        await oversold(box.postgres)
        return 0

    async def forget_old_answers() -> int:
        return await purge_keys(box.postgres)

    return {
        "sale": [
            (box.config.sweep_pause_ms / 1000, sale.sweep),
            (1.0, sale.rebuild_stale),
            (box.config.compare_pause_s, sale.compare),
            (1.0, BlockDuties(Blocks(box.postgres, box.sales)).release),
        ],
        "catalogue": [(1.0, PriceDuties(box.postgres, box.catalogue, box.config.price_pause_s).step)],
        "payments": [
            (0.5, payments.carry_on),
            (0.5, webhooks.look),
            (600.0, webhooks.forget),
            (box.config.reconcile_pause_s, books.compare),
            (10.0, books.count),
            (0.5, refunds.carry_out),
            (2.0, refunds.refund_shows),
            (10.0, refunds.count),
        ],
        "audit": [(60.0, count_oversold)],
        "people": [(60.0, box.people.prune)],
        "web": [(600.0, forget_old_answers)],
        "outbox": fact_duties(box.outbox, consumers(box), box.config),
        "search": search_duties(box.index, box.search),
        "notices": notice_duties(post_of(box)),
        "hooks": hook_duties(HookDuties(box.hooks, box.config)),
    }
