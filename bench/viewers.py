"""Live maps: thousands of viewers on one process, twenty changes a second; nothing is left out or late."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from bench.environment import Stage, shows, stage, workers
from bench.figure import Figure
from tests.support.shows import a_layout
from tests.support.watched_show import at, audience, changing, cpu_s, latencies_ms, memory_kb

VIEWERS = 5_000
CHANGES_A_SECOND = 20
SECONDS = 10
P99_MS_MAX = 500.0

Say = Callable[[str], None]


async def viewer_figures(rounds: int, say: Say) -> list[Figure]:
    told = Figure("changes told to 5 000 viewers", "changes/s", "changes there were, times viewers", 0.98)
    soon = Figure("changes told within 500 ms", "changes/s", "changes told", 0.99)
    async with stage() as on:
        (show, *_) = await shows(on, a_layout(200), 1)
        async with workers(on, 1) as url:
            for i in range(rounds):
                say(f"viewers, {i + 1} of {rounds}")
                await _round(on, url, show, told, soon)
    return [told, soon]


async def _round(on: Stage, url: str, show: int, told: Figure, soon: Figure) -> None:
    server, times = await asyncio.to_thread(_worker), on.folder / "times"
    before_kb = memory_kb(server)
    async with audience(on.folder, url, show, count=VIEWERS, times=str(times), keeps_states=False) as crowd:
        each_kb = (memory_kb(server) - before_kb) / VIEWERS
        began, used_s = time.monotonic(), cpu_s(server)
        asked_at = await changing(on.app, show, a_second=CHANGES_A_SECOND, seconds=SECONDS)
        took_s = time.monotonic() - began
        cores = (cpu_s(server) - used_s) / took_s
        seen = await crowd.go_home()
    assert not seen.wrong, seen.wrong
    waits = latencies_ms(times, asked_at)
    in_time = sum(wait <= P99_MS_MAX for wait in waits)
    told.add(len(waits) / took_s, VIEWERS * len(asked_at) / took_s)
    soon.add(in_time / took_s, len(waits) / took_s)
    told.note = f"{cores:.2f} cores, {each_kb:.1f} KB a viewer"
    soon.note = f"p50 {at(0.5, waits):.0f} ms, p99 {at(0.99, waits):.0f} ms"


def _worker() -> int:
    """The process id of the one web worker there is: a child of ours."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
            parent = file.with_name("stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # it ended while we looked
            continue
        if b"bench.server" in words and parent == Path("/proc/self/stat").read_text().split()[0]:
            return int(file.parent.name)
    raise AssertionError("no worker")
