"""Health and metrics of `holdfast work`, on an address of its own: HOLDFAST_WORK_ADDRESS.

Gauges such as the lag of facts exist only in the process that does the jobs. It answers from the loop of the
jobs, so that a loop that hangs is seen to hang.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App


def parse_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise OperatorError(f"HOLDFAST_WORK_ADDRESS is {address!r}: expected host:port, as in 127.0.0.1:9101")
    return host.strip("[]"), int(port)


@asynccontextmanager
async def serve_probes(app: "App") -> AsyncIterator[None]:
    """Until the block ends; nothing without an address."""
    if not app.config.work_address:
        yield
        return
    from uvicorn.config import Config as UvicornConfig
    from uvicorn.server import Server

    from holdfast.web.asgi import Application

    @asynccontextmanager
    async def opened() -> AsyncIterator["App"]:
        yield app

    is_up = asyncio.Event()

    class ProbeServer(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            try:
                await super().startup(sockets)
            finally:
                is_up.set()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:  # signals stop the jobs, and they stop us
            yield

    application = Application(opened, ())
    settings = UvicornConfig(application, ws="none", log_config=None, access_log=False, server_header=False)
    server = ProbeServer(settings)
    with _listen(app.config.work_address) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await is_up.wait()  # then our caller reports that it is ready
            yield
        finally:
            application.is_draining = server.should_exit = True
            await serving


def _listen(address: str) -> socket.socket:
    """Shared with other workers on this machine: /metrics has the sums of all of them."""
    host, port = parse_address(address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(place)
    except OSError as error:
        raise OperatorError(f"HOLDFAST_WORK_ADDRESS: cannot listen on {address}: {error.strerror}") from None
    return listener
