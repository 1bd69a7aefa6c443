"""The status of a waiting room: through nginx against a file of its size, and what everyone who waits costs.

A hundred thousand people poll one resource. nginx answers them from its cache, and one request per second
reaches a web worker. The cost is the processor time of nginx and of the workers while so many requests per
second arrive as those people send, at the interval that the status tells them.
"""

import os
from dataclasses import dataclass

import httpx2

from bench.cpu import find_descendants, find_groups, read_cpu_us
from bench.environment import Environment, Q, create_shows, start_environment, start_workers
from bench.errors import require
from bench.figure import Figure
from bench.load import PageLoad
from bench.nginx import RunningNginx, start_nginx
from bench.session import Session
from holdfast.waitingroom import RoomSettings
from holdfast.waitingroom.waits import spread_polls_s
from holdfast.web.caller import Scope
from tests.support.shows import API, a_layout

PEOPLE = 100_000
CORES_US_PER_S = 2_000_000  # of two cores
SHARE_MAX = 0.10
# Polls of people whose turn comes within ten minutes: each polls ten times during the rest of it. With ten
# people called per second: 10 · 10 · ln(600 s / 20 s); the nearest follow the stream instead.
NEARER_PER_S = 340
SLICES, SLICE_S = 4, 1
LONG_S = 8


@dataclass(frozen=True)
class Line:
    env: Environment
    url: str
    nginx: RunningNginx
    path: str


async def measure_queue(session: Session) -> list[Figure]:
    cached = Figure("the status of a queue through nginx", "requests/s", "a file of that size", 0.7)
    waiting = Figure(f"{PEOPLE:,} waiting people poll the status", "% of two cores allowed", "% used", 1.0)
    async with start_environment() as env:
        (show,) = await create_shows(env, a_layout(200), 1)
        await _open_room(env, show)
        async with start_workers(env, 2) as url, start_nginx(env.folder / "nginx", url) as nginx:
            line = Line(env, url, nginx, f"{API}/shows/{show}/queue")
            async for attempt in session.repeat(cached, waiting):
                session.report(f"the status of a queue, attempt {attempt + 1}")
                cached.add(*await _alternate(line))
                session.report(f"{PEOPLE:,} people wait, attempt {attempt + 1}")
                await _wait_together(line, waiting)
    return [cached, waiting]


async def _open_room(env: Environment, show: int) -> None:
    """As after the draw, with so many people in it: only their number matters here."""
    editor = env.app.room_editor(Scope(1, is_admin=True))
    await editor.set(show, RoomSettings())
    await editor.open(show)
    await env.app.postgres.execute(Q.fill_queue, show, PEOPLE)


async def _alternate(line: Line) -> tuple[float, float]:
    """Both for a second in turn, several times, so that other load on the machine affects both."""
    async with httpx2.AsyncClient() as client:
        size = len((await client.get(line.url + line.path)).raise_for_status().content)
    rates = {line.path: 0.0, line.nginx.create_file(size): 0.0}
    for _ in range(SLICES):
        for path in rates:
            result = (await line.nginx.load_pages([path], PageLoad(seconds=SLICE_S))).expect(200)
            rates[path] += result.per_second / SLICES
    ours, theirs = rates.values()
    return ours, theirs


async def _wait_together(line: Line, figure: Figure) -> None:
    async with httpx2.AsyncClient() as client:
        status = (await client.get(line.url + line.path)).raise_for_status().json()
    interval_s = status["poll_after_s"]
    require(interval_s == spread_polls_s(PEOPLE), f"the status says {interval_s} s")
    per_second = PEOPLE / interval_s + NEARER_PER_S
    servers = _find_servers()
    before = read_cpu_us(servers)
    load = PageLoad(connections=200, seconds=LONG_S, per_second=round(per_second * 1.1))
    result = (await line.nginx.load_pages([line.path], load)).expect(200)
    used = read_cpu_us(servers)
    used_us = sum(used[name] - before[name] for name in servers)
    # Of so many requests as were served, scaled to those that all people send.
    share = used_us / LONG_S / CORES_US_PER_S * per_second / result.per_second
    figure.add(100 * SHARE_MAX, 100 * share)
    figure.note = (
        f"every {interval_s} s: {per_second:,.0f} polls/s ({result.per_second:,.0f} sent), "
        f"{100 * share:.1f} % of two cores, p99 {result.p99_ms:.1f} ms"
    )


def _find_servers() -> dict[str, list[int]]:
    """Everything that runs for this bench, but for the load generator, which is a child that ends."""
    groups = {name: pids for name, pids in find_groups().items() if name != "load generator"}
    known = {pid for pids in groups.values() for pid in pids}
    return groups | {"nginx": [pid for pid in find_descendants(os.getpid()) if pid not in known]}
