"""A show for each contest, with the rows that its strategy needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import asyncpg

from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.layouts import Layout
from lab.contest.servers import Servers
from lab.strategies import find_strategy
from lab.strategies.strategy import Q
from tests.support.shows import a_layout, a_show

ROW = 50  # seats in a row of the hall


class Shows:
    """Shows of the lab have numbers of their own; those of Holdfast come from its catalogue."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", servers: Servers) -> None:
        self._connection = connection
        self._servers = servers
        self._numbers = count(1_000_000)
        self._layouts: dict[int, Layout] = {}

    async def create(self, strategy: str, seats: int, *, hold_ttl_ms: int, redis_url: str) -> int:
        await self._connection.execute(Q.empty_tables)
        if strategy == "holdfast":
            return await self._create_holdfast(seats, hold_ttl_ms, redis_url)
        show_id = next(self._numbers)
        if find_strategy(strategy).has_seat_rows:
            await self._connection.execute(Q.add_seats, show_id, seats)
        return show_id

    async def _create_holdfast(self, seats: int, hold_ttl_ms: int, redis_url: str) -> int:
        if seats not in self._layouts:
            self._layouts[seats] = a_layout(seats, row=ROW)
        async with self._open_app(redis_url) as app:
            show_id = await a_show(app, layout=self._layouts[seats], hold_ttl_s=hold_ttl_ms // 1000)
            await app.seatmap.rebuild(show_id, "lab")
        return show_id

    @asynccontextmanager
    async def _open_app(self, redis_url: str) -> AsyncIterator[App]:
        async with open_app(Config(database_url=self._servers.database_url, redis_url=redis_url)) as app:
            yield app

    async def sold_rows(self, show_id: int) -> dict[int, int]:
        return {row["seat"]: row["rows"] for row in await self._connection.fetch(Q.sold_rows, show_id)}


@asynccontextmanager
async def open_shows(servers: Servers) -> AsyncIterator[Shows]:
    connection = await asyncpg.connect(servers.database_url)
    try:
        yield Shows(connection, servers)
    finally:
        await connection.close()
