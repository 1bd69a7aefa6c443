"""A box office with a long past, in a database of its own; and how many rows a call reads there."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.startup_checks import connect
from tests.support.second_ledger import a_ledger, beside
from tests.support.shows import a_show

PAST = Path(__file__).with_suffix(".sql")
# Every row that a scan returned, with or without an index.
ROWS_READ = (
    "SELECT (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables)"
    " + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes)"
)
PLANS_SETTLED_AFTER = 6  # executions: from the sixth on PostgreSQL may use a generic plan


@dataclass(frozen=True, slots=True)
class GrownHouse:
    app: App
    show_id: int  # the one on sale, with 20 000 lapsed holds
    past_show_id: int  # one of 1 000, with 20 bookings

    async def rows_read(self, call: Callable[[], Awaitable[object]]) -> int:
        """By one call, after earlier ones have settled its plans.

        The smaller of two: a second connection of the pool may report what an earlier call has read.
        """
        for _ in range(PLANS_SETTLED_AFTER):
            await call()
        rows = [await self._rows()]
        for _ in range(2):
            await call()
            rows.append(await self._rows())
        return min(rows[1] - rows[0], rows[2] - rows[1])

    async def _rows(self) -> int:
        async with self.app.postgres.lease() as connection:
            await connection.fetchval("SELECT pg_stat_force_next_flush()")
            await connection.fetchval("SELECT pg_stat_clear_snapshot()")
            return int(await connection.fetchval(ROWS_READ))


@asynccontextmanager
async def grown_house(config: Config) -> AsyncIterator[GrownHouse]:
    async with a_ledger(config.database_url) as url:
        connection = await connect(url)
        async with open_app(replace(await beside(config, url, 10), postgres_pool_max=2)) as app:
            show_id = await a_show(app, 50)
            await connection.execute(PAST.read_text())
            past_show_id = await connection.fetchval("SELECT max(id) FROM show")
            await connection.close()
            yield GrownHouse(app, show_id, past_show_id)
