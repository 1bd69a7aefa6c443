"""What somebody who was not fast enough is offered instead. No I/O.

Losers are most of the crowd, so the same question about the same map is answered once and remembered with it.
"""

from holdfast.holds import alternatives
from holdfast.seatmap import Snapshot

REMEMBERED_MAX = 5_000  # questions about one map


def alternatives_for(snapshot: Snapshot | None, seats: tuple[int, ...]) -> list[tuple[int, ...]]:
    if snapshot is None or snapshot.free < len(seats):
        return []
    found = snapshot.alternatives.get(seats)
    if found is None:
        found = alternatives(snapshot.layout, snapshot.states, seats)
        if len(snapshot.alternatives) < REMEMBERED_MAX:
            snapshot.alternatives[seats] = found
    return found
