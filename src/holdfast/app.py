"""Composition root: engines, subjects, routes and duties. The only file that knows everybody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import holdfast.catalogue.admin.routes
import holdfast.catalogue.routes
import holdfast.payments.routes
import holdfast.people.routes
import holdfast.sale.blocks.routes
import holdfast.sale.routes
import holdfast.seatmap.routes
from holdfast.audit import oversold
from holdfast.catalogue import Catalogue
from holdfast.claim import Claims
from holdfast.config import Config
from holdfast.engines.crash import arm
from holdfast.engines.loop import Duty, every
from holdfast.engines.meter import meter
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.holds import Holds
from holdfast.ledger import Ledger
from holdfast.outbox import Consumer, Outbox
from holdfast.outbox.worker import duties as fact_duties
from holdfast.payments import Cashier, PaymentBook, gateway_of
from holdfast.payments.worker import PaymentDuties
from holdfast.people import People
from holdfast.sale import Sales
from holdfast.sale.worker import SaleDuties
from holdfast.seatmap import SeatMap
from holdfast.web.asgi import Application
from holdfast.web.keys import purge_keys
from holdfast.web.routing import Route

ROUTES: tuple[Route, ...] = (
    *holdfast.sale.routes.ROUTES,
    *holdfast.payments.routes.ROUTES,
    *holdfast.seatmap.routes.ROUTES,
    *holdfast.catalogue.routes.ROUTES,
    *holdfast.sale.blocks.routes.ROUTES,
    *holdfast.catalogue.admin.routes.ROUTES,
    *holdfast.people.routes.ROUTES,
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
    sales: Sales
    payments: PaymentBook
    cashier: Cashier
    outbox: Outbox


@asynccontextmanager
async def box_office(config: Config) -> AsyncIterator[Box]:
    """Open every subject on its engines; raises EngineDown when the ledger cannot be reached."""
    postgres = Postgres(
        config.database_url, pool_max=config.postgres_pool_max, timeout_s=config.postgres_timeout_s
    )
    redis = Redis(
        config.redis_url, links_max=config.redis_links_max, timeout_s=config.redis_timeout_ms / 1000
    )
    batches = {"batch_max": config.batch_max, "waiting_max": config.waiting_max}
    people = People(postgres, redis, config)
    catalogue, claims, ledger = Catalogue(postgres), Claims(redis), Ledger(postgres, **batches)
    holds = Holds(redis, **batches)
    seatmap = SeatMap(catalogue, ledger, claims, postgres, fresh_s=config.map_fresh_ms / 1000)
    sales = Sales(catalogue, holds, claims, ledger, seatmap, config)
    payments, gateway = PaymentBook(postgres, config), gateway_of(config)
    cashier = Cashier(payments, sales, claims, catalogue, gateway, config)
    outbox = Outbox(postgres, config)
    arm(config.crash_at)
    try:
        await people.open()
        yield Box(
            config=config,
            postgres=postgres,
            redis=redis,
            catalogue=catalogue,
            people=people,
            ledger=ledger,
            holds=holds,
            claims=claims,
            seatmap=seatmap,
            sales=sales,
            payments=payments,
            cashier=cashier,
            outbox=outbox,
        )
    finally:
        await gateway.close()
        await outbox.close()
        await people.close()
        await redis.close()
        await postgres.close()


def asgi_app(config: Config, more: tuple[Route, ...] = ()) -> Application:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Box]:
        async with box_office(config) as box, running(web_duties(box)):
            yield box

    return Application(opened, (*ROUTES, *more))


def web_duties(box: Box) -> list[tuple[float, Duty]]:
    """What every web process does for itself."""
    return [(box.config.revocations_refresh_s, box.people.catch_up), (1.0, meter.flush)]


def consumers(box: Box) -> tuple[Consumer, ...]:
    """Who hears of facts: docs/consumers.md."""
    return ()


def duties(box: Box) -> list[tuple[float, Duty]]:
    """What `holdfast work` does, in any number of processes."""
    sale = SaleDuties(box.ledger, box.claims, box.seatmap, box.config)
    payments = PaymentDuties(box.payments, box.cashier)

    async def count_oversold() -> int:
        await oversold(box.postgres)
        return 0

    async def forget_old_answers() -> int:
        return await purge_keys(box.postgres)

    return [
        (box.config.sweep_pause_ms / 1000, sale.sweep),
        (1.0, sale.rebuild_stale),
        (0.5, payments.carry_on),
        (box.config.compare_pause_s, sale.compare),
        (60.0, count_oversold),
        (60.0, box.people.prune),
        (600.0, forget_old_answers),
        *fact_duties(box.outbox, consumers(box), box.config),
        (1.0, meter.flush),
    ]


@asynccontextmanager
async def running(asked: list[tuple[float, Duty]]) -> AsyncIterator[None]:
    """Duties run until the block ends; one under way is finished first."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for pause_s, duty in asked:
            group.create_task(every(pause_s, duty, stop))
        try:
            yield
        finally:
            stop.set()
