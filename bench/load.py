"""Load from a process of its own: wrk where there is one, else our own generator."""

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parent / "wrk" / "holds.lua"


@dataclass(frozen=True)
class Load:
    """What to ask for: see wrk/holds.lua for the modes."""

    mode: str
    first_show: int = 0
    shows: int = 1
    pairs: int = 100
    pairs_a_row: int = 5
    connections: int = 128
    seconds: int = 4
    pause_ms: int = 0  # of a connection after each answer; 0: as fast as it goes


@dataclass(frozen=True)
class Run:
    per_second: float
    p50_ms: float
    p99_ms: float
    answers: dict[str, int]

    def only(self, *statuses: int) -> "Run":
        """The same, if nothing else was answered; a figure made of errors is no figure."""
        strange = {status: n for status, n in self.answers.items() if int(status) not in statuses}
        assert not strange, f"answers nobody expected: {strange}"
        return self


async def run(url: str, tokens: Path, load: Load) -> Run:
    words = [
        str(tokens),
        str(load.first_show),
        str(load.shows),
        str(load.pairs),
        str(load.pairs_a_row),
        load.mode,
        str(load.pause_ms),
    ]
    if shutil.which("wrk"):
        command = [
            "wrk",
            "-t1",
            f"-c{load.connections}",
            f"-d{load.seconds}s",
            "-s",
            str(SCRIPT),
            url,
            "--",
            *words,
        ]
    else:
        command = [
            sys.executable,
            "-m",
            "bench.hold_load",
            url,
            str(load.connections),
            str(load.seconds),
            *words,
        ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{command[0]} failed"
    found = json.loads(next(line for line in output.decode().splitlines() if line.startswith("{")))
    assert found["errors"] == 0, f"{found['errors']} connections failed"
    return Run(found["requests"] / found["seconds"], found["p50_ms"], found["p99_ms"], found["answers"])
