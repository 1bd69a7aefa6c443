"""What is asked of the hold path, and what it answers. No I/O (R9–R14)."""

import hashlib

from msgspec import Struct

from holdfast.catalogue import OrphanRule
from holdfast.layouts import Layout, Prefer


class Seats(Struct, frozen=True, gc=False):
    """These seats, by number, in ascending order."""

    seats: tuple[int, ...]
    orphan_rule: OrphanRule
    runs: tuple[int, ...]  # start, length, … of the runs they are in; empty if nobody will look


class Places(Struct, frozen=True, gc=False):
    """Any `count` places of a standing area."""

    first: int
    end: int
    count: int


class Best(Struct, frozen=True, gc=False):
    count: int
    category: int | None
    prefer: Prefer
    accessible: bool
    together: bool


What = Seats | Places | Best


class Ask(Struct, frozen=True, gc=False):
    show_id: int
    owner_id: int
    claim_id: str  # the same id gives the same hold
    life_ms: int
    limit: int  # seats this owner may have in this show
    what: What


class Held(Struct, frozen=True, gc=False):
    seats: tuple[int, ...]
    epoch: int
    better: tuple[int, ...] | None  # what would not have left a single seat
    together: bool
    leaves_single: bool = False


class Again(Struct, frozen=True, gc=False):
    """This id holds these seats already."""

    seats: tuple[int, ...]
    epoch: int


class Taken(Struct, frozen=True, gc=False):
    seats: tuple[int, ...]


class Orphan(Struct, frozen=True, gc=False):
    better: tuple[int, ...]


class Limit(Struct, frozen=True, gc=False):
    has: int


class Few(Struct, frozen=True, gc=False):
    free: int


class Shut(Struct, frozen=True, gc=False): ...


class Unbuilt(Struct, frozen=True, gc=False): ...


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
