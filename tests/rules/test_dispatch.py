"""The parts of `examples/dispatch` that compute: the grid, the cars, and an oracle that can fail (R41)."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from examples.dispatch.cars import Car, CarState, Fleet
from examples.dispatch.city import City, FreeDrivers, Trip
from examples.dispatch.oracle import Entry, Oracle
from examples.dispatch.phones import Habits, Manner

CITY = City(radius=4)
START = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def history(*changes: str) -> list[Entry]:
    """Each change is "ride state", or "offer/ride/driver state", a second after the one before.

    Offers end after 10 s, the patience of riders 20 s after the start; "+30" waits so many seconds."""
    entries: list[Entry] = []
    at = START
    ends_at: dict[str, datetime] = {}
    for change in changes:
        if change.startswith("+"):
            at += timedelta(seconds=int(change))
            continue
        what, state = change.split()
        offer, *rest = what.split("/")
        ride, driver = (int(rest[0]), int(rest[1])) if rest else (int(offer), None)
        at += timedelta(seconds=1)
        entries.append(
            Entry(
                entry=len(entries) + 1,
                at=at,
                subject="offer" if rest else "ride",
                state=state,
                ride_id=ride,
                driver_id=driver,
                offer_id=offer if rest else None,
                ends_at=ends_at.setdefault(offer, at + timedelta(seconds=10)) if rest else None,
                gives_up_at=START + timedelta(seconds=20),
            )
        )
    return entries


def violations(*changes: str) -> list[str]:
    oracle = Oracle()
    oracle.check(history(*changes))
    return oracle.violations


class TestOracle:
    def test_a_ride_with_a_decline_a_lapse_and_a_driver_is_fine(self) -> None:
        assert (
            violations(
                "1 waiting",
                *("a/1/7 offered", "a/1/7 declined", "b/1/8 offered", "+10", "b/1/8 lapsed"),
                *("c/1/7 offered", "c/1/7 accepted", "1 assigned", "c/1/7 ended", "1 completed"),
                *("2 waiting", "d/2/7 offered"),
            )
            == []
        )

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ("1 waiting, 2 waiting, a/1/7 offered, b/2/7 offered", "two live offers or rides, a and b"),
            (
                "1 waiting, 2 waiting, a/1/7 offered, a/1/7 accepted, b/2/7 offered",
                "two live offers or rides",
            ),
            ("1 waiting, a/1/7 offered, b/1/8 offered", "it has two live offers"),
            ("1 waiting, a/1/7 offered, +10, a/1/7 accepted", "accepted after its end"),
            ("1 waiting, a/1/7 offered, a/1/7 lapsed", "lapsed before its end"),
            ("1 waiting, a/1/7 offered, a/1/7 declined, a/1/7 accepted", "driver 7 does not have a"),
            ("1 waiting, 1 no_driver", "before the rider's patience"),
            ("1 waiting, a/1/7 offered, +20, 1 no_driver", "given up with a live offer a"),
            ("1 waiting, 1 completed", "completed after waiting"),
            ("1 waiting, 1 assigned, 1 assigned", "assigned after assigned"),
            ("1 waiting, +20, 1 no_driver, a/1/7 offered", "made while it was no_driver"),
        ],
    )
    def test_each_rule_can_be_broken(self, changes: str, problem: str) -> None:
        found = violations(*changes.split(", "))

        assert len(found) == 1
        assert problem in found[0]

    def test_a_ride_with_two_drivers_is_found(self) -> None:
        found = violations(
            *("1 waiting", "a/1/7 offered", "a/1/7 accepted", "b/1/8 offered", "b/1/8 accepted")
        )

        assert any("drivers 7 and 8 both have it" in problem for problem in found)

    def test_a_ride_that_never_ends_is_lost(self) -> None:
        oracle = Oracle()
        oracle.check(history("1 waiting", "2 waiting", "+20", "2 no_driver"))

        assert oracle.find_lost([1, 2, 3]) == [1, 3]


class TestNearestDrivers:
    def test_drivers_come_ring_by_ring(self) -> None:
        free = FreeDrivers(CITY)
        far, near = CITY.ring(CITY.centre, 3)[0], CITY.ring(CITY.centre, 1)[0]
        free.replace([(1, far), (2, near), (3, CITY.centre)])

        assert list(free.nearest(CITY.centre, rings_max=4)) == [3, 2, 1]
        assert list(free.nearest(CITY.centre, rings_max=2)) == [3, 2]
        assert list(free.nearest(CITY.centre, rings_max=4, without={2})) == [3, 1]

    def test_a_driver_who_is_taken_is_found_again_after_the_next_look(self) -> None:
        free = FreeDrivers(CITY)
        free.replace([(1, CITY.centre)])
        free.remove(1)

        assert list(free.nearest(CITY.centre, rings_max=1)) == []

        free.replace([(1, CITY.centre)])

        assert list(free.nearest(CITY.centre, rings_max=1)) == [1]

    def test_rings_stay_in_the_city(self) -> None:
        edge = CITY.ring(CITY.centre, CITY.radius)[0]

        assert len(CITY.ring(CITY.centre, 2)) == 12
        assert len(CITY.ring(edge, 2)) < 12


class TestCars:
    def test_an_assigned_car_drives_to_the_rider_and_then_to_the_goal(self) -> None:
        trip = Trip(CITY.ring(CITY.centre, 2)[0], CITY.ring(CITY.centre, 3)[4])
        fleet = Fleet(CITY, [Car(0, CITY.centre)], Random(1))
        fleet.assign(0, 99, trip)
        seen, arrived = set(), []
        for _ in range(200):
            arrived += fleet.step(1.0)
            seen.add((fleet.cars[0].state, fleet.cars[0].cell))
            if arrived:
                break

        assert arrived == [99]
        assert (CarState.RIDING, trip.pickup) in seen
        assert fleet.cars[0].cell == trip.dropoff
        assert fleet.cars[0].state is CarState.FREE

    def test_a_paused_city_stands_still(self) -> None:
        fleet = Fleet.spread(CITY, 20, seed=1)
        fleet.step(1.0)
        before = [(car.cell, car.progress, car.state) for car in fleet.cars]
        fleet.step(0.0)

        assert [(car.cell, car.progress, car.state) for car in fleet.cars] == before


def test_a_driver_treats_an_offer_in_the_same_way_every_time() -> None:
    habits = Habits({Manner.ACCEPT: 0.5, Manner.DECLINE: 0.5})
    manners = [habits.choose(f"1.{number}") for number in range(100)]

    assert manners == [habits.choose(f"1.{number}") for number in range(100)]
    assert {manner for manner, _ in manners} == {Manner.ACCEPT, Manner.DECLINE}
