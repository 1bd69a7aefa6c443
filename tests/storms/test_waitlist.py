"""A full show with a long waitlist while seats come free, workers die and Redis forgets everything (R26).

Holds lapse, bookings are cancelled, and owners sell tickets back at face value or change their minds.
Afterwards the history is judged: no freed seat reached the public while a party waited that it fits, no party
was passed over, every offer ended, and who sold tickets back has the whole price of those seats, once. At its
whole size once with all jobs, and once without bus and notifications.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from holdfast.bookings import Booking, BookingState
from holdfast.claim import Settlement
from holdfast.engines.errors import EngineDown
from holdfast.errors import Refusal
from tests.support.box_office import Office, office, running
from tests.support.own_engines import hold
from tests.support.paid_bookings import payment_request, refunds_of
from tests.support.show_fixture import Till, an_owner
from tests.support.shows import API, Fan
from tests.support.wait import until
from tests.support.waitlist_hall import WaitlistHall
from tests.support.waitlist_oracle import Oracle, OracleParty, OracleSeat

SETTINGS: dict[str, Any] = {"waitlist_offer_s": 1, "waitlist_keep_s": 3600, "sweep_pause_ms": 100}
WITHOUT_BUS = "sale,payments"
BUYERS = 3
# With the seats that the bookings still have.
OPEN_RETURNS = """
SELECT ARRAY(SELECT unnest(r.seats) INTERSECT SELECT unnest(b.seats)) AS seats
  FROM waitlist_return AS r JOIN booking AS b USING (show_id, number)
 WHERE r.show_id = $1 AND r.ended_at IS NULL AND b.state = 'confirmed'
"""
NEVER = datetime.max.replace(tzinfo=UTC)
ENDS_WITHIN_S = 120


@dataclass(frozen=True)
class Size:
    seats: int
    parties: int
    events: int
    crashes: int


SMALL, FULL = Size(30, 30, 12, 1), Size(600, 1000, 500, 3)


@asynccontextmanager
async def an_office(only: str) -> AsyncIterator[Office]:
    async with office(work=False, **SETTINGS) as stage:
        words = ("work", "--data", str(stage.folder.path), "--json", *(("--only", only) if only else ()))
        async with running(stage.folder.path.parent / "work.log", words, SETTINGS):
            yield stage


@dataclass
class Storm:
    stage: Office
    hall: WaitlistHall
    chance: random.Random
    holds: list[Booking] = field(default_factory=list)
    paid: list[Booking] = field(default_factory=list)
    returned: list[Booking] = field(default_factory=list)  # offered to the waitlist, by their owners
    answered: set[int] = field(default_factory=set)  # offers
    refused: dict[str, int] = field(default_factory=dict)

    async def begin(self, size: Size) -> None:
        app, seats = self.stage.app, list(range(size.seats))
        while seats:
            group = [seats.pop(0) for _ in range(min(len(seats), self.chance.randint(1, 3)))]
            booking = await hold(app, self.hall.show, an_owner(), *group)
            if self.chance.random() < 0.3:
                await app.saga_runner.pay(payment_request(booking))
                self.paid.append(await self.hall.till.booking(booking.number))
            else:
                self.holds.append(booking)
        for _ in range(size.parties):
            await self.hall.join(
                self.chance.choice([1, 1, 1, 2, 2, 3, 4, 6]),
                together=self.chance.random() < 0.7,
                price_minor_max=self.chance.choice([None, None, None, 100]),  # 100: nothing is so cheap
            )

    async def happen(self) -> None:
        """A hold lapses, is released, or a paid booking is given back: at once, or once a party is found."""
        app = self.stage.app
        if self.paid and (not self.returned or self.chance.random() < 0.3):
            await self.sell_back(self.paid.pop(self.chance.randrange(len(self.paid))))
        elif self.paid and self.chance.random() < 0.3:
            booking = self.paid.pop(self.chance.randrange(len(self.paid)))
            await _try(app.refunds.cancel, booking, None)
        elif self.returned[1:] and self.chance.random() < 0.2:
            await _try(app.waitlists.returns.withdraw, self.chance.choice(self.returned[1:]))
        elif self.holds:
            booking = self.holds.pop(self.chance.randrange(len(self.holds)))
            if self.chance.random() < 0.5:
                await self.hall.till.lapse(booking.number, ago_ms=0)
                await app.holds.update_map(self.hall.show, Settlement("lapse", booking.claim))
            elif not await _try(app.holds.cancel, booking):
                self.holds.append(booking)

    async def sell_back(self, booking: Booking) -> None:
        """Some of the seats, or all. Some owners also cancel meanwhile; the first one only waits."""
        returns, count = self.stage.app.waitlists.returns, self.chance.randint(1, len(booking.seats))
        seats = tuple(sorted(self.chance.sample(booking.seats, count)))
        show = await self.stage.app.catalogue.show_on_sale(self.hall.show)
        if await _try(returns.put, booking, seats, show):
            self.returned.append(booking)
            if self.returned[1:] and self.chance.random() < 0.2:
                await _try(self.stage.app.refunds.cancel, booking, None)

    async def answer_offers(self) -> None:
        """Each offer is paid for, declined, or left to lapse."""
        app = self.stage.app
        while True:
            try:
                rows = await self._open_offers()
            except EngineDown:
                rows = []
            for row in rows:
                if row["number"] not in self.answered:
                    self.answered.add(row["number"])
                    booking = await self.hall.till.booking(row["number"])
                    choice = self.chance.random()
                    if choice < 0.5 and await _try(app.saga_runner.pay, payment_request(booking)):
                        self.paid.append(await self.hall.till.booking(row["number"]))
                    elif choice > 0.8:
                        await _try(app.holds.cancel, booking)
            await asyncio.sleep(0.05)

    async def buy(self, fan: Fan) -> None:
        """Another buyer, who takes what there is."""
        while True:
            body: dict[str, Any] = {"best": {"count": 1}}
            if self.chance.random() < 0.5:
                layout = (await self.stage.app.catalogue.show_on_sale(self.hall.show)).layout
                body = {"seats": [self.chance.choice(layout.labels)]}
            try:
                answer = await self.stage.api.post(
                    f"{API}/shows/{self.hall.show}/holds", json=body, headers=fan.headers
                )
                code = answer.json().get("code", "held")
            except (httpx2.HTTPError, ValueError, EngineDown):
                code = "no answer"
            self.refused[code] = self.refused.get(code, 0) + 1
            await asyncio.sleep(0.02)

    async def is_over(self) -> bool:
        """No offer is open, and no seat is left that fits a party: reserved, returned, or both together."""
        oracle = await self._oracle()
        oracle.reserved = set(await self.hall.reserved())
        for row in await self._fetch(OPEN_RETURNS):
            oracle.reserved |= set(row["seats"])
        waiting = [party for party in oracle.parties.values() if party.is_waiting]
        return not await self._open_offers() and not any(map(oracle.can_serve, waiting))

    async def judge(self) -> int:
        """From the tables alone; returns the number of offers."""
        oracle = await self._oracle()
        rows = await self._fetch("SELECT * FROM waitlist_entry WHERE show_id = $1 ORDER BY number")
        waits = {row["number"]: row for row in rows}
        offers = await self._fetch("SELECT * FROM waitlist_offer WHERE show_id = $1")
        assert {row["outcome"] for row in offers} <= {"taken", "declined", "lapsed"}, "an offer has not ended"
        offered_at = {row["entry"]: row["offered_at"] for row in offers}

        def waited_at(party: OracleParty, moment: Any) -> bool:
            row = waits[party.number]
            ends = min(at for at in (row["ended_at"], offered_at.get(party.number), NEVER) if at is not None)
            return bool(row["joined_at"] < moment < ends)

        for offer in offers:
            oracle.reserved = set(offer["seats"])
            rank = oracle.parties[offer["entry"]].rank
            for party in oracle.parties.values():
                if party.rank < rank and waited_at(party, offer["offered_at"]):
                    assert not oracle.can_serve(party), f"{party} was passed over by {offer}"
        for sold in await self._sold_to_others():
            oracle.reserved = set(sold["seats"])
            for party in oracle.parties.values():
                waits_in_vain = waited_at(party, sold["opened_at"]) and oracle.can_serve(party)
                assert not waits_in_vain, f"{sold} was sold while {party} waited"
        await self._judge_returns()
        return len(offers)

    async def _judge_returns(self) -> None:
        """Each seat of a booking is with its owner, or paid back once and in full."""
        for booking in self.returned:
            now = await self.hall.till.booking(booking.number)
            owned = now.seats if now.state is BookingState.CONFIRMED else ()
            refunds = await refunds_of(self.stage.app, booking)
            back = Counter(seat for refund in refunds for seat in refund.seats)
            gone = set(booking.seats) - set(owned)
            assert back == Counter(gone), f"{booking.number}: owns {owned}, refunded {refunds}"
            prices = dict(zip(booking.seats, booking.prices_minor, strict=True))
            assert sum(refund.amount_minor for refund in refunds) == sum(prices[seat] for seat in gone)
        for row in await self._fetch("SELECT * FROM waitlist_return WHERE show_id = $1"):
            assert row["selling"] == [], f"a sale has not ended: {row}"
            now = await self.hall.till.booking(row["number"])
            if row["state"] == "sold":
                assert not set(row["seats"]) & set(now.seats) or now.state is BookingState.REFUNDED

    async def return_states(self) -> Counter[str]:
        return Counter(
            row["state"] for row in await self._fetch("SELECT state FROM waitlist_return WHERE show_id = $1")
        )

    async def _sold_to_others(self) -> list[Any]:
        """Bookings of the buyers without an entry, from the moment when the first party waited."""
        return await self._fetch(
            "SELECT seats, opened_at FROM booking AS b"
            " WHERE show_id = $1 AND claim_id NOT LIKE 'offer%' AND EXISTS"
            " (SELECT FROM booking_move AS m WHERE (m.show_id, m.number) = (b.show_id, b.number)"
            "   AND m.move = 'hold'"
            "   AND m.at > (SELECT max(joined_at) FROM waitlist_entry AS e WHERE e.show_id = $1))"
        )

    async def _oracle(self) -> Oracle:
        layout = (await self.stage.app.catalogue.show_on_sale(self.hall.show)).layout
        labels = enumerate(label.split("-") for label in layout.labels)
        hall = {seat: OracleSeat(row, int(place), "Standard", 1500) for seat, (row, place) in labels}
        rows = await self._fetch("SELECT * FROM waitlist_entry WHERE show_id = $1")
        parties = {
            row["number"]: OracleParty(
                row["number"],
                row["seats"],
                tuple(row["categories"]),
                row["price_minor_max"],
                row["together"],
                row["queue_position"],
                row["state"] == "waiting",
            )
            for row in rows
        }
        return Oracle(hall, parties)

    async def _open_offers(self) -> list[Any]:
        return await self._fetch("SELECT * FROM waitlist_offer WHERE show_id = $1 AND outcome IS NULL")

    async def _fetch(self, sql: str) -> list[Any]:
        return await self.hall.till.postgres.fetch(sql, self.hall.show)


async def _try(step: Any, *args: Any) -> bool:
    """False: refused, or an engine was away; it stays as it is, and the storm goes on."""
    try:
        await step(*args)
    except (Refusal, EngineDown):
        return False
    return True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Without --full, once: tests/stores/test_waitlist.py shows that the job alone makes offers."""
    is_full = bool(metafunc.config.getoption("--full", default=False))
    jobs = {"all jobs": "", "no bus, no notifications": WITHOUT_BUS}
    chosen = jobs if is_full else {"all jobs": ""}
    metafunc.parametrize("only", chosen.values(), ids=chosen.keys())


async def test_freed_seats_go_to_the_waiting_parties(is_full: bool, only: str) -> None:
    size = FULL if is_full else SMALL
    async with an_office(only) as stage:
        show = await stage.a_show(seats=size.seats, owner_seats_max=1000)
        storm = Storm(stage, WaitlistHall(Till(stage.app, show)), random.Random(14))
        await storm.begin(size)
        tasks = [
            asyncio.create_task(storm.answer_offers()),
            *(asyncio.create_task(storm.buy(fan)) for fan in await stage.fans(BUYERS)),
        ]
        try:
            for count in range(size.events):
                await storm.happen()
                await asyncio.sleep(0.02)
                if count % (size.events // size.crashes) == size.events // (2 * size.crashes):
                    await stage.app.redis.call("FLUSHALL")
                    killed = stage.kill("work-1")
                    stage.kill("web-1")
                    await stage.back("work-1", killed, within_s=60)
            await until(storm.is_over, within_s=ENDS_WITHIN_S)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended

        offers = await storm.judge()
        waiting = sum(party.is_waiting for party in (await storm._oracle()).parties.values())
        states = await storm.return_states()
        print(f"{offers} offers, {waiting} parties still wait, other buyers: {storm.refused}, {states}")
        assert states["sold"] > 0
        assert offers > size.events // 2
        assert waiting > 0
        assert sum(count for code, count in storm.refused.items() if code != "no answer") > 20
        assert "held" not in storm.refused
        await stage.settled()
