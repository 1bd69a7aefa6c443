"""Waits for what another process does, and of which it does not notify us."""

import asyncio
from collections.abc import Awaitable, Callable

LOOK_S = 0.02


async def wait_until(is_done: Callable[[], Awaitable[bool]], within_s: float) -> None:
    """Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not await is_done():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
