"""Reads the ledger's history as it grows: the oracle checks it, and the page shows the last changes."""

from collections import Counter, deque

from examples.dispatch.ledger import Ledger
from examples.dispatch.oracle import Entry, Oracle

READ_AT_ONCE_MAX = 5_000
FEED_LINES = 7
SETTLED_AFTER_S = 1.0  # entries have their final order by then: every statement is much shorter


class History:
    def __init__(self, ledger: Ledger) -> None:
        self.oracle = Oracle()
        self.totals: Counter[str] = Counter()  # state -> how often an offer or a ride got it
        self.feed: deque[str] = deque(maxlen=FEED_LINES)  # the newest first
        self._ledger = ledger
        self._last = 0

    async def read(self, *, settled_after_s: float = SETTLED_AFTER_S) -> int:
        """Read and check the new entries; how many there were."""
        entries = await self._ledger.read_history(
            self._last, settled_after_s=settled_after_s, count_max=READ_AT_ONCE_MAX
        )
        self.oracle.check(entries)
        for entry in entries:
            self.totals[entry.state] += 1
            if (line := describe(entry)) is not None:
                self.feed.appendleft(line)
        self._last = entries[-1].entry if entries else self._last
        return len(entries)


def describe(entry: Entry) -> str | None:
    """One line for people; None for the most frequent changes."""
    ride, driver = f"Ride {entry.ride_id}", f"driver {entry.driver_id}"
    match entry.subject, entry.state:
        case "offer", "accepted":
            return f"{ride}: {driver} accepted"
        case "offer", "declined":
            return f"{ride}: {driver} declined, next candidate"
        case "offer", "lapsed":
            return f"{ride}: {driver} did not answer, next candidate"
        case "ride", "no_driver":
            return f"{ride}: no driver found"
    return None
