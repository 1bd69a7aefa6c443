"""An idle house: `holdfast demo` with its embedded engines, after its first visitors have left.

Memory is the proportional set size of all its processes: what they share counts once. CPU time is that of the
same processes in a minute without a request, as a share of one core. Both must stay below a limit: the
figures are limit / measured.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from bench.cpu import TICK_US, find_descendants, read_cpu_us
from bench.errors import require
from bench.figure import Figure
from bench.session import Session
from holdfast.engines.embedded.folder import DataFolder

CPU_PERCENT_MAX = 3.0
MEMORY_MB_MAX = 300.0
START_WITHIN_S, STOP_WITHIN_S = 120, 60
SETTLE_S = 20  # after the visits: caches are filled, facts are consumed
SECONDS = 60
VISITS = (
    "/",
    "/api/v1/events?size=100",
    "/api/v1/search?q=a",
    "/api/v1/cities",
    "/docs",
    "/readyz",
    "/metrics",
)


@asynccontextmanager
async def start_demo(folder: Path) -> AsyncIterator[tuple[int, str]]:
    """Its process id and its address."""
    words = ("-m", "holdfast", "demo", "--port", "0", "--data", str(folder / "data"), "--json")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, env=variables
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
        require(bool(line), "the demo did not start")
        yield process.pid, json.loads(line)["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), STOP_WITHIN_S)


async def visit(url: str) -> None:
    """Each page, several times: on every worker."""
    for _ in range(8):
        async with httpx2.AsyncClient(base_url=url, follow_redirects=True, timeout=30) as client:
            shows = (await client.get("/api/v1/events?size=5")).json()["events"][0]["shows"]
            for path in (
                *VISITS,
                f"/shows/{shows[0]['show_id']}",
                f"/api/v1/shows/{shows[0]['show_id']}/seats",
            ):
                require((await client.get(path)).status_code == 200, f"{path} failed")


def find_processes(root: int, data: Path) -> dict[str, list[int]]:
    """By the name of a child, with its descendants; the parent is `holdfast`."""
    found = {"holdfast": [root]}
    for file in sorted(DataFolder(data).run.glob("*.pid")):
        pid = int(file.read_text())
        found[file.stem] = [pid, *find_descendants(pid)]
    return found


def read_memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


async def look(root: int, data: Path, seconds: float) -> dict[str, dict[str, float]]:
    """CPU percent of a core and memory of each child, and of all."""
    groups = find_processes(root, data)
    before = read_cpu_us(groups)
    await asyncio.sleep(seconds)
    after = read_cpu_us(groups)
    groups = find_processes(root, data)
    found = {
        name: {
            "cpu_percent": round((after[name] - before[name]) / seconds / 10_000, 2),
            "memory_mb": round(sum(map(read_memory_mb, pids)), 1),
            "processes": len(pids),
        }
        for name, pids in groups.items()
    }
    found["all"] = {key: round(sum(each[key] for each in found.values()), 2) for key in found["holdfast"]}
    return found


async def measure_idle(session: Session) -> list[Figure]:
    cpu = Figure("idle demo, processor", "% of a core", "used", 1.0)
    memory = Figure("idle demo, memory", "MB", "used", 1.0)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-idle-") as folder:
        session.report("starting the demo")
        async with start_demo(Path(folder)) as (pid, url):
            await visit(url)
            await asyncio.sleep(session.seconds(SETTLE_S))
            async for attempt in session.repeat(cpu, memory):
                session.report(f"an idle demo, attempt {attempt + 1}")
                found = await look(pid, Path(folder) / "data", session.seconds(SECONDS))
                cpu.add(CPU_PERCENT_MAX, max(found["all"]["cpu_percent"], TICK_US / 1e6))
                memory.add(MEMORY_MB_MAX, found["all"]["memory_mb"])
    for name, each in found.items():
        print(f"{name:10} {each['cpu_percent']:6.2f} % {each['memory_mb']:7.1f} MB {each['processes']:3.0f}")
    (session.results / "idle.json").write_text(json.dumps(found, indent=2) + "\n")
    return [cpu, memory]
