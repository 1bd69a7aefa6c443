"""Live seat maps: 5 000 viewers of one web worker, twenty changes per second, none lost or late."""

import asyncio
import time

from bench.cpu import WEB, find_groups
from bench.environment import Environment, create_shows, start_environment, start_workers
from bench.errors import BenchError
from bench.figure import Figure
from bench.session import Session
from tests.support.shows import a_layout
from tests.support.watched_show import at, audience, changing, cpu_s, latencies_ms, memory_kb

VIEWERS = 5_000
CHANGES_PER_SECOND = 20
SECONDS = 10
LATE_MS = 500.0


async def measure_viewers(session: Session) -> list[Figure]:
    received = Figure("changes received by 5 000 viewers", "changes/s", "changes made, times viewers", 0.98)
    in_time = Figure("changes received within 500 ms", "changes/s", "changes received", 0.99)
    async with start_environment() as env:
        (show, *_) = await create_shows(env, a_layout(200), 1)
        async with start_workers(env, 1) as url:
            async for attempt in session.repeat(received, in_time):
                session.report(f"viewers, attempt {attempt + 1}")
                await _run_round(env, url, show, received, in_time)
    return [received, in_time]


async def _run_round(env: Environment, url: str, show: int, received: Figure, in_time: Figure) -> None:
    (worker,) = (await asyncio.to_thread(find_groups))[WEB]
    times, before_kb = env.folder / "times", memory_kb(worker)
    async with audience(env.folder, url, show, count=VIEWERS, times=str(times), keeps_states=False) as crowd:
        each_kb = (memory_kb(worker) - before_kb) / VIEWERS
        began, used_s = time.monotonic(), cpu_s(worker)
        sent_at = await changing(env.app, show, a_second=CHANGES_PER_SECOND, seconds=SECONDS)
        took_s = time.monotonic() - began
        cores = (cpu_s(worker) - used_s) / took_s
        seen = await crowd.go_home()
    if seen.wrong:
        raise BenchError(f"viewers saw wrong maps: {seen.wrong}")
    waits = latencies_ms(times, sent_at)
    received.add(len(waits) / took_s, VIEWERS * len(sent_at) / took_s)
    in_time.add(sum(wait <= LATE_MS for wait in waits) / took_s, len(waits) / took_s)
    received.note = f"{cores:.2f} cores, {each_kb:.1f} KB per viewer"
    in_time.note = f"p50 {at(0.5, waits):.0f} ms, p99 {at(0.99, waits):.0f} ms"
