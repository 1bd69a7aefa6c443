"""A show's changes as one process has them: the map, the frames that led to it, and who watches. No I/O.

Versions only grow. Whoever comes back with a version gets the frames after it, if we still have them all:

    base ──► frame ──► frame ──► … ──► version
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

from holdfast.seatmap.change import MapChange, epoch_of, snapshot_frame, step_between
from holdfast.seatmap.snapshot import Snapshot

FRAMES_MAX = 2000  # as many as pool.lua keeps
FRAMES_BYTES_MAX = 262_144  # of one show; who is further behind than this takes a snapshot


class Viewer(Protocol):
    """Somebody who watches, as far as a feed knows them."""

    since: int  # the version they have; they are told nothing older

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
        self.told_at = self.look_at = self.left_at = 0.0  # monotonic
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
            for seat, letter in step.changes.items():
                self._states[seat] = ord(letter)
            frames.append(frame := step.frame)
            self.frames.add(step.version, frame)
        self._changed()
        return b"".join(frames)

    def turn_to(self, snapshot: Snapshot) -> bytes:
        """Be this map from now on; what tells it: nothing, if it says nothing new, else a step or all of it.

        Within an epoch, seats that differ are a step. In another one the map was written anew, and viewers
        get all of it, whatever they had.
        """
        if snapshot.version <= self.version:
            return b""
        is_alike = len(snapshot.states) == len(self._states)
        if is_alike and epoch_of(snapshot.version) == epoch_of(self.version):
            step = step_between(self.states, snapshot)
            return self.take([step]) if step.changes else b""
        self._begin(snapshot)
        return self.snapshot_frame

    def first_frames(self, since: int) -> bytes | None:
        """What somebody is told who has seen version `since`; None when that is more than we have seen."""
        if since > self.version:
            return None
        continued = self.frames.after(since)
        return self.snapshot_frame if continued is None else continued
