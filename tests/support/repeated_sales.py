"""Sales one after the other, what was acknowledged of them, and what of that the ledger does not have."""

import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from holdfast.bookings import from_public_id
from tests.support.box_office import Office
from tests.support.retrying_payer import Payer
from tests.support.wait import until


@dataclass
class RepeatedSales:
    """What was acknowledged to buyers, and when."""

    show: int
    held: dict[str, float] = field(default_factory=dict)
    confirmed: dict[str, float] = field(default_factory=dict)

    async def buy(self, payer: Payer) -> None:
        """Holds a seat and pays for it, again and again; every second hold stays a hold."""
        while True:
            ask = partial(payer.fan.holds, self.show, key=secrets.token_hex(8), best={"count": 1})
            held = await payer.asks(ask)
            assert held.status_code == 201, held.text
            booking = held.json()["booking_id"]
            self.held[booking] = time.monotonic()
            if len(self.held) % 2:
                answer = await payer.pays(booking)
                assert answer.status_code == 200, answer.text
                self.confirmed[booking] = time.monotonic()

    async def reach(self, count: int) -> None:
        async def enough() -> bool:
            return len(self.confirmed) >= count

        await until(enough, within_s=120)

    def longest_pause_after(self, moment: float) -> float:
        """Between two sales."""
        sold = sorted(at for at in self.confirmed.values() if at > moment)
        return max(later - sooner for sooner, later in pairwise([moment, *sold]))

    async def missing(self, stage: Office) -> list[str]:
        """What was acknowledged and is not in the ledger."""
        sql = "SELECT number, state FROM booking WHERE show_id = $1"
        rows = await stage.app.postgres.fetch(sql, self.show)
        states = {row["number"]: row["state"] for row in rows}
        found = []
        for booking in self.held:
            state = states.get(from_public_id(booking)[1])
            wanted = {"confirmed"} if booking in self.confirmed else {"held", "paying", "confirmed"}
            if state not in wanted:
                found.append(f"{booking}: {state}")
        return found
