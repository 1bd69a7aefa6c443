"""A relay of TCP that delivers everything a moment later, as a long line does: in order, and at any rate.

`tc netem` would do it in the kernel, but needs root and a module that many kernels lack.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

READ_BYTES = 65_536


async def pour(source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_s: float) -> None:
    """What comes in is under way for `delay_s`, however much of it: a line is not a queue."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                target.close()
                return
            target.write(data)
            await target.drain()

    delivering = asyncio.create_task(deliver())
    with suppress(ConnectionError):
        while data := await source.read(READ_BYTES):
            under_way.put_nowait((loop.time() + delay_s, data))
    under_way.put_nowait((loop.time() + delay_s, b""))
    with suppress(ConnectionError):
        await delivering


@asynccontextmanager
async def slow_relay(port: int, round_trip_s: float) -> AsyncIterator[int]:
    """The port of a relay to a port of this machine."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        each_way_s = round_trip_s / 2
        await asyncio.gather(pour(reader, back, each_way_s), pour(there, writer, each_way_s))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
