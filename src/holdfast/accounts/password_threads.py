"""Password hashing in threads, a few at a time: a hash takes 30 ms of a core.

Two queues: of clients who are known (the right password came from their address before, or a mailed link has
proved them), and of strangers. A flood of guesses fills the second one only. Its threads give way to all
other work of the machine, so that neither people who sign in nor those who hold seats wait for guesses.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.errors import Busy

STRANGERS_NICE = 5  # a third of the share of other work: strangers sign in on a busy machine, too

Result = TypeVar("Result")


def _give_way() -> None:
    """On a busy processor this thread runs last. Only Linux has a priority per thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), STRANGERS_NICE)


class _Lane:
    """Threads with a queue; when too many wait in it, Busy at once."""

    def __init__(self, threads: ThreadPoolExecutor, under_way_max: int) -> None:
        self.threads = threads
        self._under_way = 0
        self._under_way_max = under_way_max

    async def run(self, work: Callable[..., Result], *args: str) -> Result:
        if self._under_way >= self._under_way_max:
            raise Busy(retry_after_s=2)
        self._under_way += 1
        hash_under_way = asyncio.get_running_loop().run_in_executor(self.threads, work, *args)
        # Counted down when the thread is done, not when the caller gives up: the work goes on without them.
        hash_under_way.add_done_callback(self._done)
        return await asyncio.shield(hash_under_way)

    def _done(self, _: asyncio.Future[Result]) -> None:
        self._under_way -= 1


class PasswordThreads:
    """argon2 in threads: `at_once_max` for known clients, half as many, at least one, for strangers."""

    def __init__(self, *, at_once_max: int, waiting_max: int) -> None:
        few = max(1, at_once_max // 2)
        self._known = _Lane(
            ThreadPoolExecutor(at_once_max, thread_name_prefix="password"), at_once_max + waiting_max
        )
        self._strangers = _Lane(
            ThreadPoolExecutor(few, thread_name_prefix="stranger", initializer=_give_way), few + waiting_max
        )

    async def run(self, work: Callable[..., Result], *args: str, is_known: bool = False) -> Result:
        return await (self._known if is_known else self._strangers).run(work, *args)

    def close(self) -> None:
        for lane in (self._known, self._strangers):
            lane.threads.shutdown(wait=False, cancel_futures=True)
