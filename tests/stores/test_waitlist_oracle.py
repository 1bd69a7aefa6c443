"""R26: over random lapses, cancellations, refunds, blocks, joins and answers, each offer is the one that the
rule demands: an oracle that shares no code with the product finds it again, step by step."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.app import App
from holdfast.bookings import Booking, BookingState
from holdfast.holds import SeatsTaken, SoldOut
from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import CategoryBody, RowBody, SectionBody
from holdfast.payments.saga import PaymentStep
from holdfast.waitlist.entry import WaitlistEntry
from tests.support import shows as cast
from tests.support.own_engines import hold
from tests.support.paid_bookings import bought, now_of, payment_request
from tests.support.show_fixture import Till, an_owner
from tests.support.waitlist_hall import WaitlistHall
from tests.support.waitlist_oracle import Oracle, OracleParty, OracleSeat

ROWS, ROW = 4, 6
PRICES = {"Front": 3000, "Back": 1500}
PARTIES, EVENTS = 8, 60


def a_two_price_layout() -> Layout:
    rows = [
        RowBody(
            label="ABCD"[at],
            seats=f"1-{ROW}",
            at=(0.0, 2.0 + at),
            align="centre",
            category="Front" if at < ROWS // 2 else "Back",
        )
        for at in range(ROWS)
    ]
    categories = [CategoryBody(name=name, colour="#0072B2") for name in PRICES]
    body = LayoutBody(
        name="Two prices",
        focal=(0.0, 0.0),
        categories=categories,
        sections=[SectionBody(name="Stalls", rows=rows)],
    )
    return Layout.build(body)


@dataclass
class Story:
    hall: WaitlistHall
    oracle: Oracle
    chance: random.Random
    holds: list[Booking] = field(default_factory=list)
    sold: list[Booking] = field(default_factory=list)
    offers: dict[int, Booking] = field(default_factory=dict)  # open ones, by party
    entries: dict[int, WaitlistEntry] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        """Every seat is held, sold or blocked, in groups of one to four."""
        app, show, seats = self.hall.app, self.hall.show, list(range(ROWS * ROW))
        while seats:
            group = [seats.pop(0) for _ in range(min(len(seats), self.chance.randint(1, 4)))]
            kind = self.chance.choice(["held", "held", "sold", "block"])
            if kind == "held":
                self.holds.append(await hold(app, show, an_owner(), *group))
            elif kind == "sold":
                self.sold.append(await bought(app, show, *group))
            else:
                await app.holds.block(show, group, "press", 1)
        for _ in range(PARTIES):
            await self.join()

    async def happen(self) -> None:
        event = self.chance.choice(
            [
                *(self.join, self.lapse, self.cancel, self.refund, self.unblock, self.miss),
                *(self.leave, self.decline, self.miss, self.pay, self.try_to_buy),
            ]
        )
        self.done.append(event.__name__)
        await event()

    async def join(self) -> None:
        wish: dict[str, Any] = {
            "seats": self.chance.randint(1, 4),
            "categories": self.chance.choice([(), (), ("Front",), ("Back",), ("Back", "Front")]),
            "price_minor_max": self.chance.choice([None, None, 1500, 2999]),
            "together": self.chance.random() < 0.6,
            "queue_position": self.chance.choice([None, None, None, len(self.entries) + 1]),
        }
        entry = await self.hall.join(**wish)
        self.entries[entry.number] = entry
        self.oracle.parties[entry.number] = OracleParty(entry.number, **wish)

    async def lapse(self) -> None:
        if self.holds:
            booking = self.holds.pop(self.chance.randrange(len(self.holds)))
            await self.hall.lapse(booking)
            self.oracle.free(booking.seats)

    async def cancel(self) -> None:
        if self.holds:
            booking = self.holds.pop(self.chance.randrange(len(self.holds)))
            await self.hall.app.holds.cancel(booking)
            self.oracle.free(booking.seats)

    async def refund(self) -> None:
        """Some of the seats, or all."""
        if self.sold:
            booking = await now_of(self.hall.app, self.sold.pop(self.chance.randrange(len(self.sold))))
            seats = tuple(self.chance.sample(booking.seats, self.chance.randint(1, len(booking.seats))))
            after, _ = await self.hall.app.refunds.cancel(booking, seats)
            self.sold += [after] if after.state is BookingState.CONFIRMED else []
            self.oracle.free(seats)

    async def unblock(self) -> None:
        for block in (await self.hall.app.bookings.blocks(self.hall.show))[:1]:
            await self.hall.app.holds.unblock(block, 1)
            self.oracle.free(block.seats)

    async def leave(self) -> None:
        waiting = [party for party in self.oracle.parties.values() if party.is_waiting]
        if waiting:
            party = self.chance.choice(waiting)
            await self.hall.app.waitlists.store.leave(self.entries[party.number])
            party.is_waiting = False

    async def decline(self) -> None:
        if self.offers:
            _, booking = self.offers.popitem()
            await self.hall.app.holds.cancel(booking)
            self.oracle.free(booking.seats)

    async def miss(self) -> None:
        if self.offers:
            _, booking = self.offers.popitem()
            await self.hall.lapse(booking)
            self.oracle.free(booking.seats)

    async def pay(self) -> None:
        if self.offers:
            _, booking = self.offers.popitem()
            started = await self.hall.app.saga_runner.pay(payment_request(booking))
            assert started.payment is not None
            assert started.payment.step is PaymentStep.PAID
            self.sold.append(await now_of(self.hall.app, booking))

    async def try_to_buy(self) -> None:
        """Another buyer never gets a reserved seat."""
        for seat in sorted(self.oracle.reserved)[:2]:
            with pytest.raises(SeatsTaken):
                await hold(self.hall.app, self.hall.show, an_owner(), seat)
        for count in (4, 2, 1):
            try:
                booking = await hold(self.hall.app, self.hall.show, an_owner(), best=count)
            except SoldOut:
                continue
            assert not set(booking.seats) & self.oracle.reserved
            self.holds.append(booking)

    async def check(self) -> None:
        """One step of the product, judged by the oracle."""
        before = set(await self._offered())
        await self.hall.step()
        made = {number: seats for number, seats in (await self._offered()).items() if number not in before}
        self.oracle.check_offers(made)
        assert await self.hall.reserved() == sorted(self.oracle.reserved)
        for number in made:
            booking = await self.hall.offer_to(self.entries[number])
            assert booking is not None
            self.offers[number] = booking
        assert await self.hall.step() == 0, "the same step again does nothing"

    async def _offered(self) -> dict[int, tuple[int, ...]]:
        rows = await self.hall.till.postgres.fetch(
            "SELECT entry, seats FROM waitlist_offer WHERE show_id = $1", self.hall.show
        )
        return {row["entry"]: tuple(row["seats"]) for row in rows}


@pytest.mark.parametrize("seed", range(4))
async def test_offers_follow_the_rule(app: App, seed: int) -> None:
    layout = a_two_price_layout()
    show = await cast.a_show(app, layout=layout, owner_seats_max=100)
    for category, price in PRICES.items():  # before the show is read for the first time
        await app.postgres.execute(
            "UPDATE price SET price_minor = $3 WHERE show_id = $1 AND category = $2", show, category, price
        )
    names = [category.name for category in layout.categories]
    hall = {
        seat: OracleSeat(row, int(place), (name := names[layout.category_of[seat]]), PRICES[name])
        for seat, (row, place) in enumerate(label.split("-") for label in layout.labels)
    }
    story = Story(WaitlistHall(Till(app, show)), Oracle(hall), random.Random(seed))
    await story.begin()

    for _ in range(EVENTS):
        await story.happen()
        await story.check()

    assert len(await story._offered()) > 5, story.done
    assert await story.hall.till.violations() == []
    await app.seatmap.snapshot(show)
    await app.bookings.mark_map_stale(show)
    states = (await app.seatmap.newest(show)).states
    taken = await story.hall.till.taken()
    assert [state != ord("A") for state in states] == [seat in taken for seat in range(len(states))]
