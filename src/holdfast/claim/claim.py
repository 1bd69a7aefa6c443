"""What is asked of a pool, and what it answers. No I/O.

A claim is N units of a pool that are one owner's for a time. It is then committed, by a durable store that
has the last word, or let go. The claim names itself in full (id, owner, units), so that whoever is late can
only ever free what is still theirs: that, and the number the durable store gave it, are the fence.
"""

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
class Wish:
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
class Taken:
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OverLimit:
    has: int


@dataclass(frozen=True, slots=True)
class Few:
    free: int


@dataclass(frozen=True, slots=True)
class Shut:
    """The pool is not open at this moment."""


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """The map is missing, or was written for another server: build it from the durable store first."""


Outcome = Claimed | Taken | OverLimit | Few | Shut | Unbuilt
