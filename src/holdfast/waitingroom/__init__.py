"""Waiting rooms: a queue with a verifiable draw before the seats of a show (R26)."""

from holdfast.waitingroom.place import LIVE, Admission, Joined, Joiner, Place, PlaceState, WaitRange
from holdfast.waitingroom.room import GUARDING, JOINABLE, RoomSettings, RoomState, RoomStatus
from holdfast.waitingroom.store import WaitingRooms

__all__ = [
    "GUARDING",
    "JOINABLE",
    "LIVE",
    "Admission",
    "Joined",
    "Joiner",
    "Place",
    "PlaceState",
    "RoomSettings",
    "RoomState",
    "RoomStatus",
    "WaitRange",
    "WaitingRooms",
]
