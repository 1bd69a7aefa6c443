"""The buyers of tests/support/buyers.py in a process of their own, seen from a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from tests.support.box_office import ANSWER_BYTES_MAX, started
from tests.support.buyers import Plan, Progress, Report
from tests.support.wait import until


class Buying:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.progress = Progress(0, 0)
        self.report = asyncio.create_task(self._listen())

    async def done(self, count: int, within_s: float = 120) -> None:
        """Wait for so many purchases, however they ended."""

        async def enough() -> bool:
            return self.progress.purchases >= count or self.report.done()

        await until(enough, within_s=within_s)

    async def sold(self, count: int, within_s: float = 60) -> None:
        """Wait until so many purchases more have been confirmed."""
        wanted = self.progress.confirmed + count

        async def enough() -> bool:
            return self.progress.confirmed >= wanted or self.report.done()

        await until(enough, within_s=within_s)

    def go_home(self) -> None:
        """Finish requests in flight, send no new ones."""
        if self._process.returncode is None:
            self._process.terminate()

    async def _listen(self) -> Report:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                raise AssertionError(f"the buyers ended in mid-sentence: {await self._process.wait()}")
            if line.startswith(b'{"began"'):
                return msgspec.json.decode(line, type=Report)
            self.progress = msgspec.json.decode(line, type=Progress)
        raise AssertionError("the buyers ended without a report")


@asynccontextmanager
async def buying(folder: Path, plan: Plan) -> AsyncIterator[Buying]:
    """Gone when the block ends, whatever happened in it."""
    file = folder / "buyers.json"
    file.write_bytes(msgspec.json.encode(plan))
    process = await started(
        "-m", "tests.support.buyers", str(file), stdout=asyncio.subprocess.PIPE, limit=ANSWER_BYTES_MAX
    )
    people = Buying(process)
    try:
        yield people
    finally:
        people.report.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
