"""A way to the ledger or to Redis that can be cut, and mended; or that is long."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.config import Config

SOCKET = ".s.PGSQL.5432"


@dataclass
class Line:
    config: Config  # leads to the engine over this line
    target: str
    is_cut: bool = False
    delay_s: float = 0.0  # of every answer
    calls: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        self.is_cut = True
        for call in self.calls:
            call.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there, back = await asyncio.open_unix_connection(self.target)
        self.calls |= {writer, back}
        await asyncio.gather(_pump(reader, back), _pump(there, writer, self.delay_s))
        self.calls -= {writer, back}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float = 0.0) -> None:
    with suppress(OSError):  # cut: that is what it is for
        while data := await reader.read(65_536):
            if delay_s:
                await asyncio.sleep(delay_s)
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def a_line(config: Config) -> AsyncIterator[Line]:
    """To the ledger."""
    folder = config.database_url.partition("host=")[2]
    with tempfile.TemporaryDirectory(prefix="line-") as here:
        urls = {name: getattr(config, name).replace(folder, here) for name in ("database_url", "pods")}
        over = replace(config, **urls)
        async with _carried(Line(over, str(Path(folder) / SOCKET)), Path(here) / SOCKET) as line:
            yield line


@asynccontextmanager
async def a_line_to_redis(config: Config) -> AsyncIterator[Line]:
    path = urlsplit(config.redis_url).path
    with tempfile.TemporaryDirectory(prefix="line-") as here:
        own = Path(here) / "redis.sock"
        urls = {name: getattr(config, name).replace(path, str(own)) for name in ("redis_url", "pods")}
        over = replace(config, **urls)
        async with _carried(Line(over, path), own) as line:
            yield line


@asynccontextmanager
async def _carried(line: Line, own: Path) -> AsyncIterator[Line]:
    server = await asyncio.start_unix_server(line.carry, str(own))
    try:
        yield line
    finally:
        server.close()
        line.cut()
