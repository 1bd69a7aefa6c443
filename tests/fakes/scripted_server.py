"""A server with scripted answers that records its requests, for answers that no sandbox would give."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SILENCE = object()  # not a byte
DRIP = object()  # a body that comes byte by byte, and never ends


@dataclass
class Oracle:
    url: str = ""
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)  # method, path, body
    raw_requests: list[tuple[bytes, dict[bytes, bytes]]] = field(default_factory=list)  # body and headers
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    says: Callable[[str, str], tuple[int, Any]] = lambda method, path: (200, {})  # status, and JSON or text

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path, body))
        self.raw_requests.append((body, {name.lower(): value for name, value in request.raw_headers}))
        status, content = self.says(request.method, request.path)
        if content is DRIP:
            return await self._drip(request)
        if content is SILENCE:
            await self.ended.wait()
            return web.Response()
        if isinstance(content, str):
            return web.Response(status=status, text=content)
        return web.json_response(content, status=status)

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(ConnectionError):
            while not self.ended.is_set():  # faster than any client's read timeout
                await response.write(b" ")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.ended.wait(), 0.05)
        return response


@asynccontextmanager
async def an_oracle() -> AsyncIterator[Oracle]:
    oracle = Oracle()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", oracle.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    oracle.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield oracle
    finally:
        oracle.ended.set()
        await runner.cleanup()
