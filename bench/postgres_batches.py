"""Bookings in PostgreSQL alone: batches against one transaction per booking, and against row locks."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from bench.environment import Environment, Q, create_shows, start_environment
from bench.errors import BenchError
from bench.figure import Figure
from bench.session import Session
from holdfast.bookings import Booking, Opening
from holdfast.engines.batch import Batcher
from tests.support.shows import a_layout

CALLERS = 128
POOL = 20
SECONDS, WARM_UP_S = 3.0, 0.5
SEATS = 20_000  # of each show: ten thousand pairs
SHOWS, ONE_BY_ONE = 60, 3  # more than can be sold in a round: in batches, and by each of the other two

Book = Callable[[int, int], Awaitable[None]]  # show, pair


class Bookings:
    """Three ways to open a booking of two seats."""

    def __init__(self, env: Environment, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._open_booking = Batcher(env.app.bookings.open_many, batch_max=128, waiting_max=10_000)
        self._pool = pool
        self._numbers = count(10_000_000)

    async def open_in_batch(self, show: int, pair: int) -> None:
        number = next(self._numbers)
        seats = (2 * pair, 2 * pair + 1)
        names = (show, number, f"r{number}", 1, f"c{number}", "")
        opening = Opening(*names, 600_000, time.monotonic(), 1, "EUR", seats, (1500, 1500))
        opened = await self._open_booking(opening)
        if not isinstance(opened, Booking):
            raise BenchError(f"a free pair of seats was refused: {opened}")

    async def open_in_transaction(self, show: int, pair: int) -> None:
        number = next(self._numbers)
        async with self._pool.acquire() as connection, connection.transaction():
            await self._insert(connection, show, number, pair)

    async def open_with_row_locks(self, show: int, pair: int) -> None:
        number, seats = next(self._numbers), [2 * pair, 2 * pair + 1]
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(Q.lock_seats, show, seats)
            if len(rows) != 2:
                raise BenchError("a free pair of seats could not be locked")
            await connection.execute(Q.take_seats, show, seats, number)
            await self._insert(connection, show, number, pair)

    async def _insert(
        self, connection: "PoolConnectionProxy[asyncpg.Record]", show: int, number: int, pair: int
    ) -> None:
        """The same rows that open_holds writes, one statement per table."""
        await connection.execute(Q.one_booking, show, number, [2 * pair, 2 * pair + 1])
        await connection.execute(Q.one_pair, show, number, [2 * pair, 2 * pair + 1])
        await connection.execute(Q.one_count, show, number)
        await connection.execute(Q.one_move, show, number)
        await connection.execute(Q.one_fact, show, number)


async def measure_bookings(session: Session) -> list[Figure]:
    name, unit = "bookings opened in batches", "bookings/s"
    by_transaction = Figure(name, unit, "one transaction per booking, pool of 20", 6.0)
    by_lock = Figure(name, unit, "SELECT … FOR UPDATE, pool of 20", 8.0)
    async with (
        start_environment() as env,
        asyncpg.create_pool(env.config.database_url, min_size=1, max_size=POOL) as pool,
    ):
        bookings = Bookings(env, pool)
        await env.app.postgres.execute(Q.seat_table)
        async for attempt in session.repeat(by_transaction, by_lock):
            session.report(f"bookings, attempt {attempt + 1}")
            shows = await create_shows(env, a_layout(SEATS, row=100), SHOWS + 2 * ONE_BY_ONE, with_maps=False)
            of_batches, others = shows[:SHOWS], shows[SHOWS:]
            for show in others[ONE_BY_ONE:]:
                await env.app.postgres.execute(Q.seat_rows, show, SEATS)
            seconds = session.seconds(SECONDS)
            batches = await measure_rate(bookings.open_in_batch, of_batches, seconds)
            transactions = await measure_rate(bookings.open_in_transaction, others[:ONE_BY_ONE], seconds)
            locks = await measure_rate(bookings.open_with_row_locks, others[ONE_BY_ONE:], seconds)
            by_transaction.add(batches, transactions)
            by_lock.add(batches, locks)
    return [by_transaction, by_lock]


async def measure_rate(book: Book, shows: Sequence[int], seconds: float) -> float:
    """Bookings per second of 128 concurrent callers, each on the next free pair, after a warm-up."""
    pairs, booked, is_warm = count(), 0, False
    stop_at = time.perf_counter() + WARM_UP_S + seconds

    async def call() -> None:
        nonlocal booked
        while time.perf_counter() < stop_at:
            show, pair = divmod(next(pairs), SEATS // 2)
            await book(shows[show], pair)
            booked += is_warm

    async def warm_up() -> float:
        nonlocal is_warm
        await asyncio.sleep(WARM_UP_S)
        is_warm = True
        return time.perf_counter()

    warm_at = asyncio.create_task(warm_up())
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    return booked / (stop_at - await warm_at)
