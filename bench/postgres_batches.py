"""Figures of the ledger alone: batches against a transaction a booking, and against row locks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import asyncpg

from bench.environment import Q, shows, stage
from bench.figure import Figure
from holdfast.bookings import Booking, Opening
from holdfast.engines.batch import Batcher
from tests.support.shows import a_layout

CALLERS = 128
POOL = 20
SECONDS = 3.0
SEATS = 20_000  # of each show: ten thousand pairs
SHOWS = 22  # more than batches can sell in a round; one more for each of the other two

Say = Callable[[str], None]
Book = Callable[[int, int], Awaitable[None]]  # show, pair


async def ledger_figures(rounds: int, say: Say) -> list[Figure]:
    by_tx = Figure("bookings opened in batches", "bookings/s", "a transaction a booking, pool of 20", 6.0)
    by_lock = Figure("bookings opened in batches ", "bookings/s", "SELECT … FOR UPDATE, pool of 20", 8.0)
    async with (
        stage() as on,
        asyncpg.create_pool(on.config.database_url, min_size=1, max_size=POOL) as pool,
    ):
        layout, numbers = a_layout(SEATS, row=100), count(10_000_000)

        open_booking = Batcher(on.app.bookings.open_many, batch_max=128, waiting_max=10_000)

        async def in_batches(show: int, pair: int) -> None:
            number = next(numbers)
            seats = (2 * pair, 2 * pair + 1)
            names = (show, number, f"r{number}", 1, f"c{number}", "")
            opening = Opening(*names, 600_000, time.monotonic(), 1, "EUR", seats, (1500, 1500))
            assert isinstance(await open_booking(opening), Booking)

        async def in_transactions(show: int, pair: int) -> None:
            number = next(numbers)
            async with pool.acquire() as connection, connection.transaction():
                await _insert(connection, show, number, pair)

        async def with_row_locks(show: int, pair: int) -> None:
            number, seats = next(numbers), [2 * pair, 2 * pair + 1]
            async with pool.acquire() as connection, connection.transaction():
                rows = await connection.fetch(Q.lock_seats, show, seats)
                assert len(rows) == 2
                await connection.execute(Q.take_seats, show, seats, number)
                await _insert(connection, show, number, pair)

        await on.app.postgres.execute(Q.seat_table)
        for i in range(rounds):
            say(f"ledger, round {i + 1} of {rounds}")
            ids = await shows(on, layout, SHOWS, built=False)
            await on.app.postgres.execute(Q.seat_rows, ids[-1], SEATS)
            batches = await rate(in_batches, list(ids[:-2]))
            by_tx.add(batches, await rate(in_transactions, [ids[-2]]))
            by_lock.add(batches, await rate(with_row_locks, [ids[-1]]))
    return [by_tx, by_lock]


async def _insert(connection: Any, show: int, number: int, pair: int) -> None:
    """The same rows that open_holds writes, one statement a table."""
    await connection.execute(Q.one_booking, show, number, [2 * pair, 2 * pair + 1])
    await connection.execute(Q.one_pair, show, number, [2 * pair, 2 * pair + 1])
    await connection.execute(Q.one_count, show, number)
    await connection.execute(Q.one_move, show, number)
    await connection.execute(Q.one_fact, show, number)


async def rate(book: Book, ids: list[int]) -> float:
    """Bookings a second by so many callers, each on the next pair of seats; half a second of warm-up."""
    pairs, done, counting = count(), 0, False
    stop_at = time.perf_counter() + SECONDS + 0.5

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < stop_at:
            show, pair = divmod(next(pairs), SEATS // 2)
            await book(ids[show], pair)
            done += counting

    async def begin() -> float:
        nonlocal counting
        await asyncio.sleep(0.5)
        counting = True
        return time.perf_counter()

    began = asyncio.create_task(begin())
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return done / (stop_at - await began)
