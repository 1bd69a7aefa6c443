"""What every viewer sees (R6, R7)."""

from holdfast.seatmap.snapshot import Snapshot
from holdfast.seatmap.store import SeatMap

__all__ = ["SeatMap", "Snapshot"]
