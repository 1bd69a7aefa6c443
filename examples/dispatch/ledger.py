"""The record in PostgreSQL: rides, offers, assignments. It decides for good; Valkey only decides fast.

            make_offer            accept (before the end)          complete
    (none) ────────────► offered ────────────────────────► accepted ────────► ended
                           │ │
            decline        │ │  the end has passed
    declined ◄─────────────┘ └────────────────────► lapsed

A driver has at most one row in `offered` or `accepted`: the key `one_live_offer_or_ride_per_driver`. A ride
is `waiting` until an offer is accepted (`assigned`, then `completed`) or its rider's patience is over
(`no_driver`).
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import asyncpg

from examples.dispatch.city import Cell, Trip
from examples.dispatch.oracle import Entry
from holdfast.engines.postgres import Queries

Q = Queries("examples.dispatch")
COPIED_AT_ONCE_MAX = 200
STATEMENT_WITHIN_S = 10.0

Turn = tuple[int, int]  # of a ride, and which take of it
Answer = Literal["accepted", "declined", "lapsed"]


@dataclass(frozen=True)
class Offer:
    offer_id: str  # "ride.number": also the id of its claim
    ride_id: int
    driver_id: int


@dataclass
class WaitingRide:
    """A ride that this worker matches, for as long as it has the turn."""

    ride_id: int
    turn: int
    pickup: Cell
    tried: set[int] = field(default_factory=set)  # drivers who had an offer for this ride
    live: Offer | None = None  # left by a worker that died

    @property
    def key(self) -> Turn:
        return self.ride_id, self.turn

    @property
    def next_offer_id(self) -> str:
        """The same for every worker that has the ride now: a claim made with it is found again."""
        return f"{self.ride_id}.{len(self.tried) + 1}"


@dataclass(frozen=True)
class OpenOffer(Offer):
    """An offer on a driver's phone."""

    left_s: float
    whole_s: float


@dataclass(frozen=True)
class LiveOffer(Offer):
    """A driver with an offer or a ride."""

    is_accepted: bool
    left_s: float


@dataclass(frozen=True)
class CityRide:
    ride_id: int
    driver_id: int | None  # None: it waits
    trip: Trip
    age_s: float


@dataclass(frozen=True)
class Decision(Offer):
    """Of the ledger, to be copied into the pool of claims."""

    has_ended: bool


class TurnLost(Exception):
    """Another worker has the ride now, or it has ended: stop matching it."""


class Ledger:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool

    async def create_tables(self) -> None:
        await self.pool.execute((resources.files("examples.dispatch") / "schema.sql").read_text())

    # Riders, drivers and their phones

    async def add_drivers(self, cells: Sequence[Cell]) -> None:
        """Numbered from 0, as the units of a pool are."""
        await self.pool.execute(Q.add_drivers, range(len(cells)), cells)

    async def report_drivers(self, reports: Mapping[int, tuple[Cell, bool]]) -> None:
        """Where drivers are, and whether they are online."""
        cells, online = zip(*reports.values(), strict=True)
        await self.pool.execute(Q.report_drivers, list(reports), cells, online)

    async def request_rides(self, trips: Sequence[Trip], *, patience_s: float) -> list[int]:
        rows = await self.pool.fetch(
            Q.request_rides, [trip.pickup for trip in trips], [trip.dropoff for trip in trips], patience_s
        )
        return [row["ride_id"] for row in rows]

    async def read_open_offers(self) -> list[OpenOffer]:
        return [OpenOffer(**row) for row in await self.pool.fetch(Q.read_open_offers)]

    async def accept_offers(self, offer_ids: Iterable[str]) -> set[str]:
        """Those whose driver has the ride now. The others ended, or were answered, before."""
        return {row["offer_id"] for row in await self.pool.fetch(Q.accept_offers, list(offer_ids))}

    async def decline_offers(self, offer_ids: Iterable[str]) -> None:
        await self.pool.execute(Q.decline_offers, list(offer_ids))

    async def complete_rides(self, ride_ids: Iterable[int]) -> None:
        await self.pool.execute(Q.complete_rides, list(ride_ids))

    # Workers

    async def read_free_drivers(self) -> list[tuple[int, Cell]]:
        return [(row["driver_id"], row["cell"]) for row in await self.pool.fetch(Q.read_free_drivers)]

    async def take_rides(self, count_max: int, *, lease_s: float) -> list[WaitingRide]:
        """Rides that no living worker has; this worker's until its lease ends."""
        return [_waiting_ride(row) for row in await self.pool.fetch(Q.take_rides, count_max, lease_s)]

    async def renew_rides(self, rides: Sequence[WaitingRide], *, lease_s: float) -> set[Turn]:
        """The rides that are still this worker's."""
        ids, turns = [ride.ride_id for ride in rides], [ride.turn for ride in rides]
        rows = await self.pool.fetch(Q.renew_rides, ids, turns, lease_s)
        return {(row["ride_id"], row["turn"]) for row in rows}

    async def make_offer(
        self, ride: WaitingRide, driver_id: int, *, offer_s: float, lease_s: float
    ) -> Offer | None:
        """None: the driver is offline, or has an offer or a ride. Raises TurnLost."""
        offer = Offer(ride.next_offer_id, ride.ride_id, driver_id)
        row = await self.pool.fetchrow(
            Q.make_offer, offer.offer_id, ride.ride_id, ride.turn, driver_id, offer_s, lease_s
        )
        assert row is not None
        if not row["is_ours"]:
            raise TurnLost(ride.ride_id)
        return offer if row["is_made"] else None

    async def read_answers(self, offer_ids: Iterable[str]) -> dict[str, Answer]:
        """Of those that are not live any more; an offer whose time is over becomes `lapsed` here."""
        rows = await self.pool.fetch(Q.close_overdue_offers, list(offer_ids))
        return {row["offer_id"]: "accepted" if row["state"] == "ended" else row["state"] for row in rows}

    async def give_up(self, ride: WaitingRide) -> bool:
        """True: the rider's patience is over, and the ride has ended without a driver."""
        return await self.pool.fetchval(Q.give_up_ride, ride.ride_id, ride.turn) is not None

    async def read_live_offers(self) -> list[LiveOffer]:
        return [LiveOffer(**row) for row in await self.pool.fetch(Q.read_live_offers)]

    @asynccontextmanager
    async def decisions_to_copy(self) -> AsyncIterator[list[Decision]]:
        """Marked as copied when the block ends without an error; locked until then."""
        async with self.pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(Q.lock_assignments_to_copy, COPIED_AT_ONCE_MAX)
            yield [Decision(**row) for row in rows]
            await connection.execute(Q.mark_copied, [row["ride_id"] for row in rows])

    # The map and the oracle

    async def read_city(self) -> list[CityRide]:
        """Rides that wait or are on their way."""
        return [
            CityRide(row["ride_id"], row["driver_id"], Trip(row["pickup"], row["dropoff"]), row["age_s"])
            for row in await self.pool.fetch(Q.read_city)
        ]

    async def read_figures(self) -> dict[str, float]:
        row = await self.pool.fetchrow(Q.read_figures)
        assert row is not None
        return dict(row)

    async def read_history(self, after: int, *, settled_after_s: float, count_max: int) -> list[Entry]:
        rows = await self.pool.fetch(Q.read_history, after, settled_after_s, count_max)
        return [Entry(**row) for row in rows]

    async def read_speed(self) -> float:
        return float(await self.pool.fetchval(Q.read_pace))

    async def set_speed(self, speed: float) -> None:
        await self.pool.execute(Q.set_pace, speed)


def _waiting_ride(row: asyncpg.Record) -> WaitingRide:
    ride = WaitingRide(row["ride_id"], row["turn"], row["pickup"], set(row["tried"]))
    if row["live"] is not None:
        offer_id, driver_id = row["live"].split()
        ride.live = Offer(offer_id, ride.ride_id, int(driver_id))
    return ride


@asynccontextmanager
async def open_ledger(url: str, *, connections_max: int = 8) -> AsyncIterator[Ledger]:
    pool = await asyncpg.create_pool(
        url, min_size=1, max_size=connections_max, command_timeout=STATEMENT_WITHIN_S
    )
    try:
        yield Ledger(pool)
    finally:
        await pool.close()
