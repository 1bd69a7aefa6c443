"""A full show with a waitlist: parties join, seats come free, and what the ledger and the map say of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.app import App
from holdfast.bookings import Booking
from holdfast.claim import Settlement
from holdfast.holds.jobs import SaleJobs
from holdfast.waitlist.entry import NewEntry, WaitlistEntry
from holdfast.waitlist.jobs import WaitlistJobs
from tests.support import shows as cast
from tests.support.own_engines import hold, shown
from tests.support.show_fixture import Till, an_owner


@dataclass(frozen=True)
class WaitlistHall:
    till: Till
    holders: dict[int, Booking] = field(default_factory=dict)  # by their first seat

    @property
    def app(self) -> App:
        return self.till.app

    @property
    def show(self) -> int:
        return self.till.show

    async def fill(self, *groups: Sequence[int]) -> None:
        """Each group of seats is held by a buyer of its own."""
        for seats in groups:
            self.holders[seats[0]] = await hold(self.app, self.show, an_owner(), *seats)

    async def join(self, seats: int = 1, owner: int | None = None, **wish: Any) -> WaitlistEntry:
        fields: dict[str, Any] = {"categories": (), "price_minor_max": None, "together": True}
        new = NewEntry(
            show_id=self.show,
            owner_id=owner or an_owner(),
            seats=seats,
            until=datetime.now(UTC) + timedelta(hours=1),
            **{**fields, **wish},
        )
        joined = await self.app.waitlists.store.add(new)
        if joined.is_first:
            await self.app.seatmap.rebuild(self.show, "test")
        return joined.entry

    async def lapse(self, booking: Booking) -> None:
        """Its time passes in both engines, and a worker closes it."""
        await self.till.lapse(booking.number)
        await self.app.holds.update_map(self.show, Settlement("lapse", booking.claim))
        await self.sweep()

    async def sweep(self) -> None:
        app = self.app
        jobs = SaleJobs(app.bookings, app.claims, app.seatmap, app.redis, app.config)
        while await jobs.sweep():
            pass

    async def step(self) -> int:
        return await self.app.waitlists.steps.run(self.show)

    async def poll(self) -> int:
        app = self.app
        return await WaitlistJobs(app.postgres, app.waitlists.steps, app.config.waitlist_idle_s).poll()

    async def reserved(self) -> list[int]:
        """Seats whose key has no booking."""
        return sorted(seat for seat, number in (await self.till.taken()).items() if number == 0)

    async def offer_to(self, entry: WaitlistEntry) -> Booking | None:
        return await self.app.waitlists.store.offer_of(entry)

    async def offered_seats(self, entry: WaitlistEntry) -> tuple[int, ...] | None:
        offer = await self.offer_to(entry)
        return offer.seats if offer else None

    async def state_of(self, entry: WaitlistEntry) -> str:
        state = await self.till.postgres.fetchval(
            "SELECT state FROM waitlist_entry WHERE show_id = $1 AND number = $2", self.show, entry.number
        )
        return str(state)

    async def shown(self) -> str:
        return await shown(self.app, self.show)

    async def age_reservations(self, seconds: int) -> None:
        await self.till.postgres.execute(
            "UPDATE reserved_seat SET since = since - $2 * interval '1 s' WHERE show_id = $1",
            self.show,
            seconds,
        )


async def a_hall(app: App, seats: int = 10, **terms: Any) -> WaitlistHall:
    return WaitlistHall(Till(app, await cast.a_show(app, seats, **terms)))
