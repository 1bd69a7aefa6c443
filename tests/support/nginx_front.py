"""nginx on deploy/nginx.conf in front of the application, which counts what comes through."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from holdfast.web.asgi import Application
from tests.support.wait import is_listening, until
from tools.nginx import NginxSetup

MethodAndPath = tuple[str, str]  # method and path with its query


@dataclass
class Behind:
    """The application with a counter in front of it. It can be stopped, and started again where it was."""

    application: Application
    requests: Counter[MethodAndPath] = field(default_factory=Counter)
    seen: list[dict[str, Any]] = field(default_factory=list)  # requests as the application sees them
    slow_s: float = 0.0
    address: str = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        query = scope["query_string"].decode()
        self.requests[scope["method"], scope["path"] + (f"?{query}" if query else "")] += 1
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.seen.append({"client": scope["client"], "scheme": scope["scheme"], **headers})
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        await self.application(scope, receive, send)

    def count(self, path: str, method: str = "GET") -> int:
        return self.requests[method, path]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        host, _, port = (self.address or "127.0.0.1:0").partition(":")
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, int(port)))
            self.address = f"{host}:{listener.getsockname()[1]}"
            settings = uvicorn.Config(self, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
            server = uvicorn.Server(settings)
            task = asyncio.create_task(server.serve(sockets=[listener]))
            await until(lambda: asyncio.sleep(0, server.started))
            try:
                yield
            finally:
                server.should_exit = True
                await task


@asynccontextmanager
async def fronted(folder: Path, app: str, **how: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A client behind nginx."""
    front = NginxSetup(folder=folder, port=free_port(), apps=(app,), workers="1", **how)
    front.write()
    process = await asyncio.create_subprocess_exec(*front.command())
    try:
        url, trust = f"http://{front.names[0]}:{front.port}", ssl.create_default_context()
        if front.certificate:  # requested by name, as browsers do: no certificate is given without one
            url = f"https://{front.names[-1]}:{front.port}"
            trust.load_verify_locations(front.certificate[0])
        many = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=url, verify=trust, timeout=20, limits=many) as client:
            await until(lambda: is_listening(front.port))
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def raw(port: int, sent: bytes, source: str = "127.0.0.1") -> bytes:
    """The answer to exactly these bytes, until the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
