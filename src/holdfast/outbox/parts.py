"""A group's facts divided by show, so that several processes share its work. No I/O.

    facts of all shows ─┬─ show % 3 == 0 ──► part 1   read by a process of machine A
                        ├─ show % 3 == 1 ──► part 2   machine B
                        └─ show % 3 == 2 ──► part 3   machine A

A part has a checkpoint and a reader of its own. Facts of one show are in one part, so their order stays.
"""

from collections.abc import Callable
from dataclasses import dataclass

PATIENCE_S = 0.3  # for each part that a process has: longer than the pause between two looks of another one
SEEN_S = 2.0  # a part that was not seen to be free for this long was not free
OFFER_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Part:
    group: str
    number: int = 0
    of: int = 1

    @property
    def row(self) -> str:
        """Its name in the ledger. The first one has that of the group: its row is always there."""
        return f"{self.group}:{self.number + 1}/{self.of}" if self.number else self.group

    def has(self, show_id: int) -> bool:
        return show_id % self.of == self.number


def parts_of(group: str, count: int) -> list[Part]:
    return [Part(group, number, count) for number in range(count)]


class Share:
    """The parts of a group that this process reads; processes end up with about as many each.

    A process with many parts waits longer before it takes another one, and offers one from time to time: one
    with fewer takes it, otherwise it is taken back. A new machine gets its share without a list of machines.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._held: set[Part] = set()
        self._seen_free: dict[Part, tuple[float, float]] = {}  # since when, and last
        self._offered_at = monotonic()

    def may_take(self, part: Part) -> bool:
        """Of one that is free."""
        if part in self._held:
            return True
        now = self._monotonic()
        since, last = self._seen_free.get(part, (now, now))
        if now > last + SEEN_S:  # another process had it in between
            since = now
        self._seen_free[part] = since, now
        return now >= since + PATIENCE_S * len(self._held)

    def note(self, part: Part, *, is_held: bool) -> None:
        (self._held.add if is_held else self._held.discard)(part)

    def should_offer(self, part: Part) -> bool:
        """Whether to give it back now."""
        if len(self._held) < 2 or self._monotonic() < self._offered_at + OFFER_EVERY_S:
            return False
        self._offered_at = self._monotonic()
        self._held.discard(part)
        return True
