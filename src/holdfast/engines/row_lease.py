"""One worker's lease of one row, and the back-off between tries. No I/O; leases.py has the queue."""

from collections.abc import Sequence
from dataclasses import dataclass

Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's right to one row: valid while the row still has this turn."""

    key: Key
    turn: int = 0


def pause_after(tries: int, pauses_s: Sequence[float]) -> float | None:
    """Seconds until the next try after `tries` failed ones; None: that was the last."""
    return float(pauses_s[tries - 1]) if tries <= len(pauses_s) else None
