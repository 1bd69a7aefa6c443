"""nginx with deploy/nginx.conf in front of the web workers. Its log counts the requests it passes on."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from bench.environment import find_free_port
from bench.load import LoadResult, PageLoad, load_pages
from tools.nginx import NginxSetup

START_WITHIN_S = 10
NO_LIMIT = 1_000_000  # requests per second: all of the load comes from one address
# The reference: a file that nginx serves itself, without our limits.
STATIC = "location /file/ { root %s; limit_conn address 60000; }"


@dataclass(frozen=True)
class RunningNginx:
    url: str
    front: NginxSetup

    async def load_pages(self, paths: Iterable[str], load: PageLoad) -> LoadResult:
        return await load_pages(self.url, paths, load, self.front.folder)

    def create_file(self, size: int) -> str:
        """The path of a file of this size."""
        target = self.front.folder / "file" / f"{size}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b'"' + b"A" * (size - 2) + b'"')
        return f"/file/{target.name}"

    async def count_passed_on(self) -> Counter[str]:
        """Requests that nginx has passed on to a web worker so far, by path."""
        await asyncio.sleep(1.2)  # nginx flushes its log every second
        lines = self.front.log.read_text().splitlines() if self.front.log.exists() else []
        return Counter(json.loads(line)["uri"] for line in lines)


@asynccontextmanager
async def start_nginx(folder: Path, app: str) -> AsyncIterator[RunningNginx]:
    """Start nginx in its own folder, without limits per address."""
    port = find_free_port()
    front = NginxSetup(
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
        await _wait_for_nginx(f"{url}/healthz")
        yield RunningNginx(url, front)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _wait_for_nginx(url: str) -> None:
    async with asyncio.timeout(START_WITHIN_S), httpx2.AsyncClient() as client:
        while True:
            try:
                if (await client.get(url)).status_code == 200:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
