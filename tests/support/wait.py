"""Waits for a condition, with a time limit, and conditions that many tests wait for."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.engines.postgres import Postgres

PAUSE_S, PAUSE_MAX_S = 0.01, 0.05  # between two looks: a long wait takes little of the processor


async def until(is_so: Callable[[], Awaitable[bool]], *, within_s: float = 30.0) -> None:
    pause_s = PAUSE_S
    async with asyncio.timeout(within_s):
        while not await is_so():
            await asyncio.sleep(pause_s)
            pause_s = min(1.2 * pause_s, PAUSE_MAX_S)


async def a_statement_waits(postgres: Postgres) -> bool:
    """For a lock that another transaction has."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"
    return bool(await postgres.fetchval(sql))


async def is_listening(port: int) -> bool:
    """Does a server of this machine accept connections there?"""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
