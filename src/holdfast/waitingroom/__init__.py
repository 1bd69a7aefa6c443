"""Waiting rooms: a queue with a verifiable draw before the seats of a show (R27)."""

from holdfast.waitingroom.draw import DrawMismatch, DrawRecord, Permutation, verify_draw
from holdfast.waitingroom.editor import RoomEditor, RoomPage
from holdfast.waitingroom.errors import REFUSED_PASSES, NoQueue, NotAdmitted
from holdfast.waitingroom.guard import PASS_LIFE_MAX_S, PASSES_MAX, SEPARATOR, AdmissionGuard
from holdfast.waitingroom.place import (
    LIVE,
    Admission,
    Joined,
    Joiner,
    LeftWaiting,
    Place,
    PlaceState,
    WaitRange,
    WayIn,
)
from holdfast.waitingroom.room import GUARDING, JOINABLE, RoomSettings, RoomState, RoomStatus
from holdfast.waitingroom.store import WaitingRooms

__all__ = [
    "GUARDING",
    "JOINABLE",
    "LIVE",
    "PASSES_MAX",
    "PASS_LIFE_MAX_S",
    "REFUSED_PASSES",
    "SEPARATOR",
    "Admission",
    "AdmissionGuard",
    "DrawMismatch",
    "DrawRecord",
    "Joined",
    "Joiner",
    "LeftWaiting",
    "NoQueue",
    "NotAdmitted",
    "Permutation",
    "Place",
    "PlaceState",
    "RoomEditor",
    "RoomPage",
    "RoomSettings",
    "RoomState",
    "RoomStatus",
    "WaitRange",
    "WaitingRooms",
    "WayIn",
    "verify_draw",
]
