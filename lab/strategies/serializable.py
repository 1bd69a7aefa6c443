"""SERIALIZABLE transactions: the naive code, with a database that notices, and a loop that tries again.

How it works. PostgreSQL remembers what each transaction has read. If the result could not have come from
running them one after the other, one of them fails with a serialization error and must be repeated.

How it fails. Never twice. Every client needs the retry loop, failed work is paid for in full, and on one hot
row most transactions fail. After a few tries the client has to give up.

Right for: rules over many rows that no key and no single lock can express.
"""

import asyncio
import random

import asyncpg

from lab.strategies.strategy import Hold, Q, Strategy, is_free, is_held_by

TRIES_MAX = 8
PAUSE_S = 0.002  # at random, doubled with each try: clients that failed together do not meet again


class Serializable(Strategy):
    name = "serializable"
    title = "SERIALIZABLE, retried"

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        for attempt in range(TRIES_MAX):
            try:
                return hold if await self._write_if_free(hold) else None
            except (asyncpg.SerializationError, asyncpg.LockNotAvailableError):
                await self._back_off(attempt)
        return None

    async def confirm(self, hold: Hold) -> bool:
        for attempt in range(TRIES_MAX):
            try:
                return await self._write_if_mine(hold)
            except (asyncpg.SerializationError, asyncpg.LockNotAvailableError):
                await self._back_off(attempt)
        return False

    async def _write_if_free(self, hold: Hold) -> bool:
        async with self.postgres.acquire() as connection, connection.transaction(isolation="serializable"):
            row = await connection.fetchrow(Q.read_seat, self.show_id, hold.seat)
            if row is None or not is_free(row):
                return False
            await self.tools.critical("hold", hold.seat, hold.client)
            await connection.execute(Q.write_held, *self.held_values(hold))
        return True

    async def _write_if_mine(self, hold: Hold) -> bool:
        async with self.postgres.acquire() as connection, connection.transaction(isolation="serializable"):
            row = await connection.fetchrow(Q.read_seat, self.show_id, hold.seat)
            if row is None or not is_held_by(row, hold):
                return False
            await self.tools.critical("confirm", hold.seat, hold.client)
            await connection.execute(Q.write_sold, *self.sold_values(hold))
        return True

    async def _back_off(self, attempt: int) -> None:
        self.tools.retries += 1
        await asyncio.sleep(random.random() * PAUSE_S * 2**attempt)
