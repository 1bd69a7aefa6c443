"""A viewer of a live map, as a feed knows it: what it received, and the map it sees."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.app import App
from holdfast.engines.loop import running
from holdfast.seatmap.live import LiveMaps


class Eyes:
    def __init__(self, since: int = 0) -> None:
        self.since = since
        self.received = b""
        self.last_words: bytes | None = None

    def push(self, body: bytes) -> None:
        self.received += body

    def end(self, last: bytes) -> None:
        self.last_words = last

    @property
    def events(self) -> list[tuple[str, int]]:
        """(event, id) of each."""
        found = []
        for block in self.received.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "event" in fields:
                found.append((fields["event"], int(fields["id"])))
        return found

    @property
    def map(self) -> str:
        """The map this viewer sees. It must have received a snapshot."""
        shown = [""]
        for line in self.received.decode().splitlines():
            if line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                shown = list(data.get("states") or shown)
                for seat, letter in data.get("changes", ()):
                    shown[seat] = letter
        return "".join(shown)


async def watch(live: LiveMaps, show_id: int, since: int = 0) -> Eyes:
    eyes = Eyes(since)
    feed = await live.watch(show_id, since)
    eyes.push(live.join(feed, eyes))
    return eyes


@asynccontextmanager
async def live_maps(app: App, *, is_running: bool = False) -> AsyncIterator[LiveMaps]:
    """As a process of its own has them; its jobs run by themselves only if requested."""
    live = LiveMaps(app.seatmap, app.config)
    async with running([(0.05, live.follow), (0.05, live.look)] if is_running else []):
        yield live
    await live.close()
