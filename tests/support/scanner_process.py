"""A steward at a door with `holdfast gate --json`: a code in, a verdict out."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from holdfast.engines.embedded.privilege import child_setup

SAYS_WITHIN_S = 60  # the machine may be busy with other tests


class OutputLine(dict[str, Any]):
    """A line of output. A test that expects another one fails with this one."""

    def __missing__(self, key: str) -> Any:
        raise AssertionError(f"no {key} in {dict(self)}")


class Steward:
    def __init__(self, folder: Path, server: str) -> None:
        """The station's folder is made in this one."""
        self.folder = folder / "gate"
        self._server = server
        self._process: asyncio.subprocess.Process | None = None
        self.complaint = ""
        self.waits_ms: list[float] = []  # from a scan to its verdict

    async def start(self, *options: str, as_json: bool = True) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast", "gate", *(["--json"] if as_json else [])),
            f"--server={self._server}",
            f"--folder={self.folder}",
            *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")},
            preexec_fn=child_setup(None, signal.SIGTERM),
        )

    async def scans(self, code: str) -> dict[str, Any]:
        return await self.types(code.encode())

    async def types(self, line: bytes) -> dict[str, Any]:
        """Send any bytes; return the next line of output."""
        began = time.perf_counter()
        self._stdin.write(line + b"\n")
        verdict = await self.hears()
        self.waits_ms.append((time.perf_counter() - began) * 1000)
        return verdict

    async def hears(self) -> OutputLine:
        return OutputLine(msgspec.json.decode(await self.line(), type=dict[str, Any]))

    async def reads(self, code: str) -> str:
        """What the screen shows, without --json."""
        self._stdin.write(code.encode() + b"\n")
        return (await self.line()).decode().rstrip("\n")

    async def line(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(SAYS_WITHIN_S):
            return await self._process.stdout.readline()

    def interrupted(self) -> None:
        """Ctrl-C."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)

    async def killed(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
            await self._process.communicate()

    async def gone(self) -> int:
        """Wait until it exits by itself, and read stderr; its standard input stays open."""
        assert self._process is not None
        assert self._process.stderr is not None
        async with asyncio.timeout(SAYS_WITHIN_S):
            self.complaint = (await self._process.stderr.read()).decode()
            return await self._process.wait()

    async def ends(self) -> int:
        """Close standard input."""
        assert self._process is not None
        async with asyncio.timeout(SAYS_WITHIN_S):
            _, complaint = await self._process.communicate(b"")
        self.complaint = complaint.decode()
        assert self._process.returncode is not None
        return self._process.returncode

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin
