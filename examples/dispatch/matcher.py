"""Finds a driver for each ride: nearest first, one offer at a time, the next one on a decline or a lapse.

    nearest free driver ─► claim in Valkey ─► row in the ledger ─► offer on the phone
            ▲                  │ taken           │ refused             │
            │◄─────────────────┘                 │                     ├─ accepted ─► done
            │◄──────────── release ──────────────┘                     │
            │◄──────────── release ────────────────── declined, lapsed ┘
            └─ no candidate: pause; after the rider's patience: "no driver"

Losing a race for a driver costs a few bytes in Valkey and no statement in PostgreSQL.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from examples.dispatch.city import FreeDrivers
from examples.dispatch.drivers import DriverPool
from examples.dispatch.ledger import Answer, Ledger, Offer, WaitingRide
from examples.dispatch.rules import Rules


@dataclass
class Answers:
    """Waits for the answers to all offers of a worker, with one query for all of them."""

    ledger: Ledger
    _waiting: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)

    async def wait(self, offer: Offer) -> Answer:
        future = self._waiting.setdefault(offer.offer_id, asyncio.get_running_loop().create_future())
        try:
            return await future
        finally:
            self._waiting.pop(offer.offer_id, None)

    async def poll(self) -> None:
        if self._waiting:
            self._hand_out(await self.ledger.read_answers(self._waiting))

    def _hand_out(self, answers: dict[str, Answer]) -> None:
        for offer_id, answer in answers.items():
            future = self._waiting.get(offer_id)
            if future is not None and not future.done():
                future.set_result(answer)


@dataclass
class Matcher:
    ledger: Ledger
    drivers: DriverPool
    free: FreeDrivers
    answers: Answers
    rules: Rules
    speed: float = 1.0  # of the simulated city: offers are shorter when it runs faster

    async def match(self, ride: WaitingRide) -> None:
        """Return when the ride is assigned or given up. Raises TurnLost."""
        offer = ride.live or await self._offer_to_next(ride)
        while not await self._is_over(ride, offer):
            offer = await self._offer_to_next(ride)

    async def _is_over(self, ride: WaitingRide, offer: Offer | None) -> bool:
        if offer is None:
            is_over = await self.ledger.give_up(ride)
            if not is_over:
                await asyncio.sleep(self.rules.retry_s)
            return is_over
        if await self.answers.wait(offer) == "accepted":
            return True  # a worker copies it into the pool: worker.py
        await self.drivers.release(offer)
        return False

    async def _offer_to_next(self, ride: WaitingRide) -> Offer | None:
        """None: no driver could be claimed now."""
        for candidate in self._candidates(ride):
            driver_id = await self.drivers.claim(ride, candidate, offer_s=self._offer_s)
            # Claimed by this ride or by another one: either way, no other ride of this process need try.
            self.free.remove(candidate)
            if driver_id is None:
                continue
            # The keys of the ledger have the last word: after Valkey lost its data, two workers may have
            # claimed the same driver.
            offer = await self.ledger.make_offer(
                ride, driver_id, offer_s=self._offer_s, lease_s=self.rules.lease_s
            )
            if offer is not None:
                ride.tried.add(driver_id)
                return offer
            await self.drivers.release(Offer(ride.next_offer_id, ride.ride_id, driver_id))
        return None

    def _candidates(self, ride: WaitingRide) -> Iterable[int]:
        found = self.free.nearest(ride.pickup, rings_max=self.rules.rings_max, without=ride.tried)
        # A list: the view changes while offers are made.
        return list(islice(found, self.rules.claims_per_search_max))

    @property
    def _offer_s(self) -> float:
        return self.rules.offer_s / self.speed
