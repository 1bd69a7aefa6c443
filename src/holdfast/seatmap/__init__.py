"""The seat map that viewers see: snapshots, live changes, and the rebuild from PostgreSQL (R6–R8, R19)."""

from holdfast.seatmap.errors import TooManyStreams, TooManyViewers
from holdfast.seatmap.live import LiveMaps
from holdfast.seatmap.snapshot import Snapshot
from holdfast.seatmap.store import SeatMap

__all__ = ["LiveMaps", "SeatMap", "Snapshot", "TooManyStreams", "TooManyViewers"]
