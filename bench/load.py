"""Load from a separate process: wrk if it is installed, else bench.load_generator."""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.environment import Environment, create_shows
from bench.errors import BenchError, find_program, require
from tests.support.shows import a_layout

SCRIPTS = Path(__file__).parent / "wrk"


@dataclass(frozen=True)
class HoldLoad:
    """Requests of the API by accounts that are signed in; wrk/holds.lua describes the modes."""

    mode: str
    first_show: int = 0
    shows: int = 1
    pairs: int = 100
    pairs_per_row: int = 5
    connections: int = 128
    seconds: float = 4
    pause_ms: int = 0  # of a connection after each response; 0: as fast as possible
    ranges: int = 0  # of addresses that the accounts come from, by X-Forwarded-For; 0: none is sent


@dataclass(frozen=True)
class PageLoad:
    """GET requests for some paths in turn: as fast as possible, or so many per second."""

    connections: int = 64
    seconds: float = 4
    per_second: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def pause_ms(self) -> int:
        return round(1000 * self.connections / self.per_second) if self.per_second else 0


@dataclass(frozen=True)
class LoadResult:
    requests: int
    per_second: float
    p50_ms: float
    p99_ms: float
    statuses: dict[str, int]  # responses by HTTP status

    def expect(self, *statuses: int) -> "LoadResult":
        """The same result, if every response had one of these statuses: error responses are not a figure."""
        others = {status: count for status, count in self.statuses.items() if int(status) not in statuses}
        require(not others, f"unexpected responses by status: {others}, expected only {statuses}")
        return self


async def load_holds(url: str, tokens: Path, load: HoldLoad) -> LoadResult:
    numbers = (load.first_show, load.shows, load.pairs, load.pairs_per_row)
    arguments = [str(tokens), *map(str, numbers), load.mode, str(load.ranges), str(load.pause_ms)]
    return await _run("holds", url, load, arguments)


async def hold_new_shows(env: Environment, url: str, tokens: Path, load: HoldLoad) -> LoadResult:
    """The load on new shows of 200 seats; every response must be a hold."""
    (first, *_) = await create_shows(env, a_layout(200), load.shows)
    return (await load_holds(url, tokens, replace(load, first_show=first))).expect(201)


async def load_pages(url: str, paths: Iterable[str], load: PageLoad, folder: Path) -> LoadResult:
    """Every response with a status from 400 on counts as an error."""
    file = folder / "paths"
    file.write_text("".join(f"{path}\n" for path in paths))
    return await _run("pages", url, load, [str(file), str(load.pause_ms)], load.headers)


async def _run(
    kind: str,
    url: str,
    load: HoldLoad | PageLoad,
    arguments: list[str],
    headers: Mapping[str, str] | None = None,
) -> LoadResult:
    options = [word for name, value in (headers or {}).items() for word in ("-H", f"{name}: {value}")]
    if wrk := find_program("wrk"):
        seconds = max(1, round(load.seconds))  # wrk takes whole seconds only
        times = (f"-c{load.connections}", f"-d{seconds}s")
        command = [wrk, "-t1", *times, "-s", str(SCRIPTS / f"{kind}.lua"), *options, url, "--", *arguments]
    else:
        times = (f"-c{load.connections}", f"-d{load.seconds}")
        command = [sys.executable, "-m", "bench.load_generator", *times, *options, kind, url, *arguments]
    found = await run_generator(command)
    require(found["errors"] == 0, f"{found['errors']} requests or connections failed")
    return LoadResult(
        requests=found["requests"],
        per_second=found["requests"] / found["seconds"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
        statuses=found.get("statuses", {}),
    )


async def run_generator(command: Iterable[str]) -> dict[str, Any]:
    """Run a load generator to its end and return the line of JSON it prints."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    line = next((line for line in output.decode().splitlines() if line.startswith("{")), None)
    if process.returncode != 0 or line is None:
        raise BenchError(
            f"the load generator failed with exit code {process.returncode}: {list(command)[:3]}"
        )
    found: dict[str, Any] = json.loads(line)
    return found
