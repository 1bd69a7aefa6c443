"""What is asked of the hold path, and what it answers. No I/O (R9–R14)."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from holdfast.catalogue import Layout, OrphanRule


class Prefer(StrEnum):
    BEST = "best"
    FRONT = "front"
    CENTRE = "centre"
    AISLE = "aisle"


@dataclass(frozen=True, slots=True)
class Seats:
    """These seats, by number, in ascending order."""

    seats: tuple[int, ...]
    orphan_rule: OrphanRule
    runs: tuple[int, ...]  # start, length, … of the runs they are in; empty if nobody will look


@dataclass(frozen=True, slots=True)
class Places:
    """Any `count` places of a standing area."""

    first: int
    end: int
    count: int


@dataclass(frozen=True, slots=True)
class Best:
    count: int
    category: int | None
    prefer: Prefer
    accessible: bool
    together: bool


What = Seats | Places | Best


@dataclass(frozen=True, slots=True)
class Ask:
    show_id: int
    owner_id: int
    claim_id: str  # the same id gives the same hold
    life_ms: int
    limit: int  # seats this owner may have in this show
    what: What


@dataclass(frozen=True, slots=True)
class Held:
    seats: tuple[int, ...]
    epoch: int
    better: tuple[int, ...] | None  # what would not have left a single seat
    together: bool
    leaves_single: bool = False


@dataclass(frozen=True, slots=True)
class Again:
    """This id holds these seats already."""

    seats: tuple[int, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class Taken:
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    better: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    has: int


@dataclass(frozen=True, slots=True)
class Few:
    free: int


@dataclass(frozen=True, slots=True)
class Shut: ...


@dataclass(frozen=True, slots=True)
class Unbuilt: ...


Outcome = Held | Again | Taken | Orphan | Limit | Few | Shut | Unbuilt


def claim_id(owner_id: int, request_id: str) -> str:
    """Short, and the same for the same request of the same owner."""
    return hashlib.blake2b(f"{owner_id} {request_id}".encode(), digest_size=8).hexdigest()


def runs_of(layout: Layout, seats: tuple[int, ...]) -> tuple[int, ...]:
    """start, length, … of the runs these seats are in, each once. Standing places are in none."""
    found: list[int] = []
    last = -1
    for seat in seats:
        if seat < last:
            continue
        run = layout.run_at(seat)
        if run is not None:
            found += (run.start, run.length)
            last = run.start + run.length
    return tuple(found)
