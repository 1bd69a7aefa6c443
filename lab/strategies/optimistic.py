"""Optimistic: read the row with its version, write only if the version is still the same.

How it works. No lock is held between the read and the write. The UPDATE names the version that was read; if
another client has written since, it changes nothing, and the client reads again.

How it fails. Never twice: the check and the write are one statement. Under contention most work is thrown
away: of a thousand clients that read version 7, one writes version 8, and 999 have to look again.

Right for: rows that few clients want at the same time; forms that people edit for minutes.
"""

from lab.strategies.strategy import Hold, Q, Strategy, is_free, is_held_by

TRIES_MAX = 5


class Optimistic(Strategy):
    name = "optimistic"
    title = "version column"

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        for _ in range(TRIES_MAX):
            row = await self.postgres.fetchrow(Q.read_seat, self.show_id, seat)
            if row is None or not is_free(row):
                return None
            await self.tools.critical("hold", seat, client)
            values = self.held_values(hold)
            if await self.postgres.execute(Q.write_held_version, *values, row["version"]) == "UPDATE 1":
                return hold
            self.tools.retries += 1
        return None

    async def confirm(self, hold: Hold) -> bool:
        for _ in range(TRIES_MAX):
            row = await self.postgres.fetchrow(Q.read_seat, self.show_id, hold.seat)
            if row is None or not is_held_by(row, hold):
                return False
            await self.tools.critical("confirm", hold.seat, hold.client)
            values = self.sold_values(hold)
            if await self.postgres.execute(Q.write_sold_version, *values, row["version"]) == "INSERT 0 1":
                return True
            self.tools.retries += 1
        return False
