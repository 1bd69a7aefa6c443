"""Client processes, as the director sees them: started, commanded, stopped and continued by signals."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from lab.contest.messages import Command, Go, Reply

ANSWER_WITHIN_S = 60.0
LINE_BYTES_MAX = 2**26


class ProcessEnded(Exception):
    """A client process has ended; its error is on the terminal."""


class ClientProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._decode = msgspec.json.Decoder(Reply).decode

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, command: Command) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(command) + b"\n")
        await self._process.stdin.drain()

    async def receive(self) -> Reply:
        assert self._process.stdout is not None
        async with asyncio.timeout(ANSWER_WITHIN_S):
            line = await self._process.stdout.readline()
        if not line:
            raise ProcessEnded
        return self._decode(line)

    async def call(self, command: Command) -> Reply:
        await self.send(command)
        return await self.receive()

    def stop(self) -> None:
        """Stand still, as on a machine that is suspended. Its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    async def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        await self.send(Go())

    async def end(self) -> None:
        """Killed: its clients have nothing to save, and it may be stopped."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def start_processes(count: int) -> AsyncIterator[list[ClientProcess]]:
    started: list[ClientProcess] = []
    try:
        for _ in range(count):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "lab.contest.client_process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )
            started.append(ClientProcess(process))
        yield started
    finally:
        await asyncio.gather(*(one.end() for one in started))
