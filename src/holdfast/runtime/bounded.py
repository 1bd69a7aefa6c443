"""Checks that look at other machines, side by side and each with a time limit: what hangs is reported."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import asyncpg
from redis.exceptions import RedisError

from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.runtime.check_settings import Finding, Severity

CHECK_WITHIN_S = 15.0  # longer than any time-out inside a check, so that those say what is wrong
TROUBLE = (OSError, OperatorError, EngineDown, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError)


@dataclass(frozen=True, slots=True)
class Check:
    what: str
    look: Callable[[], AsyncIterator[Finding]]
    within_s: float = CHECK_WITHIN_S

    async def run(self) -> list[Finding]:
        """What it found before its time was up or an engine failed, and that."""
        found: list[Finding] = []
        try:
            async with asyncio.timeout(self.within_s):
                async for finding in self.look():
                    found.append(finding)
        except TimeoutError:
            detail = f"no answer within {self.within_s:.0f} s"
            fix = "it accepts connections and hangs: look at its load, its disk and the network between us"
            found.append(Finding(self.what, Severity.FAIL, detail, fix))
        except TROUBLE as error:
            line = " ".join(str(error).split()) or type(error).__name__
            fix = "it failed while we looked: read its log, then run the doctor again"
            found.append(Finding(self.what, Severity.FAIL, line, fix))
        return found


async def run_all(checks: list[Check]) -> AsyncIterator[Finding]:
    """All at once, reported in their order: the slowest one alone decides how long it takes."""
    tasks = [asyncio.create_task(check.run()) for check in checks]
    try:
        for task in tasks:
            for finding in await task:
                yield finding
    finally:
        for task in tasks:
            task.cancel()
