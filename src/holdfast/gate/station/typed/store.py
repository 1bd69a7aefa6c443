"""Lines of a scanner that types, as they come: from a terminal, a pipe or a file."""

import asyncio
import os
from collections.abc import AsyncIterator
from threading import Thread

from holdfast.gate.station.typed.line import Lines

READ_BYTES = 65_536


async def typed(descriptor: int) -> AsyncIterator[str]:
    """Until whoever types is gone.

    Read in a thread that nobody waits for: Ctrl-C ends us, not the next line. Not by the loop: it cannot wait
    for files.
    """
    loop = asyncio.get_running_loop()
    read: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)

    def listen() -> None:
        raw = b"\n"
        while raw:
            try:
                raw = os.read(descriptor, READ_BYTES)
            except OSError:  # the terminal is gone
                raw = b""
            try:
                asyncio.run_coroutine_threadsafe(read.put(raw), loop).result()
            except RuntimeError:  # and so are we
                return

    Thread(target=listen, daemon=True).start()
    lines = Lines()
    while raw := await read.get():
        for line in lines.add(raw):
            yield line
    if line := lines.rest():
        yield line
