"""What a consumer declares. No I/O; relay.py runs it. How to write one: docs/consumers.md."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.outbox.fact import KINDS, Fact
from holdfast.outbox.parts import Part

FIRST_PAUSE_S = 0.5
PAUSE_MAX_S = 60.0
REASON_MAX = 500  # characters of an error message


def last_settled_id(settled: int, ids: Iterable[int]) -> int:
    """The last id of the unbroken run behind `settled`; `settled` itself when the next one is missing.

        ids handed out       1  2  3  4  5  6
        visible now          1  2     4  5         3 is still being written, or was rolled back
        settled              ──────┘               no reader may pass 3 before that is known

    Ids are handed out before a transaction commits, so a lower one may become visible after a higher one: a
    reader that remembers the highest id it has seen would never see it.
    """
    for id in ids:
        if id != settled + 1:
            break
        settled = id
    return settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """`call` gets every fact of these kinds at least once, those of one booking in order.

    `call_many` instead gets a whole batch in order and does all of it or nothing: few statements for many
    facts. When it fails, the facts are retried one by one to find the one that fails.

    An exception means: try again later. The fact is retried with growing pauses, and facts of the same
    booking wait behind it; other bookings go on. After `tries_max` tries it is dead until an operator
    retries it (`holdfast facts dead`).
    EngineDown does not count as a try: the batch is repeated when the engine is back.
    """

    group: str  # its permanent name in the ledger
    kinds: tuple[str, ...]  # empty: all
    call: Callable[[Fact], Awaitable[None]] | None = None
    call_many: Callable[[Sequence[Fact]], Awaitable[None]] | None = None
    from_oldest: bool = True  # a new group begins with the oldest stored fact; False: with the next one
    tries_max: int = 10
    at_once_max: int = 8  # bookings, not facts

    def __post_init__(self) -> None:
        assert set(self.kinds) <= KINDS.keys(), f"no such facts: {set(self.kinds) - KINDS.keys()}"
        assert (self.call is None) != (self.call_many is None), f"{self.group}: either call or call_many"

    def wants(self, fact: Fact) -> bool:
        return not self.kinds or fact.kind in self.kinds

    def handle(self, fact: Fact) -> Awaitable[None]:
        """Consumes one fact alone."""
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
    """One process reads a part of a group at a time; this one does, from the checkpoint on."""

    part: Part
    reader: str
    checkpoint: int
    settled: int
    last: int  # the last fact of all, settled or not
    has_parked: bool  # facts of the group that wait

    @property
    def group(self) -> str:
        return self.part.group


def pause_s(tries: int) -> float:
    """After so many tries: half a second, one, two, … a minute."""
    return min(FIRST_PAUSE_S * 2.0 ** max(0, tries - 1), PAUSE_MAX_S) if tries else 0.0


def describe_error(error: Exception) -> str:
    return repr(error)[:REASON_MAX]
