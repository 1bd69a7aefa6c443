"""The simulated city: riders arrive, phones answer, cars move; each step ends with a frame for the map."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec

from examples.dispatch.cars import CarState, Fleet
from examples.dispatch.city import Cell, City, Point, Trip
from examples.dispatch.history import History
from examples.dispatch.ledger import CityRide, Ledger, OpenOffer
from examples.dispatch.phones import Phones
from examples.dispatch.rules import Rules

STEP_S = 0.2
FIGURES_EVERY = 5  # steps
SPEEDS = (1, 2, 4, 8)
POINTS_PER_KM = 100  # positions are sent in steps of 10 m, as whole numbers
HOT_SPOTS = 4  # half of the riders start near one of these
TRIP_CELLS = range(3, 9)


@dataclass(frozen=True)
class Demand:
    """Where riders are, and how many arrive in a second of simulated time."""

    city: City
    rides_per_s: float
    dice: random.Random

    def draw(self, seconds: float) -> list[Trip]:
        """The number is drawn so that its mean is right, however short the time is."""
        expected = self.rides_per_s * seconds
        count = int(expected) + (self.dice.random() < expected % 1)
        return [self._trip() for _ in range(count)]

    def _trip(self) -> Trip:
        pickup = self._pickup()
        rings = [ring for steps in TRIP_CELLS if (ring := self.city.ring(pickup, steps))]
        return Trip(pickup, self.dice.choice(self.dice.choice(rings)))

    def _pickup(self) -> Cell:
        if self.dice.random() < 0.5:
            return self.dice.choice(self.city.cells)
        spot = self.city.cells[self.dice.randrange(HOT_SPOTS) * len(self.city.cells) // HOT_SPOTS]
        return self.dice.choice(self.city.ring(spot, self.dice.randrange(3)) or (spot,))


class Frame(msgspec.Struct, frozen=True):
    """All that the map shows at one moment. Positions are x, y in units of 10 m from the centre."""

    step: int
    speed: float
    paused: bool
    cars: list[int]  # x, y, state of each driver, one after the other
    waiting: list[tuple[int, int, int]]  # x, y, seconds waited
    offers: list[tuple[int, int, int, float]]  # driver, x, y of the rider, share of the time that is left
    rides: list[tuple[int, int, int, int, int]]  # driver, x, y of the rider, x, y of the goal
    figures: dict[str, float]
    health: dict[str, str]
    feed: list[str]


@dataclass
class Simulation:
    ledger: Ledger
    fleet: Fleet
    phones: Phones
    demand: Demand
    rules: Rules
    speed: float = 1.0
    is_paused: bool = False
    health: dict[str, str] = field(default_factory=dict)  # of the processes, set by their starter
    history: History = field(init=False)
    figures: dict[str, float] = field(default_factory=dict)
    frame: bytes = b""
    _steps: int = 0
    _stepped: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.history = History(self.ledger)

    async def run(self) -> None:
        last = time.monotonic()
        while True:
            now = time.monotonic()
            await self.step(0.0 if self.is_paused else (now - last) * self.speed)
            last = now
            await asyncio.sleep(max(0.0, STEP_S - (time.monotonic() - now)))

    async def step(self, seconds: float) -> None:
        """`seconds` of simulated time. When it is 0, riders and cars stand still; offers run out all the
        same, because the clocks of the engines do not stop."""
        offers = await self.phones.step()
        rides = await self.ledger.read_city()
        # Some were accepted since they were read: their drivers must not be shown with an offer and a ride.
        waiting = {ride.ride_id for ride in rides if ride.driver_id is None}
        offers = [offer for offer in offers if offer.ride_id in waiting]
        self._show_assignments(rides)
        self.fleet.mark_offered(offer.driver_id for offer in offers)
        await self._move(seconds)
        if trips := self.demand.draw(seconds):
            await self.ledger.request_rides(trips, patience_s=self.rules.patience_s / self.speed)
        if self._steps % FIGURES_EVERY == 0:
            await self._measure(offers, rides)
        await self._publish(offers, rides)

    async def set_pace(self, speed: float | None, *, is_paused: bool | None) -> None:
        """None: as before."""
        self.is_paused = self.is_paused if is_paused is None else is_paused
        if speed is not None:
            self.speed = speed
            await self.ledger.set_speed(speed)

    async def frames(self) -> AsyncIterator[bytes]:
        """The newest frame after each step. A slow reader gets fewer frames, not older ones."""
        while True:
            async with self._stepped:
                await self._stepped.wait()
            yield self.frame

    def _show_assignments(self, rides: list[CityRide]) -> None:
        for ride in rides:
            if ride.driver_id is not None and self.fleet.cars[ride.driver_id].ride_id != ride.ride_id:
                self.fleet.assign(ride.driver_id, ride.ride_id, ride.trip)

    async def _move(self, seconds: float) -> None:
        before = {car.driver_id: (car.cell, car.is_online) for car in self.fleet.cars}
        arrived = self.fleet.step(seconds)
        after = {car.driver_id: (car.cell, car.is_online) for car in self.fleet.cars}
        self.phones.offline = {number for number, (_, is_online) in after.items() if not is_online}
        if changed := {number: now for number, now in after.items() if before[number] != now}:
            await self.ledger.report_drivers(changed)
        if arrived:
            await self.ledger.complete_rides(arrived)

    async def _measure(self, offers: list[OpenOffer], rides: list[CityRide]) -> None:
        await self.history.read()
        states = [car.state for car in self.fleet.cars]
        self.figures = {
            **await self.ledger.read_figures(),
            "waiting": sum(ride.driver_id is None for ride in rides),
            "free": states.count(CarState.FREE),
            "online": len(states) - states.count(CarState.OFFLINE),
            "offers": len(offers),
            "riding": sum(ride.driver_id is not None for ride in rides),
            "checked": self.history.oracle.checked,
            "violations": len(self.history.oracle.violations),
            **{f"total_{name}": count for name, count in self.history.totals.items()},
        }

    async def _publish(self, offers: list[OpenOffer], rides: list[CityRide]) -> None:
        self._steps += 1
        pickups = {ride.ride_id: self._place(ride.trip.pickup) for ride in rides}
        frame = Frame(
            step=self._steps,
            speed=self.speed,
            paused=self.is_paused,
            cars=self._cars(),
            waiting=[(*pickups[ride.ride_id], int(ride.age_s)) for ride in rides if ride.driver_id is None],
            offers=[
                (offer.driver_id, *pickups[offer.ride_id], round(offer.left_s / offer.whole_s, 2))
                for offer in offers
            ],
            rides=[
                (ride.driver_id, *pickups[ride.ride_id], *self._place(ride.trip.dropoff))
                for ride in rides
                if ride.driver_id is not None
            ],
            figures=self.figures,
            health=self.health,
            feed=list(self.history.feed),
        )
        self.frame = msgspec.json.encode(frame)
        async with self._stepped:
            self._stepped.notify_all()

    def _cars(self) -> list[int]:
        flat: list[int] = []
        for car in self.fleet.cars:
            flat += [*to_units(car.point(self.fleet.city)), car.state.value]
        return flat

    def _place(self, cell: Cell) -> tuple[int, int]:
        return to_units(self.fleet.city.point(cell))


def to_units(point: Point) -> tuple[int, int]:
    x, y = point
    return round(x * POINTS_PER_KM), round(y * POINTS_PER_KM)
