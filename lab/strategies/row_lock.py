"""A pessimistic row lock: SELECT … FOR UPDATE, then write in the same transaction.

How it works. PostgreSQL gives the row to one transaction at a time; the check stays true until the commit.
Three variants, which differ in what happens to the others:

    plain         they wait in line, up to lock_timeout
    NOWAIT        they get an error at once
    SKIP LOCKED   they see no row; made for "any free seat", not for a named one

How it fails. Never twice: the lock ends with its connection, not with a clock. But every loser costs a
connection, a transaction and a lock, and a client that stands still inside its transaction holds up everyone
who wants that row. A thousand clients on one seat wait for each other.

Right for: a shop with tens of clients at once. No second engine is needed.
"""

import asyncio
import time

import asyncpg

from lab.strategies.strategy import Hold, Q, Strategy, is_free, is_held_by

PAUSE_S = 0.002  # before a confirmation looks again for a row that another transaction has


class RowBusy(Exception):
    """Another transaction has the row."""


class RowLock(Strategy):
    name = "for_update"
    title = "FOR UPDATE"
    select = Q.lock_seat

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        try:
            return hold if await self._write_if_free(hold) else None
        except (RowBusy, asyncpg.LockNotAvailableError):
            return None

    async def confirm(self, hold: Hold) -> bool:
        """A buyer who has paid is not refused because another client looks at the row: try again."""
        give_up_at = time.monotonic() + self.times.hold_ttl_ms / 1000
        while True:
            try:
                return await self._write_if_mine(hold)
            except (RowBusy, asyncpg.LockNotAvailableError):
                if time.monotonic() > give_up_at:
                    return False
            self.tools.retries += 1
            await asyncio.sleep(PAUSE_S)

    async def _write_if_free(self, hold: Hold) -> bool:
        async with self.postgres.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(self.select, self.show_id, hold.seat)
            if row is None:
                raise RowBusy
            if not is_free(row):
                return False
            await self.tools.critical("hold", hold.seat, hold.client)
            await connection.execute(Q.write_held, *self.held_values(hold))
        return True

    async def _write_if_mine(self, hold: Hold) -> bool:
        async with self.postgres.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(self.select, self.show_id, hold.seat)
            if row is None:
                raise RowBusy
            if not is_held_by(row, hold):
                return False
            await self.tools.critical("confirm", hold.seat, hold.client)
            await connection.execute(Q.write_sold, *self.sold_values(hold))
        return True


class RowLockNoWait(RowLock):
    name = "nowait"
    title = "FOR UPDATE NOWAIT"
    select = Q.lock_seat_nowait


class RowLockSkipLocked(RowLock):
    name = "skip_locked"
    title = "FOR UPDATE SKIP LOCKED"
    select = Q.lock_seat_skip_locked
