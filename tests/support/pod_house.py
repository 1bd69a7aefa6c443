"""A house with pods: databases of one server, each with a database of Valkey of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg

from holdfast.app import App
from holdfast.background import worker_jobs
from holdfast.cli.pods import databases
from holdfast.config import Config
from holdfast.engines.loop import running
from holdfast.engines.startup_checks import connect
from holdfast.pods import parse_pods
from holdfast.pods.move import MoveReport, ShowMover
from holdfast.pods.setup import NewPod, add_pod
from tests.support import shows as cast
from tests.support.own_engines import hold
from tests.support.postgres_server import Server, a_primary
from tests.support.second_ledger import empty_valkey
from tests.support.show_fixture import an_owner
from tests.support.shows import Fan
from tests.support.wait import until

PODS = ("east", "west")
FIRST_REDIS = 9  # database of Valkey: other tests use lower ones


@dataclass(frozen=True)
class PodHouse:
    config: Config
    server: Server

    def url_of(self, pod: str) -> str:
        return url_of(self.server, pod)


def url_of(server: Server, database: str) -> str:
    return f"postgresql://holdfast@{server.address}/{database or 'holdfast'}"


@asynccontextmanager
async def a_pod_house(
    config: Config, names: Sequence[str] = PODS, first_redis: int = FIRST_REDIS
) -> AsyncIterator[PodHouse]:
    """Home and pods, which take new shows in turn."""
    async with a_primary(wal_level="logical", max_connections="200", max_wal_senders="20") as (server,):
        redis_urls = [f"{config.redis_url}?db={first_redis + i}" for i in range(len(names) + 1)]
        for url in redis_urls:
            await empty_valkey(url)
        pods = " ".join(
            f"{name}={url_of(server, name)},{url}" for name, url in zip(names, redis_urls[1:], strict=True)
        )
        own = replace(
            config, database_url=server.url, redis_url=redis_urls[0], pods=pods, sale_lock_wait_ms=300
        )
        await _make_databases(server, names)
        await add_pods(own)
        yield PodHouse(own, server)


async def _make_databases(server: Server, names: Sequence[str]) -> None:
    """Copies of the empty ledger: a copy takes a tenth of what all migrations take."""
    connection = await asyncpg.connect(server.url, database="postgres")
    for name in names:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE holdfast STRATEGY file_copy")
    await connection.close()
    for place, name in enumerate(names, 1):
        copy = await asyncpg.connect(url_of(server, name))
        await copy.execute("UPDATE ledger_mark SET ledger_id = gen_random_uuid()")
        # Bookings of two pods may have one number (bookings/functions.sql), and a page of a list is shorter
        # or longer then: tests/rules/test_every_pod.py. In the tests of a house it would be luck.
        await copy.execute("SELECT setval('ledger_number', $1)", 2000 * place)
        await copy.close()


async def add_pods(config: Config) -> None:
    home = await connect(config.database_url)
    for place in parse_pods(config.pods):
        pod = await connect(place.database_url)
        await add_pod(home, pod, NewPod(place, config.database_url))
        await pod.close()
    await home.close()


def without_pod(config: Config, name: str) -> Config:
    """The same house, whose web machines and workers do not reach one pod."""
    places = [
        place if place.name != name else replace(place, database_url="postgresql://holdfast@127.0.0.1:1/none")
        for place in parse_pods(config.pods)
    ]
    pods = " ".join(f"{place.name}={place.database_url},{place.redis_url}" for place in places)
    return replace(config, pods=pods)


async def a_pod_show(app: App, **terms: Any) -> int:
    """On sale in a pod."""
    show_id = await cast.a_show(app, **terms)
    await wait_for_show(app, show_id)
    return show_id


async def shows_in_pods(app: App, **terms: Any) -> dict[str, int]:
    """One in each pod."""
    found: dict[str, int] = {}
    while set(found) != set(PODS):
        show_id = await a_pod_show(app, **terms)
        found[app.router.directory.pod_of(show_id)] = show_id
    return dict(sorted(found.items()))


async def buys(fan: Fan, show_id: int, *seats: str) -> str:
    """The id of a paid booking."""
    held = await holds(fan, show_id, *seats)
    paid = await fan.post(f"/bookings/{held}/pay", {"method": "tok_ok"}, key=f"pay-{held}")
    assert paid.status_code == 200, paid.text
    return held


async def holds(fan: Fan, show_id: int, *seats: str) -> str:
    """A router learns of a new show within half a second. Before, it gets 503 from the wrong database."""
    async with asyncio.timeout(15):
        while True:
            response = await fan.holds(show_id, *seats, key=f"{show_id}-{'-'.join(seats)}")
            if response.status_code != 503:
                assert response.status_code == 201, response.text
                booking_id: str = response.json()["booking_id"]
                return booking_id
            assert "retry-after" in response.headers


async def drain(app: App, *show_ids: int) -> None:
    """Until a worker has processed the facts of these shows."""

    async def is_drained() -> bool:
        return not any([await app.router.for_show(show).outbox.groups_behind(show) for show in show_ids])

    await until(is_drained)


async def wait_for_show(app: App, show_id: int) -> App:
    """Until the pod that owns the show has received it; its application."""

    async def is_there() -> bool:
        await app.router.directory.follow()
        pod = app.router.for_show(show_id)
        return bool(
            await pod.postgres.fetchval("SELECT show_is_here($1) FROM sale WHERE show_id = $1", show_id)
        )

    await until(is_there)
    return app.router.for_show(show_id)


async def move(app: App, show_id: int, to: str) -> MoveReport:
    """With workers, which process the show's facts meanwhile."""
    mover = ShowMover(app.config.database_url, await databases(app))
    async with running(worker_jobs(app, {"outbox"})):
        (moved,) = await asyncio.gather(mover.move(show_id, to), return_exceptions=True)
    if isinstance(moved, BaseException):
        raise moved
    await app.router.directory.follow()
    return moved


async def count_rows(house: PodHouse, pod: str, table: str, show_id: int) -> int:
    connection = await asyncpg.connect(house.url_of(pod))
    try:
        rows = f"SELECT count(*) FROM {table} WHERE show_id = $1"  # noqa: S608  # a table of our schema
        count: int = await connection.fetchval(rows, show_id)
        return count
    finally:
        await connection.close()


async def a_sold_show(app: App) -> tuple[int, str]:
    """A free show with two bookings, and its pod."""
    show = await cast.a_show(app, 20, price_minor=0)
    pod = await wait_for_show(app, show)
    for seat in (1, 2):
        await hold(pod, show, an_owner(), seat)
    return show, app.router.directory.pod_of(show)


def other_than(pod: str) -> str:
    return next(name for name in PODS if name != pod)


def environment(config: Config) -> dict[str, str]:
    names = ("database_url", "redis_url", "pods", "gateway", "gateway_url", "gateway_secret", "data_dir")
    return {f"HOLDFAST_{name.upper()}": str(getattr(config, name)) for name in names}


async def sql(house: PodHouse, pod: str, *statements: str, show: int = 0) -> None:
    """`show` is the parameter of statements that have one."""
    connection = await asyncpg.connect(house.url_of(pod))
    try:
        for statement in statements:
            await connection.execute(statement, *([show] if "$1" in statement else []))
    finally:
        await connection.close()


async def fetch(house: PodHouse, pod: str, query: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(house.url_of(pod))
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()
