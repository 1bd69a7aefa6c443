"""A show's changes as one process has them: the map, the frames that led to it, and its viewers. No I/O (R8).

A stream of server-sent events consists of frames. Each is encoded once and is the same for every viewer:

    event: change                                    event: snapshot
    id: 3000000007                                   id: 3000000006
    data: {"version":3000000007,                     data: {"version":3000000006,"layout":"…",
           "changes":[[12,"H"],[13,"H"]]}                   "states":"AAHB…"}

The id is the version of the map after the frame; a browser that reconnects sends the last one it has seen.
Versions only grow. A viewer that returns with a version gets the frames after it, if we still have all:

    base ──► frame ──► frame ──► … ──► version
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from holdfast.bookings import VERSIONS_PER_EPOCH
from holdfast.seatmap.snapshot import Snapshot

HEARTBEAT = b":\n\n"
COMPARED_AT_ONCE = 256  # seats
FRAMES_MAX = 2000  # as many as pool.lua keeps
FRAMES_BYTES_MAX = 262_144  # per show; a viewer further behind takes a snapshot


@dataclass(frozen=True, slots=True)
class MapChange:
    """The map's next version, and the seats whose state it changes."""

    version: int
    changes: dict[int, str]  # empty: the map was rebuilt

    @property
    def frame(self) -> bytes:
        pairs = ",".join([f'[{seat},"{code}"]' for seat, code in self.changes.items()])
        data = f'{{"version":{self.version},"changes":[{pairs}]}}'
        return f"event: change\nid: {self.version}\ndata: {data}\n\n".encode()


def read_step(entry_id: bytes, changed: bytes) -> MapChange:
    """An entry of the stream that pool.lua writes: `7-0`, `12H,13H`. Of a seat named twice, the last."""
    version = int(entry_id.partition(b"-")[0])
    parts = changed.decode("ascii").split(",") if changed else ()
    return MapChange(version, {int(part[:-1]): part[-1] for part in parts})


def snapshot_frame(snapshot: Snapshot) -> bytes:
    states = snapshot.states.decode("ascii")
    data = f'{{"version":{snapshot.version},"layout":"{snapshot.layout.hash}","states":"{states}"}}'
    return f"event: snapshot\nid: {snapshot.version}\ndata: {data}\n\n".encode()


def step_between(before: bytes, after: Snapshot) -> MapChange:
    """The change from `before` to `after`; both have the same number of seats."""
    changes: dict[int, str] = {}
    for first in range(0, len(before), COMPARED_AT_ONCE):  # most parts of a stadium are equal
        old_part, new_part = (states[first : first + COMPARED_AT_ONCE] for states in (before, after.states))
        if old_part != new_part:
            pairs = enumerate(zip(old_part, new_part, strict=True), first)
            changes |= {seat: chr(new) for seat, (old, new) in pairs if old != new}
    return MapChange(after.version, changes)


def retry_frame(wait_ms: int) -> bytes:
    """After how long a viewer that lost us comes back."""
    return f"retry: {wait_ms}\n\n".encode()


def epoch_of(version: int) -> int:
    return version // VERSIONS_PER_EPOCH


def follow_on(version: int, steps: Iterable[MapChange]) -> bool:
    """Each is the one right after the one before, beginning after `version`."""
    for expected, step in enumerate(steps, version + 1):
        if step.version != expected or not step.changes:
            return False
    return True


class Viewer(Protocol):
    """A connected client, as far as a feed knows it."""

    since: int  # the version the client has; it gets nothing older

    def push(self, body: bytes) -> None: ...

    def end(self, last: bytes) -> None: ...


class Frames:
    """The last frames, in order. A version that is not among them cannot be continued from."""

    def __init__(self, version: int) -> None:
        self.base = version
        self._versions: list[int] = []
        self._frames: list[bytes] = []
        self._size = 0

    @property
    def version(self) -> int:
        return self._versions[-1] if self._versions else self.base

    def add(self, version: int, frame: bytes) -> None:
        assert version > self.version, "versions never go back"
        self._versions.append(version)
        self._frames.append(frame)
        self._size += len(frame)
        if len(self._frames) > FRAMES_MAX or self._size > FRAMES_BYTES_MAX:
            self._forget()

    def put_before(self, steps: Sequence[MapChange]) -> None:
        """Steps from before we watched, as far as they lead up to our first one without a gap."""
        earlier: list[MapChange] = []
        for step in reversed(steps):
            if step.version > self.base:
                continue
            if step.version != self.base - len(earlier) or not step.changes:
                break
            earlier.append(step)
        if earlier:
            earlier.reverse()
            self._versions[:0] = [step.version for step in earlier]
            self._frames[:0] = frames = [step.frame for step in earlier]
            self.base, self._size = earlier[0].version - 1, self._size + sum(map(len, frames))
            self._forget()

    def after(self, version: int) -> bytes | None:
        """All frames after this version; None when we do not have all of them."""
        if version == self.base:
            return b"".join(self._frames)
        at = bisect_left(self._versions, version)
        if at == len(self._versions) or self._versions[at] != version:
            return None
        return b"".join(self._frames[at + 1 :])

    def _forget(self) -> None:
        """The oldest, a quarter at a time: a list that loses its first item is moved as a whole."""
        while len(self._frames) > FRAMES_MAX or self._size > FRAMES_BYTES_MAX:
            count = max(1, len(self._frames) // 4)
            self.base = self._versions[count - 1]
            self._size -= sum(map(len, self._frames[:count]))
            del self._versions[:count], self._frames[:count]


class Feed:
    def __init__(self, snapshot: Snapshot) -> None:
        self.show_id = snapshot.show_id
        self.viewers: dict[Viewer, None] = {}  # a set that keeps its order
        self.ahead: dict[Viewer, float] = {}  # they have seen more than we have; since when they wait
        self.has_past = False  # what the stream had from before we watched has been read
        self.sent_at = self.look_at = self.left_at = 0.0  # monotonic
        self._begin(snapshot)

    def _begin(self, snapshot: Snapshot) -> None:
        self._layout = snapshot.layout
        self._states = bytearray(snapshot.states)
        self.frames = Frames(snapshot.version)
        self._changed()

    @property
    def version(self) -> int:
        return self.frames.version

    @property
    def states(self) -> bytes:
        return bytes(self._states)

    @cached_property
    def snapshot_frame(self) -> bytes:
        return snapshot_frame(Snapshot(self.show_id, self.version, self.states, self._layout))

    def _changed(self) -> None:
        self.__dict__.pop("snapshot_frame", None)

    def take(self, steps: Iterable[MapChange]) -> bytes:
        """Go these steps; the frames that tell them. Each follows the one before: the caller has looked."""
        frames: list[bytes] = []
        for step in steps:
            for seat, code in step.changes.items():
                self._states[seat] = ord(code)
            frames.append(frame := step.frame)
            self.frames.add(step.version, frame)
        self._changed()
        return b"".join(frames)

    def turn_to(self, snapshot: Snapshot) -> bytes:
        """Be this map from now on; what tells it: nothing, if it says nothing new, else a step or all of it.

        Within an epoch, seats that differ are a step. In another one the map was rebuilt, and viewers
        get all of it, whatever they had.
        """
        # Read before changes that the stream has already delivered: it would undo them.
        if snapshot.version <= self.version:
            return b""
        is_alike = len(snapshot.states) == len(self._states)
        if is_alike and epoch_of(snapshot.version) == epoch_of(self.version):
            step = step_between(self.states, snapshot)
            return self.take([step]) if step.changes else b""
        self._begin(snapshot)
        return self.snapshot_frame

    def first_frames(self, since: int) -> bytes | None:
        """Frames for a viewer at version `since`; None if that version is newer than ours."""
        # The viewer was connected to a process that is ahead of this one: an older map would go back in time.
        if since > self.version:
            return None
        continued = self.frames.after(since)
        return self.snapshot_frame if continued is None else continued
