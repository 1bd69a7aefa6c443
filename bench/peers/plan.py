"""What a crowd of buyers is to do, and what it reports: JSON between the bench and its load generator."""

from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    DONE = "done"
    TAKEN = "taken"  # another buyer has the seats
    BUSY = "busy"  # the server asks to try again


class Hall(Struct, frozen=True):
    """One show of Holdfast or one event of a peer, with the same rows of seats."""

    event: str  # its id or slug
    item: str = ""  # the product that is sold for a seat; Holdfast needs none


class Plan(Struct, frozen=True):
    url: str
    journey: str  # a key of bench.peers.crowd.JOURNEYS
    connections: int
    seconds: float  # no journey starts after this
    halls: list[Hall]
    pairs: int = 100  # of adjacent seats per hall
    pairs_per_row: int = 5
    wanted_by: int = 1  # buyers per pair of seats; from 2 on in a random order
    secrets: list[str] = []  # access tokens of the buyers in turn
    facts: dict[str, str] = {}  # what else the journey needs


class Place(Struct, frozen=True):
    """Two adjacent seats that a buyer wants, and the buyer's number."""

    hall: Hall
    seats: list[str]
    number: int


class SeatCount(Struct, frozen=True):
    """What the database of a system says about the halls of a run."""

    taken: int  # seats with an owner
    twice: int  # those with several
    bought: int  # those of a paid order


class Report(Struct, frozen=True):
    outcomes: dict[str, int]
    seconds: float  # until the last journey ended
    sold_s: float  # until the last successful journey ended
    p50_ms: float  # of a whole journey that succeeded
    p99_ms: float
    client_cores: float  # CPU time of the load generator over the seconds
    errors: list[str]  # the first few

    @property
    def done(self) -> int:
        return self.outcomes.get(Outcome.DONE, 0)

    @property
    def per_second(self) -> float:
        return self.done / self.sold_s if self.sold_s else 0.0
