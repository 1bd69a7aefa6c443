"""A unique key over (show, seat): the client that inserts the row has the seat.

How it works. One INSERT … ON CONFLICT claims the seat, or takes over a claim that has lapsed. One statement
confirms it, if it is still the same claim. There is nothing between a check and a write: the key is both.

How it fails. Never twice, and a client that stands still holds up no other. But every loser is a statement in
PostgreSQL that waits for the winner's commit, so a rush on one seat is paid for by the ledger.

Right for: most shops. It is the half of Holdfast that decides for good.
"""

from lab.strategies.strategy import Hold, Q, Strategy


class UniqueKey(Strategy):
    name = "unique_key"
    title = "unique key"
    has_seat_rows = False

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        await self.tools.critical("hold", seat, client)
        done = await self.postgres.execute(Q.insert_claim, *self.held_values(hold))
        return hold if done == "INSERT 0 1" else None

    async def confirm(self, hold: Hold) -> bool:
        await self.tools.critical("confirm", hold.seat, hold.client)
        return await self.postgres.execute(Q.confirm_claim, *self.sold_values(hold)) == "INSERT 0 1"

    async def release(self, hold: Hold) -> None:
        await self.postgres.execute(Q.release_claim, self.show_id, hold.seat, hold.hold_id)
