"""A sale with every kind of move, made in the ledger step by step, and the map as it was after each step."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from holdfast.bookings import Booking
from holdfast.replay.encoding import EventKind, decode
from tests.support.show_fixture import Till, an_owner

STATES = """
SELECT seat, booking.state::text AS state
  FROM taken_seat JOIN booking USING (show_id, number)
 WHERE show_id = $1
"""
LAST_MOVE = """
SELECT (extract(epoch FROM at) * 1000000)::bigint
  FROM booking_move WHERE show_id = $1 ORDER BY id DESC LIMIT 1
"""
# A replay has milliseconds: the moves of the next step are in a later one.
NEXT_MOMENT = "SELECT pg_sleep(0.002)"
CODES = {
    "held": EventKind.HELD,
    "paying": EventKind.HELD,
    "confirmed": EventKind.BOOKED,
    "blocked": EventKind.BLOCKED,
}


async def load_states(till: Till, seats: int) -> bytes:
    """The state of every seat as the ledger has it now."""
    states = bytearray(seats)
    for row in await till.postgres.fetch(STATES, till.show):
        states[row["seat"]] = CODES[row["state"]]
    return bytes(states)


def play(events: bytes, seats: int, until_ms: float) -> bytes:
    states = bytearray(seats)
    for event in decode(events):
        if event.at_ms > until_ms:
            break
        if event.kind <= EventKind.BLOCKED:
            for seat in event.values:
                states[seat] = event.kind
    return bytes(states)


@dataclass
class SaleMaker:
    till: Till
    seats: int
    random: random.Random
    held: list[Booking] = field(default_factory=list)
    sold: list[Booking] = field(default_factory=list)
    moments: list[tuple[int, bytes]] = field(default_factory=list)  # time of the last move, states after it

    async def run(self, steps: int) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [
            *(self._hold, self._hold, self._hold, self._buy, self._cancel, self._lapse),
            *(self._merge, self._give_back, self._block, self._release),
        ]
        for kind in kinds[3:]:  # each at least once, with something to do
            await self._hold()
            await self._hold()
            await kind()
            await self._look()
        for _ in range(steps):
            await self.random.choice(kinds)()
            await self._look()

    async def _look(self) -> None:
        at_us = await self.till.postgres.fetchval(LAST_MOVE, self.till.show)
        self.moments.append((at_us, await load_states(self.till, self.seats)))
        await self.till.postgres.execute(NEXT_MOMENT)

    async def _free(self, count: int) -> list[int]:
        free = [seat for seat, state in enumerate(await load_states(self.till, self.seats)) if not state]
        return sorted(self.random.sample(free, min(count, len(free))))

    async def _hold(self) -> None:
        if seats := await self._free(self.random.randint(1, 3)):
            self.held.append(await self.till.opened(*seats, owner_id=an_owner()))

    async def _buy(self) -> None:
        if seats := await self._free(3):
            self.sold.append(await self.till.opened(*seats, price_minor=0, owner_id=an_owner()))

    async def _cancel(self) -> None:
        if self.held:
            await self.till.ledger.cancel(self._pick(self.held), 1)

    async def _lapse(self) -> None:
        if self.held:
            await self.till.lapse(self._pick(self.held).number)
            await self.till.ledger.sweep(500)

    async def _merge(self) -> None:
        """Two holds of one owner."""
        if len(seats := await self._free(4)) == 4:
            owner = an_owner()
            first, added = [await self.till.opened(*two, owner_id=owner) for two in (seats[:2], seats[2:])]
            merged = await self.till.ledger.merge(first, added, life_max_s=3600)
            assert merged is not None
            self.held.append(merged[0])

    async def _give_back(self) -> None:
        """One seat of a sold booking, or all."""
        if not self.sold:
            await self._buy()
        if self.sold:
            booking = self._pick(self.sold)
            some = booking.seats[:1] if self.random.random() < 0.7 else booking.seats
            sql = "SELECT return_seats($1, $2, $3, 1)"
            await self.till.postgres.execute(sql, self.till.show, booking.number, list(some))
            if len(some) < len(booking.seats):
                self.sold.append(await self.till.booking(booking.number))

    async def _block(self) -> None:
        if seats := await self._free(3):
            await self.till.ledger.block(self.till.show, seats, "camera", 1)

    async def _release(self) -> None:
        """One seat of a block, or all of them."""
        for block in (await self.till.ledger.blocks(self.till.show))[:1]:
            some = [block.seats[0]] if self.random.random() < 0.5 else None
            sql = "SELECT * FROM release_block($1, $2, $3, 1)"
            await self.till.postgres.execute(sql, self.till.show, block.number, some)

    def _pick(self, some: list[Booking]) -> Booking:
        return some.pop(self.random.randrange(len(some)))
