"""Who wants to hear of what. No I/O; worker.py does the hearing. How to write one: docs/consumers.md."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from holdfast.outbox.fact import KINDS, Fact

FIRST_PAUSE_S = 0.5
PAUSE_MAX_S = 60.0
REASON_MAX = 500  # letters of what went wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """`call` hears every fact of these kinds at least once, those of one booking in order.

    `call_many` instead of it hears all there are in one go, in order, and does all of it or nothing: few
    statements for many facts. When it fails they are told one by one, to find out which it was.

    An exception means: not now. The fact is tried again, later and later, and those of the same booking wait
    behind it; everybody else's go on. After `tries_max` it is dead: a person looks (`holdfast facts dead`).
    EngineDown is nobody's fault: it is waited out and not counted.
    """

    group: str  # its name in the ledger, for ever
    kinds: tuple[str, ...]  # empty: all
    call: Callable[[Fact], Awaitable[None]] | None = None
    call_many: Callable[[Sequence[Fact]], Awaitable[None]] | None = None
    from_oldest: bool = True  # a new group begins with the oldest fact kept; False: with the next one
    tries_max: int = 10
    at_once_max: int = 8  # bookings, not facts

    def __post_init__(self) -> None:
        assert set(self.kinds) <= KINDS.keys(), f"no such facts: {set(self.kinds) - KINDS.keys()}"
        assert (self.call is None) != (self.call_many is None), f"{self.group}: either call or call_many"

    def wants(self, fact: Fact) -> bool:
        return not self.kinds or fact.kind in self.kinds

    def tell(self, fact: Fact) -> Awaitable[None]:
        """One of them alone."""
        if self.call_many is not None:
            return self.call_many([fact])
        assert self.call is not None
        return self.call(fact)


@dataclass(frozen=True, slots=True)
class Parked:
    """A fact that has to wait; `tries` is 0 when it waits for another of its booking."""

    fact: Fact
    tries: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReaderTurn:
    """One process reads for a group at a time; this one does, from the checkpoint on."""

    group: str
    reader: str
    checkpoint: int
    settled: int
    has_parked: bool  # facts that wait


def pause_s(tries: int) -> float:
    """After so many tries: half a second, one, two, … a minute."""
    return min(FIRST_PAUSE_S * 2.0 ** max(0, tries - 1), PAUSE_MAX_S) if tries else 0.0


def describe_error(error: Exception) -> str:
    return repr(error)[:REASON_MAX]
