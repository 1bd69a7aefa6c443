"""Requests to a pool and its outcomes. No I/O.

A claim is N units of a pool that belong to one owner for a time. The durable store then commits it, or it is
released. A claim names itself in full (id, owner, units), so that a late process can only free what is still
its own: that, and the number the durable store gave it, are the fence.

An id may end in "@party". Live claims are then counted for the party, too, so that a limit can be set for
many owners together: parties.lua.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct


class Claim(Struct, frozen=True, gc=False):
    claim_id: str
    owner: int
    units: tuple[int, ...]

    @property
    def party(self) -> str:
        """Empty: it counts for its owner alone."""
        return self.claim_id.partition("@")[2]

    def __str__(self) -> str:
        """The form in which Redis stores it."""
        return f"{self.claim_id}|{self.owner}|{','.join(map(str, self.units))}"

    @classmethod
    def parse(cls, text: str) -> "Claim":
        try:
            claim_id, owner, units = text.split("|")
            return cls(claim_id, int(owner), tuple(map(int, units.split(","))))
        except ValueError:
            raise ValueError(f"'{text}' is not a claim") from None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """These units; or, if there are none, any `count` between `first` and `end`."""

    claim_id: str  # the same id gives the same claim
    owner: int
    ttl_ms: int
    limit: int  # units that this owner may have in the pool
    units: tuple[int, ...] = ()
    first: int = 0
    end: int = 0
    count: int = 0


class Claimed(Struct, frozen=True, gc=False):
    claim: Claim
    epoch: int  # of the map it was claimed in
    fence: int = 0  # the version of the map after it: higher than that of any earlier claim on these units


class UnitsTaken(Struct, frozen=True, gc=False):
    """These of the requested units are not free."""

    units: tuple[int, ...]


class LimitReached(Struct, frozen=True, gc=False):
    """The owner would have more units than the request's limit; they have this many."""

    has: int


class NotEnoughUnits(Struct, frozen=True, gc=False):
    """Only this many units are free."""

    free: int


class PoolClosed(Struct, frozen=True, gc=False):
    """The pool is not open at this moment."""


class MapMissing(Struct, frozen=True, gc=False):
    """There is no map, or another server process wrote it: build it from the durable store first."""


# What `Pool.claim` returns: it rebuilds a missing map by itself.
PoolOutcome = Claimed | UnitsTaken | LimitReached | NotEnoughUnits | PoolClosed
ClaimOutcome = PoolOutcome | MapMissing

# release   the claim's units are free again, if the claim still exists
# lapse     the same, and it counts as a claim that ended unused
# commit    its units are committed, whether the claim still exists or not: the durable store decided
# extend    it ends in `ms`, if it still exists; 0: it does not end
# adopt     the durable store has a live row for it: written into the map, to end in `ms`; 0: it does not end
# free      its committed units are free again: the durable store has given them back
# block     its units are blocked, and count for no owner
# unblock   blocked units are free again
# drop      as release, and never reserved: the durable store never had a row for it
# reserve   these units are reserved: blocked, and the claim has no entry
# unreserve  they are free again, if they are still blocked
#
# Units of a pool whose meta has the field `reserves` are reserved when they come free: A becomes X.
Action = Literal[
    "release",
    "lapse",
    "commit",
    "extend",
    "adopt",
    "free",
    "block",
    "unblock",
    "drop",
    "reserve",
    "unreserve",
]


@dataclass(frozen=True, slots=True)
class Settlement:
    """A decision of the durable store about one claim, for the map."""

    action: Action
    claim: Claim
    ms: int = 0


# Codes of the units of a map: `snapshot.units[41] == FREE`, `snapshot.units.count(FREE)`.
FREE, CLAIMED, COMMITTED, BLOCKED = b"AHBX"


@dataclass(frozen=True, slots=True)
class PoolMap:
    epoch: int
    version: int
    units: bytes  # one byte per unit: A free, H claimed, B committed, X blocked
    claims: Mapping[str, float] | None = None  # claim -> its end in ms


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Everything a map is built from. Durations, never instants: the engines' clocks differ."""

    epoch: int
    units: bytes
    opens_in_ms: int
    closes_in_ms: int
    claims: Sequence[tuple[str, int]]  # claim, ms left; negative: it does not end
    owners: Mapping[str, int | str]
    fields: Mapping[str, bytes]  # stored beside the map, for scripts of the pool's owner
    lapses: Sequence[tuple[str, int, int, int]] = ()  # owner or @party, count, ms since the first, the last


@dataclass(frozen=True, slots=True)
class Contents:
    """What the durable store has for a pool: `load` of `Pools.open` returns it, to build the map from."""

    committed: Sequence[Claim] = ()
    live: Sequence[tuple[Claim, float]] = ()  # rows that still end by themselves, and their seconds left
    blocked: Sequence[int] = ()  # units that cannot be claimed
    fence: int = 0  # the highest it has stored, if it stores any: those of the new map are higher


@dataclass(frozen=True, slots=True)
class Change:
    """The next version of a map, and the units whose state it changes."""

    version: int
    units: Mapping[int, int]  # unit -> its new code
