"""Long computations do not stop the requests of a process."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from statistics import quantiles

import pytest

from holdfast.engines.aside import favour_loop, run_aside
from holdfast.layouts import Layout
from tests.support.shows import a_layout


@pytest.fixture
def tuned() -> Iterator[None]:
    before = sys.getswitchinterval()
    favour_loop()
    yield
    sys.setswitchinterval(before)


@pytest.mark.busy  # a loop that the machine does not schedule cannot ask for the interpreter
@pytest.mark.usefixtures("tuned")
async def test_the_loop_has_the_interpreter_back_soon() -> None:
    """By the processor time that passes from one turn of the loop to the next, of both threads."""
    stadium = a_layout(50_000, row=100).source()
    building, turns_s = asyncio.ensure_future(run_aside(Layout.build, stadium)), []
    await asyncio.sleep(0)
    while not building.done():
        began_s = time.process_time()
        await asyncio.sleep(0)  # the loop looks at its sockets, and gives the interpreter up for that
        turns_s.append(time.process_time() - began_s)
    await building

    # Without the tuning every turn takes at least Python's own 5 ms; other programs only make some longer.
    assert quantiles(turns_s, n=4)[0] < 0.0025


async def test_one_computation_at_a_time() -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def compute() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        sum(range(100_000))
        with lock:
            at_once -= 1

    await asyncio.gather(*(run_aside(compute) for _ in range(20)))

    assert most == 1
