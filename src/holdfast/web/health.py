"""Health checks and metrics.

/healthz  200 while the process responds at all: for the supervisor that restarts processes.
/readyz   200 while it can serve; 503 while it drains, while the ledger is down, or before its migrations.
          Without Redis it is degraded and still ready: holds are decided by the ledger alone.
/metrics  the numbers of all processes of this machine, for Prometheus: text, or OpenMetrics with exemplars.
"""

import asyncio
from collections.abc import Awaitable
from typing import Literal, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.engines.cache import Cache
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.metrics import metrics
from holdfast.engines.migrate import plan
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.web.responses import answer
from holdfast.web.routing import RouteTable, get_app

FRESH_S = 1.0  # a flood of probes costs one look per second and process
CHECK_WITHIN_S = 2.0  # load balancers have short time-outs, and slower than this counts as down
NO_STORE = {"Cache-Control": "no-store"}
routes = RouteTable(tag="health", bare=True)

State = Literal["up", "down"]
T = TypeVar("T")


class Health(msgspec.Struct):
    status: Literal["ready", "degraded", "draining", "down"]
    ledger: State
    holds: State
    migrations: str  # "done", the names of those to be taken, or what is wrong with them


class Readiness:
    """What the engines answered, shared by all probes for a second."""

    def __init__(self) -> None:
        self._cache = Cache(self._look, fresh_s=FRESH_S, stale_max_s=0.0, size_max=1)

    async def check(self, postgres: Postgres, redis: Redis) -> tuple[str | None, bool]:
        """The state of the migrations, None while the ledger is down; and whether Redis answers."""
        return await self._cache.get((postgres, redis))

    async def _look(self, engines: tuple[Postgres, Redis]) -> tuple[str | None, bool]:
        postgres, redis = engines
        migrations, pong = await asyncio.gather(_up(_migrations(postgres)), _up(redis.call("PING")))
        return migrations, pong is not None


@routes.get("/healthz")
async def get_healthz(request: Request) -> Response:
    """The process responds."""
    return answer(200, {"status": "alive"}, NO_STORE)


@routes.get("/readyz")
async def get_readyz(request: Request) -> Response:
    """Whether the load balancer may send requests here."""
    app, application = get_app(request), request.state.application
    migrations, pong = await application.readiness.check(app.postgres, app.redis)
    health = Health(
        status="ready" if pong else "degraded",
        ledger="up" if migrations else "down",
        holds="up" if pong else "down",
        migrations=migrations or "unknown",
    )
    if application.is_draining:
        health.status = "draining"
    elif not migrations or migrations.startswith("to do"):
        health.status = "down"
    return answer(200 if health.status in ("ready", "degraded") else 503, health, NO_STORE)


@routes.get("/metrics")
async def get_metrics(request: Request) -> Response:
    """Counters and timings in the text format of Prometheus, or as OpenMetrics if `Accept` names it."""
    text, content_type = await asyncio.to_thread(metrics.render, request.headers.get("accept", ""))
    return Response(text, 200, NO_STORE, content_type)


async def _migrations(postgres: Postgres) -> str:
    async with postgres.lease() as connection:
        try:
            todo = await plan(connection)
        except OperatorError as trouble:  # a newer version has migrated: serve on
            return str(trouble)
    return "to do: " + ", ".join(step.name for step in todo) if todo else "done"


async def _up(check: Awaitable[T]) -> T | None:
    """The result of the check, or None when its engine is down."""
    try:
        async with asyncio.timeout(CHECK_WITHIN_S):
            return await check
    except (EngineDown, TimeoutError):
        return None


HEALTH_ROUTES = routes.all
