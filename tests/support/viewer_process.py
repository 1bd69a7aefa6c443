"""Viewers of a live map, in a process of their own: python -m tests.support.viewer_process PLAN

They come back with the last id they saw, as browsers do, and hold every event against the one before. Each is
a bare Protocol that looks for events in the bytes, so that thousands cost less than the server they watch.
"""

import asyncio
import hashlib
import random
import re
import resource
import signal
import sys
import time
from array import array
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec
import uvloop
from msgspec import Struct, field

# Every push of the server is a chunk of whole events: nothing of HTTP is ever inside one.
EVENT = re.compile(rb"event: (\w+)\nid: (\d+)\ndata: (.*)\n\n")
END = b"\n\n"
VERSIONS_PER_EPOCH = 10**9
QUIET_S, QUIET_WITHIN_S = 1.0, 10.0
CONNECTS_AT_ONCE = 64
SAMPLES_MAX = 20


class Plan(Struct):
    url: str
    shows: list[int]
    count: int
    times: str = ""  # a file for (version, when it came): what latency is computed from
    keeps_states: bool = True
    host: str = "here"  # the name in their requests
    may_jump: bool = False  # Redis is lost meanwhile: versions may leave some out, and still never go back


class Seen(Struct):
    """The combined report of all viewers."""

    events: int = 0
    snapshots: int = 0
    connects: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # a change that was left out, came twice, or went back
    wrong_count: int = 0
    versions: dict[str, int] = field(default_factory=dict)  # version -> viewers who have it now
    maps: dict[str, int] = field(default_factory=dict)  # hash of the letters -> viewers who see them


class Data(Struct):
    version: int
    changes: list[tuple[int, str]] = []
    states: str = ""


READ = msgspec.json.Decoder(Data).decode


class Watching(asyncio.Protocol):
    """One viewer's connection; a lost one is followed by the next."""

    def __init__(self, crowd: "Viewers", show_id: int) -> None:
        self.crowd = crowd
        self.show_id = show_id
        self.version = 0
        self.letters = bytearray()
        self._received = b""
        self._is_streaming = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._received, self._is_streaming = b"", False
        since = f"Last-Event-ID: {self.version}\r\n" if self.version else ""
        path = f"/api/v1/shows/{self.show_id}/seats/stream"
        self._transport.write(f"GET {path} HTTP/1.1\r\nHost: {self.crowd.plan.host}\r\n{since}\r\n".encode())

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self.crowd.again(self)

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._is_streaming:
            if data[9:12] != b"200":
                self.crowd.refused(data[9:12].decode())
                self.hang_up()
                return
            self._is_streaming = True
        now = time.monotonic()
        received = self._received + data if self._received else data
        end = received.rfind(END) + len(END)
        self._received = received[end:] if end >= len(END) else received
        for kind, version, text in EVENT.findall(received, 0, end):
            self._see(kind, int(version), text, now)
        if received.endswith(b"\r\n0\r\n\r\n"):
            self.hang_up()

    def _see(self, kind: bytes, version: int, text: bytes, now: float) -> None:
        crowd = self.crowd
        crowd.seen.events += 1
        if crowd.plan.may_jump:
            follows = version > self.version
        elif kind == b"change":
            follows = version == self.version + 1
        else:  # a whole map instead of changes, only if it was rebuilt
            follows = version // VERSIONS_PER_EPOCH > self.version // VERSIONS_PER_EPOCH
        if not follows:
            crowd.complain(f"{kind.decode()} {version} after {self.version}")
        if kind == b"snapshot":
            crowd.seen.snapshots += 1
        elif crowd.keeps_times:
            crowd.times.append(version)
            crowd.times.append(now)
        if crowd.plan.keeps_states:
            read = READ(text)
            if read.states:
                self.letters = bytearray(read.states.encode())
            for seat, letter in read.changes:
                self.letters[seat] = ord(letter)
        if not self.version:
            crowd.has_arrived()
        self.version = version


class Viewers:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        place = urlsplit(plan.url)
        assert place.hostname == "127.0.0.1", "a storm stays on this machine"
        self.address = (place.hostname, place.port or 80)
        self.seen = Seen()
        self.times = array("d")
        self.keeps_times = bool(plan.times)
        self.is_over = False
        self._arrived = 0
        self._connecting = asyncio.Semaphore(CONNECTS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        shows = plan.shows
        self.watching = [Watching(self, shows[i % len(shows)]) for i in range(plan.count)]

    async def run(self, over: asyncio.Event) -> Seen:
        for one in self.watching:
            self._start(one, 0.0)
        await over.wait()
        await self._quiet()
        self.is_over = True
        for one in self.watching:
            self._count(self.seen.versions, f"{one.show_id}:{one.version}")
            letters = hashlib.sha256(one.letters).hexdigest()
            self._count(self.seen.maps, f"{one.show_id}:{letters}")
            one.hang_up()
        return self.seen

    async def _quiet(self) -> None:
        """Wait for changes in flight."""
        give_up_at = time.monotonic() + QUIET_WITHIN_S
        before = -1
        while before != self.seen.events and time.monotonic() < give_up_at:
            before = self.seen.events
            await asyncio.sleep(QUIET_S)

    def again(self, one: Watching) -> None:
        if not self.is_over:
            self._start(one, random.uniform(0.05, 0.3))

    def has_arrived(self) -> None:
        self._arrived += 1
        if self._arrived == self.plan.count:
            print("arrived", flush=True)

    def refused(self, status: str) -> None:
        self._count(self.seen.refused, status)

    def complain(self, what: str) -> None:
        self.seen.wrong_count += 1
        if len(self.seen.wrong) < SAMPLES_MAX:
            self.seen.wrong.append(what)

    def _start(self, one: Watching, wait_s: float) -> None:
        task = asyncio.create_task(self._connect(one, wait_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, one: Watching, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        async with self._connecting:
            try:
                self.seen.connects += 1
                await asyncio.get_running_loop().create_connection(lambda: one, *self.address)
            except OSError:
                self.again(one)

    @staticmethod
    def _count(counts: dict[str, int], name: str) -> None:
        counts[name] = counts.get(name, 0) + 1


async def main(plan: Plan) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    viewers = Viewers(plan)
    seen = await viewers.run(over)
    if plan.times:
        write(plan.times, viewers.times)
    print(msgspec.json.encode(seen).decode(), flush=True)


def write(file: str, times: "array[float]") -> None:
    Path(file).write_bytes(times.tobytes())


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    its_plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(its_plan))
