"""What happened to a map, step by step, and the bytes that tell it. No I/O (R8).

A stream of server-sent events is made of frames. Each is encoded once and is the same for every viewer:

    event: change                                    event: snapshot
    id: 3000000007                                   id: 3000000006
    data: {"version":3000000007,                     data: {"version":3000000006,"layout":"…",
           "changes":[[12,"H"],[13,"H"]]}                   "states":"AAHB…"}

Its id is the version the map has after it; a browser that reconnects sends the last one it has seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.bookings import VERSIONS_PER_EPOCH
from holdfast.seatmap.snapshot import Snapshot

HEARTBEAT = b":\n\n"


@dataclass(frozen=True, slots=True)
class MapChange:
    """The map's next version, and the seats that have another letter in it."""

    version: int
    changes: dict[int, str]  # empty: the map was written anew

    @property
    def frame(self) -> bytes:
        pairs = ",".join([f'[{seat},"{letter}"]' for seat, letter in self.changes.items()])
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
    """What a viewer of `before` must be told to see `after`; both have as many seats."""
    pairs = enumerate(zip(before, after.states, strict=True))
    return MapChange(after.version, {seat: chr(new) for seat, (old, new) in pairs if old != new})


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
