"""nginx in front of the stage, on deploy/nginx.conf, and what its log says has reached the box office."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from bench.environment import free_port
from bench.load import Run
from tools.nginx import Front

START_WITHIN_S = 10
NO_LIMIT = 1_000_000  # requests a second: all of the load comes from one address
SCRIPT = Path(__file__).parent / "wrk" / "pages.lua"
# What nginx can do at best: a file beside it, without any of our limits.
STATIC = "location /file/ { root %s; limit_conn address 60000; }"


@dataclass(frozen=True)
class Browse:
    """How to browse: as fast as possible, or so many pages a second."""

    connections: int = 64
    seconds: int = 4
    a_second: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def pause_ms(self) -> int:
        return round(1000 * self.connections / self.a_second) if self.a_second else 0


@dataclass(frozen=True)
class Edge:
    url: str
    front: Front

    async def browse(self, paths: Iterable[str], how: Browse) -> Run:
        return await browse(self.url, paths, how, self.front.folder)

    def file_of(self, size: int) -> str:
        """The address of a file of this size."""
        target = self.front.folder / "file" / f"{size}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b'"' + b"A" * (size - 2) + b'"')
        return f"/file/{target.name}"

    async def reached(self) -> Counter[str]:
        """Requests that came through to the box office, by path, so far."""
        await asyncio.sleep(1.2)  # what is logged is written after a second at the latest
        lines = self.front.log.read_text().splitlines() if self.front.log.exists() else []
        return Counter(json.loads(line)["uri"] for line in lines)


async def browse(url: str, paths: Iterable[str], how: Browse, folder: Path) -> Run:
    """wrk on these pages; an answer that is none is a failure."""
    asked = folder / "paths"
    asked.write_text("".join(f"{path}\n" for path in paths))
    command = ("wrk", "-t1", f"-c{how.connections}", f"-d{how.seconds}s", "-s", str(SCRIPT))
    headers = [word for name, value in how.headers.items() for word in ("-H", f"{name}: {value}")]
    process = await asyncio.create_subprocess_exec(
        *command, *headers, url, "--", str(asked), str(how.pause_ms), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, "wrk failed"
    found = json.loads(next(line for line in output.decode().splitlines() if line.startswith("{")))
    assert found["errors"] == 0, f"{found['errors']} requests failed"
    return Run(found["requests"] / found["seconds"], found["p50_ms"], found["p99_ms"], {})


@asynccontextmanager
async def edge(folder: Path, app: str) -> AsyncIterator[Edge]:
    """nginx up, in a folder of its own, with no limit on how much one address may ask for."""
    port = free_port()
    front = Front(
        folder=folder,
        port=port,
        apps=(urlsplit(app).netloc,),
        names=("127.0.0.1", "here"),
        rates=dict.fromkeys(("browse", "buy", "sign_in"), NO_LIMIT),
        per_address=60_000,
        more=STATIC % folder,
    )
    front.write()
    process = await asyncio.create_subprocess_exec(*front.command())
    try:
        url = f"http://127.0.0.1:{port}"
        await _answers(f"{url}/healthz")
        yield Edge(url, front)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _answers(url: str) -> None:
    async with asyncio.timeout(START_WITHIN_S), httpx2.AsyncClient() as client:
        while True:
            try:
                if (await client.get(url)).status_code == 200:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
