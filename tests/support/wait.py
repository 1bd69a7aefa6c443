"""Waits for a condition, with a time limit."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(is_so: Callable[[], Awaitable[bool]], *, within_s: float = 30.0) -> None:
    async with asyncio.timeout(within_s):
        while True:
            if await is_so():
                return
            await asyncio.sleep(0.01)
