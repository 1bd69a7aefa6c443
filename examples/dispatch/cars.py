"""Cars on the grid: they roam, drive to the rider, and to where the rider wants to go. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from examples.dispatch.city import Cell, City, Point, Trip

CELLS_PER_S = 0.22  # of simulated time: a car crosses the city in minutes, not in half an hour
OFFLINE_AFTER_S = 240.0  # a free driver goes offline after this long, on average
OFFLINE_FOR_S = 40.0


class CarState(Enum):
    OFFLINE = 0
    FREE = 1
    OFFERED = 2  # has an offer on the phone
    PICKUP = 3  # on the way to the rider
    RIDING = 4


@dataclass
class Car:
    driver_id: int
    cell: Cell
    state: CarState = CarState.FREE
    route: list[Cell] = field(default_factory=list)  # cells ahead, the next one first
    progress: float = 0.0  # of the way to the next cell, 0 to 1
    ride_id: int = 0
    trip: Trip | None = None

    @property
    def is_online(self) -> bool:
        return self.state is not CarState.OFFLINE

    def advance(self, cells: float) -> None:
        self.progress += cells
        while self.route and self.progress >= 1:
            self.cell = self.route.pop(0)
            self.progress -= 1
        if not self.route:
            self.progress = 0.0

    def point(self, city: City) -> Point:
        x, y = city.point(self.cell)
        if not self.route:
            return x, y
        to_x, to_y = city.point(self.route[0])
        return x + (to_x - x) * self.progress, y + (to_y - y) * self.progress


@dataclass
class Fleet:
    """All cars; `step` moves them through some seconds of simulated time."""

    city: City
    cars: list[Car]
    dice: Random

    @classmethod
    def spread(cls, city: City, size: int, *, seed: int) -> "Fleet":
        dice = Random(seed)
        return cls(city, [Car(number, dice.choice(city.cells)) for number in range(size)], dice)

    def assign(self, driver_id: int, ride_id: int, trip: Trip) -> None:
        car = self.cars[driver_id]
        # A car that has left its cell arrives in the next one first: it cannot turn in the middle of a road.
        ahead = car.route[:1]
        car.route = ahead + self.city.path(ahead[0] if ahead else car.cell, trip.pickup)
        car.state, car.ride_id, car.trip = CarState.PICKUP, ride_id, trip

    def mark_offered(self, driver_ids: Iterable[int]) -> None:
        """These have an offer on the phone; they wait for it where they are."""
        offered = set(driver_ids)
        for car in self.cars:
            if car.state in (CarState.FREE, CarState.OFFERED):
                car.state = CarState.OFFERED if car.driver_id in offered else CarState.FREE

    def step(self, seconds: float) -> list[int]:
        """The rides that have arrived."""
        arrived = []
        for car in self.cars:
            if car.state in (CarState.OFFLINE, CarState.FREE):
                self._change_shift(car, seconds)
            if car.is_online and not car.route and car.state is CarState.FREE:
                car.route = [self.dice.choice(self.city.ring(car.cell, 1))]
            if car.is_online:
                car.advance(CELLS_PER_S * seconds)
            if car.trip is not None and not car.route:
                arrived += self._reach(car, car.trip)
        return arrived

    def _reach(self, car: Car, trip: Trip) -> list[int]:
        """At the rider: drive on. At the goal: the ride has arrived."""
        if car.state is CarState.PICKUP:
            car.state, car.route = CarState.RIDING, self.city.path(car.cell, trip.dropoff)
            return []
        car.state, car.trip = CarState.FREE, None
        return [car.ride_id]

    def _change_shift(self, car: Car, seconds: float) -> None:
        mean_s = OFFLINE_AFTER_S if car.is_online else OFFLINE_FOR_S
        if self.dice.random() < seconds / mean_s:
            car.state = CarState.OFFLINE if car.is_online else CarState.FREE
