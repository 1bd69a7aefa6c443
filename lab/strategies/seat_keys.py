"""One key per seat in Redis: the key is the hold, and PostgreSQL only stores sales.

How it works. SET seat:7:12 hold NX PX ttl. One client gets OK, all others nil within a millisecond; the time
to live is the end of the hold, without any timer. To confirm, the client compares the key with its hold,
writes the sale, and removes the end of the key. One variant inserts the sale under a unique key.

How it fails. The hold is in one place only. A Redis that restarts, is flushed, or fails over to a replica
that is behind has no hold any more: other clients get the seats of buyers who are paying, and sold seats look
free. Without the key in PostgreSQL a seat is sold twice. With it, the second sale is refused: that buyer had
a "yes", has paid, and gets nothing.

Right for: holds that may be lost, if the ledger has a unique key and there is a refund for every refusal.
"""

from holdfast.engines.redis import Script
from lab.strategies.strategy import Hold, Q, Strategy, Tools

RELEASE, SELL = Script("lab.strategies", "release"), Script("lab.strategies", "sell")


class SeatKeys(Strategy):
    name = "seat_keys"
    title = "key per seat in Redis"
    uses_redis = True
    has_seat_rows = False

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._release = tools.redis.register_script(RELEASE.source)
        self._sell = tools.redis.register_script(SELL.source)

    def key(self, seat: int) -> str:
        return f"seat:{self.show_id}:{seat}"

    async def hold(self, seat: int, client: int) -> Hold | None:
        hold = Hold(seat, client)
        await self.tools.critical("hold", seat, client)
        is_mine = await self.tools.redis.set(self.key(seat), hold.hold_id, nx=True, px=self.times.hold_ttl_ms)
        return hold if is_mine else None

    async def confirm(self, hold: Hold) -> bool:
        if await self.tools.redis.get(self.key(hold.seat)) != hold.hold_id.encode():
            return False
        await self.tools.critical("confirm", hold.seat, hold.client)
        if not await self.write_sold(hold):
            return False
        await self._sell(keys=(self.key(hold.seat),), args=(hold.hold_id,))
        return True

    async def release(self, hold: Hold) -> None:
        await self._release(keys=(self.key(hold.seat),), args=(hold.hold_id,))

    async def write_sold(self, hold: Hold) -> bool:
        await self.postgres.execute(Q.insert_sale, *self.sold_values(hold))
        return True


class SeatKeysWithUniqueKey(SeatKeys):
    name = "seat_keys_unique"
    title = "key per seat, unique key"

    async def write_sold(self, hold: Hold) -> bool:
        return await self.postgres.execute(Q.insert_sale_once, *self.sold_values(hold)) == "INSERT 0 1"
