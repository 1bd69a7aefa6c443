"""Long computations beside the event loop, one at a time: the plan of a stadium takes a sixth of a second.

A thread that computes shares the interpreter with the loop. The loop gives it up at every read and write of a
socket and has to wait for it afterwards: SWITCH_S at most, if the thread is the only one.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

SWITCH_S = 0.0005  # Python's own is 0.005: a hold gives the interpreter up some ten times

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="aside")


def favour_loop() -> None:
    """For processes that answer requests: the loop has the interpreter back soon after it gave it up."""
    sys.setswitchinterval(SWITCH_S)


async def run_aside(
    call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: call(*args, **kwargs))
