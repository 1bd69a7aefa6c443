"""A show that is watched: viewers in their own process, changes at a steady pace, and how long they took."""

import asyncio
import hashlib
import os
import time
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.claim import PoolMap
from tests.support.box_office import ANSWER_BYTES_MAX, started
from tests.support.claim_pool import Pool
from tests.support.viewer_process import Plan, Seen

ARRIVE_WITHIN_S = 60
OWNER = 1


@dataclass
class Audience:
    process: asyncio.subprocess.Process

    async def go_home(self) -> Seen:
        """Once nothing is under way any more; what they saw."""
        self.process.terminate()
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        await self.process.wait()
        return msgspec.json.decode(line, type=Seen)


@asynccontextmanager
async def audience(folder: Path, url: str, *shows: int, **plan: Any) -> AsyncIterator[Audience]:
    """Viewers that all have their first map; stopped when the block ends, also after an error."""
    file = folder / f"viewers-{time.monotonic_ns()}.json"
    file.write_bytes(msgspec.json.encode(Plan(url=url, shows=list(shows), **plan)))
    words = ("-m", "tests.support.viewer_process", str(file))
    process = await started(*words, stdout=asyncio.subprocess.PIPE, limit=ANSWER_BYTES_MAX)
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), ARRIVE_WITHIN_S)
        assert line == b"arrived\n", line
        yield Audience(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def changing(app: App, show_id: int, *, a_second: float, seconds: float) -> dict[int, float]:
    """One seat at a time is claimed and released: each version, and when it was requested."""
    pool = Pool(app.claims, app.redis, show_id)
    version, changed_at = (await version_and_map(app, show_id))[0], {}
    ends_at, due = time.monotonic() + seconds, time.monotonic()
    while time.monotonic() < ends_at:
        version += 1
        changed_at[version] = time.monotonic()
        claim = await pool.claim(version % 100, owner=OWNER)
        version += 1
        due += 2 / a_second
        await asyncio.sleep(max(0.0, due - 1 / a_second - time.monotonic()))
        changed_at[version] = time.monotonic()
        await pool.settle("release", claim)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    assert (await version_and_map(app, show_id))[0] == version, "another process changed the map"
    return changed_at


async def version_and_map(app: App, show_id: int) -> tuple[int, str]:
    """The map in Redis, in the form that viewers report: `Seen.maps`."""
    found = await app.claims.read(show_id)
    assert isinstance(found, PoolMap)
    return found.version, describe_map(show_id, found.units)


def describe_map(show_id: int, states: bytes) -> str:
    return f"{show_id}:{hashlib.sha256(states).hexdigest()}"


def latencies_ms(file: Path, changed_at: dict[int, float]) -> list[float]:
    """Of every change at every viewer, in order."""
    times = array("d")
    times.frombytes(file.read_bytes())
    pairs = zip(times[::2], times[1::2], strict=True)
    return sorted((at - changed_at[int(version)]) * 1000 for version, at in pairs)


def at(share: float, ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def cpu_s(process_id: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kb(process_id: int) -> int:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
