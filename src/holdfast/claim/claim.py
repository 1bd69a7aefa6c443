"""What is asked of a pool, and what it answers. No I/O.

A claim is N units of a pool that are one owner's for a time. It is then committed, by a durable store that
has the last word, or let go. The claim names itself in full (id, owner, units), so that whoever is late can
only ever free what is still theirs: that, and the number the durable store gave it, are the fence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct


class Claim(Struct, frozen=True):
    claim_id: str
    owner: int
    units: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.claim_id}|{self.owner}|{','.join(map(str, self.units))}"

    @classmethod
    def parse(cls, text: str) -> "Claim":
        claim_id, owner, units = text.split("|")
        return cls(claim_id, int(owner), tuple(map(int, units.split(","))))


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """These units; or, if there are none, any `count` between `first` and `end`."""

    claim_id: str  # the same id gives the same claim
    owner: int
    life_ms: int
    limit: int  # units this owner may have in the pool
    units: tuple[int, ...] = ()
    first: int = 0
    end: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    claim: Claim
    epoch: int  # of the map it was claimed in


@dataclass(frozen=True, slots=True)
class UnitsTaken:
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LimitReached:
    has: int


@dataclass(frozen=True, slots=True)
class NotEnoughUnits:
    free: int


@dataclass(frozen=True, slots=True)
class PoolClosed:
    """The pool is not open at this moment."""


@dataclass(frozen=True, slots=True)
class MapMissing:
    """The map is missing, or was written for another server: build it from the durable store first."""


ClaimOutcome = Claimed | UnitsTaken | LimitReached | NotEnoughUnits | PoolClosed | MapMissing


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of one claim; `what` is a word of settle.lua."""

    what: str
    claim: Claim
    ms: int = 0


@dataclass(frozen=True, slots=True)
class PoolMap:
    epoch: int
    version: int
    units: bytes
    claims: Mapping[str, float] | None = None  # claim -> its end in ms


@dataclass(frozen=True, slots=True)
class Blueprint:
    """All a map is built from: durations, never instants, because the engines' clocks differ."""

    epoch: int
    units: bytes
    opens_in_ms: int
    closes_in_ms: int
    claims: Sequence[tuple[str, int]]  # claim, what it has left; negative: it does not end
    owners: Mapping[str, int | str]
    fields: Mapping[str, bytes]  # kept beside the map, for the scripts of the pool's owner
