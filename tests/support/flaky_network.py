"""An unreliable network: a server that is switched off, and servers that answer in its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from holdfast.config import Config
from tests.support.opened import asgi_app
from tests.support.uvicorn_server import EmbeddedServer
from tests.support.wait import until


@asynccontextmanager
async def a_portal(port: int, page: bytes | None) -> AsyncIterator[list[bytes]]:
    """A foreign server at this port with one fixed reply; None: no reply, and the connection stays open.

    Yields the first lines of the requests.
    """
    silent, requests = asyncio.Event(), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readline())
        if page is None:
            await silent.wait()
        else:
            writer.write(page)
        writer.close()

    portal = await asyncio.start_server(answer, "127.0.0.1", port)
    try:
        yield requests
    finally:
        silent.set()
        portal.close()
        await portal.wait_closed()


class Switch:
    """A server on a port of its own, that can be switched off and on."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._port = 0
        self._running: EmbeddedServer | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def on(self) -> None:
        application = asgi_app(self._config)
        made_by = uvicorn.Config(
            application, host="127.0.0.1", port=self._port, log_config=None, access_log=False, ws="none"
        )
        self._running = EmbeddedServer(made_by)
        self._serving = asyncio.create_task(self._running.serve())
        running = self._running

        async def started() -> bool:
            return running.started

        await until(started, within_s=10)
        self._port = running.servers[0].sockets[0].getsockname()[1]

    async def off(self) -> None:
        if self._running is not None and self._serving is not None:
            self._running.should_exit = self._running.force_exit = True
            await self._serving
            self._running = None
