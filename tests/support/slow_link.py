"""A way to a server of this machine that can be made slow."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass


@dataclass
class SlowLink:
    target: int  # a port
    port: int = 0
    delay_s: float = 0.0  # of every answer

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(
            self._pump(reader, back, is_answer=False), self._pump(there, writer, is_answer=True)
        )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with suppress(OSError):  # one side has hung up
            while data := await reader.read(65_536):
                await asyncio.sleep(self.delay_s if is_answer else 0)
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def slow_link(target: int) -> AsyncIterator[SlowLink]:
    link = SlowLink(target)
    server = await asyncio.start_server(link.carry, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
