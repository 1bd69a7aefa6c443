"""The `holdfast` command as an operator runs it: one-off commands, servers and the demo."""

import asyncio
import json
import os
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from holdfast.engines.embedded.folder import DataFolder
from tests.support.wait import until


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    output: str
    words: str  # on stderr

    @property
    def page(self) -> Any:
        return json.loads(self.output)


async def start_holdfast(*words: str, **env: str) -> asyncio.subprocess.Process:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast", *words),
        env={**ours, **env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run_holdfast(*words: str, stdin: str = "", **env: str) -> CommandResult:
    process = await start_holdfast(*words, **env)
    assert process.stdin is not None
    try:
        output, errors = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
    except TimeoutError:  # a command that should have ended: its children end with it
        process.terminate()
        await process.wait()
        raise
    assert process.returncode is not None
    return CommandResult(process.returncode, output.decode(), errors.decode())


@dataclass(frozen=True, slots=True)
class Demo:
    process: asyncio.subprocess.Process
    data: Path
    facts: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.facts["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def child(self, name: str) -> int:
        return int((self.data / "run" / f"{name}.pid").read_text())

    async def status(self, path: str) -> int:
        return await asyncio.to_thread(fetch_status, self.url + path)

    async def restarted(self, name: str, after: int) -> int:
        """The process id of a child that is another one than `after`, once the demo answers again.

        What it answers about its engines may be a second old, so that a new ledger is tried itself.
        """

        async def is_back() -> bool:
            if self.child(name) == after or await self.status("/readyz") != 200:
                return False
            return name != "postgres" or await self._ledger_answers()

        await until(is_back)
        return self.child(name)

    async def _ledger_answers(self) -> bool:
        running = DataFolder(self.data).running()
        assert running is not None
        try:
            connection = await asyncpg.connect(running.database_url)
        except (OSError, asyncpg.PostgresError):
            return False
        await connection.close()
        return True


def fetch_status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


async def start_demo(data: Path, *words: str) -> Demo:
    process = await start_holdfast("demo", "--json", "--port", "0", "--data", str(data), *words)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
    except TimeoutError:  # on a machine too busy to start it: no process stays behind
        process.terminate()
        await process.wait()
        raise
    if not line:
        pytest.fail((await process.stderr.read()).decode())
    return Demo(process, data, json.loads(line))


@asynccontextmanager
async def serve_holdfast(*words: str, **env: str) -> AsyncIterator[dict[str, Any]]:
    """A command that runs until it is stopped, and what it printed once it was up."""
    process = await start_holdfast(*words, "--json", **env)
    assert process.stdout is not None
    try:
        yield json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
    finally:
        process.terminate()
        await process.wait()
    assert process.returncode == 0


async def stop_demo(demo: Demo) -> None:
    """Ends it as an operator does."""
    demo.process.terminate()
    await asyncio.wait_for(demo.process.wait(), 30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
