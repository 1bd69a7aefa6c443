"""What may never happen, found in the ledger's history. No I/O.

It shares no code with the matcher and knows nothing about claims: it replays the changes of state, in their
order, and reports every one that breaks a rule.

1. A driver has at most one live offer or ride. An offer is live from `offered` to its answer or its end, an
   accepted one until `ended`.
2. A ride has at most one live offer, and at most one driver, ever.
3. An offer is accepted or declined before its end, and lapses after it.
4. A ride ends as `completed`, or as `no_driver` after its rider's patience and without a live offer.
5. At the end, every requested ride has ended (`find_lost`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class Entry:
    """A row of the history, with the end of its offer and of its rider's patience."""

    entry: int
    at: datetime
    subject: str
    state: str
    ride_id: int
    driver_id: int | None
    offer_id: str | None
    ends_at: datetime | None
    gives_up_at: datetime


@dataclass
class Oracle:
    violations: list[str] = field(default_factory=list)
    checked: int = 0
    rides: dict[int, str] = field(default_factory=dict)  # ride -> state
    _by_driver: dict[int, str] = field(default_factory=dict)  # driver -> live offer
    _by_ride: dict[int, str] = field(default_factory=dict)  # ride -> live offer
    _drivers: dict[int, int] = field(default_factory=dict)  # ride -> the driver who has it

    def check(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.checked += 1
            found = self._check_ride(entry) if entry.subject == "ride" else self._check_offer(entry)
            self.violations += [f"entry {entry.entry}, ride {entry.ride_id}: {problem}" for problem in found]

    def find_lost(self, requested: Iterable[int]) -> list[int]:
        """Rides that were requested and have not ended."""
        return [ride_id for ride_id in requested if self.rides.get(ride_id) not in ("completed", "no_driver")]

    def _check_ride(self, entry: Entry) -> Iterator[str]:
        before = self.rides.get(entry.ride_id)
        allowed = {"waiting": None, "assigned": "waiting", "completed": "assigned", "no_driver": "waiting"}
        if allowed[entry.state] != before:
            yield f"it became {entry.state} after {before}"
        if entry.state == "no_driver" and entry.at < entry.gives_up_at:
            yield "it was given up before the rider's patience was over"
        if entry.state == "no_driver" and entry.ride_id in self._by_ride:
            yield f"it was given up with a live offer {self._by_ride[entry.ride_id]}"
        self.rides[entry.ride_id] = entry.state

    def _check_offer(self, entry: Entry) -> Iterator[str]:
        driver_id, offer_id, ends_at = entry.driver_id, entry.offer_id, entry.ends_at
        assert driver_id is not None
        assert offer_id is not None
        assert ends_at is not None
        if entry.state == "offered":
            yield from self._open(entry.ride_id, driver_id, offer_id)
            return
        if self._by_driver.get(driver_id) != offer_id:
            yield f"driver {driver_id} does not have {offer_id}, which became {entry.state}"
        if entry.state == "lapsed" and entry.at < ends_at:
            yield f"{offer_id} lapsed before its end"
        if entry.state in ("accepted", "declined") and entry.at > ends_at:
            yield f"{offer_id} was {entry.state} after its end"
        if entry.state == "accepted":
            other = self._drivers.setdefault(entry.ride_id, driver_id)
            if other != driver_id:
                yield f"drivers {other} and {driver_id} both have it"
            return
        self._by_driver.pop(driver_id, None)
        self._by_ride.pop(entry.ride_id, None)

    def _open(self, ride_id: int, driver_id: int, offer_id: str) -> Iterator[str]:
        if (other := self._by_driver.get(driver_id)) is not None:
            yield f"driver {driver_id} has two live offers or rides, {other} and {offer_id}"
        if (other := self._by_ride.get(ride_id)) is not None:
            yield f"it has two live offers, {other} and {offer_id}"
        if self.rides.get(ride_id) != "waiting":
            yield f"{offer_id} was made while it was {self.rides.get(ride_id)}"
        self._by_driver[driver_id] = self._by_ride[ride_id] = offer_id
