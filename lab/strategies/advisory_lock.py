"""An advisory lock around check and write, as pretix does: no row is locked, but a number is.

How it works. pg_advisory_xact_lock(show, seat) gives the number to one transaction at a time, until its end.
Inside, the code may read and write as if it were alone. It works for things that have no row yet.

How it fails. Never twice, as long as every way to the seat takes the lock first: the database itself would
accept a second sale. Code that forgets the lock, or a script run by hand, is not stopped by anything. Waiting
clients occupy connections, as with row locks.

Right for: quotas and counters over many rows. Put a unique key below it where one is possible.
"""

import asyncpg

from lab.strategies.strategy import Hold, Q, Strategy, is_free, is_held_by


class AdvisoryLock(Strategy):
    name = "advisory_lock"
    title = "advisory lock"

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        try:
            async with self.postgres.acquire() as connection, connection.transaction():
                await connection.execute(Q.advisory_lock, self.show_id, seat)
                row = await connection.fetchrow(Q.read_seat, self.show_id, seat)
                if row is None or not is_free(row):
                    return None
                await self.tools.critical("hold", seat, client)
                await connection.execute(Q.write_held, *self.held_values(hold))
        except asyncpg.LockNotAvailableError:
            return None
        return hold

    async def confirm(self, hold: Hold) -> bool:
        for _ in range(1 + self.times.hold_ttl_ms // self.times.wait_ms):
            try:
                async with self.postgres.acquire() as connection, connection.transaction():
                    await connection.execute(Q.advisory_lock, self.show_id, hold.seat)
                    row = await connection.fetchrow(Q.read_seat, self.show_id, hold.seat)
                    if row is None or not is_held_by(row, hold):
                        return False
                    await self.tools.critical("confirm", hold.seat, hold.client)
                    await connection.execute(Q.write_sold, *self.sold_values(hold))
                return True
            except asyncpg.LockNotAvailableError:
                self.tools.retries += 1
        return False
