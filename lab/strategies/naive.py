"""Check, then write: what a shop has before it has thought about two buyers.

How it works. SELECT the seat; if it is free, UPDATE it. To confirm, see whether it is sold, and UPDATE again.

How it fails. Two clients read "free" before either of them writes. Both write, both get "yes", and both
pay: neither statement notices the other. It happens without any fault, under ordinary load.

Right for: nothing that two people can want.
"""

from lab.strategies.strategy import Hold, Q, Strategy, is_free


class Naive(Strategy):
    name = "naive"
    title = "check, then write"

    async def hold(self, seat: int, client: int) -> Hold | None:
        row = await self.postgres.fetchrow(Q.read_seat, self.show_id, seat)
        if row is None or not is_free(row):
            return None
        await self.tools.critical("hold", seat, client)
        hold = Hold(seat, client)
        await self.postgres.execute(Q.write_held, *self.held_values(hold))
        return hold

    async def confirm(self, hold: Hold) -> bool:
        row = await self.postgres.fetchrow(Q.read_seat, self.show_id, hold.seat)
        if row is None or row["state"] == "sold":
            return False
        await self.tools.critical("confirm", hold.seat, hold.client)
        await self.postgres.execute(Q.write_sold, *self.sold_values(hold))
        return True
