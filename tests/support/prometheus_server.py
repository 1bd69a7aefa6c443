"""A real Prometheus that scrapes a box office every second and has the alerts of deploy/."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.cli_process import free_port
from tests.support.wait import until
from tests.tidy.deploy_files import DEPLOY

PROGRAM = "prometheus"


@dataclass(frozen=True)
class Prometheus:
    api: httpx2.AsyncClient

    async def query(self, expression: str) -> list[Any]:
        answer = await self.api.get("/api/v1/query", params={"query": expression})
        answer.raise_for_status()
        return list(answer.json()["data"]["result"])

    async def knows(self, metric: str) -> bool:
        return bool(await self.query(metric))

    async def is_up(self) -> bool:
        try:
            return (await self.api.get("/-/ready")).status_code == 200
        except httpx2.TransportError:
            return False


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[Prometheus]:
    """`target`: host:port of a process whose /metrics it reads."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "holdfast-web", "static_configs": [{"targets": [target]}]}],
        "rule_files": [str(DEPLOY / "prometheus" / "alerts.yml")],
    }
    file, port = folder / "prometheus.yml", free_port()
    file.write_text(json.dumps(config))  # JSON is YAML
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as api:
            found = Prometheus(api)
            await until(found.is_up)
            yield found
    finally:
        process.terminate()
        await process.wait()
