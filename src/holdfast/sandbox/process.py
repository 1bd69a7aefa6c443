"""The sandbox as a process: books, post, jobs, and a server in front of them."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvicorn
import uvloop
from msgspec import Struct

from holdfast.engines.errors import OperatorError
from holdfast.engines.loop import running
from holdfast.sandbox.api import Application
from holdfast.sandbox.database import Books
from holdfast.sandbox.datadir import alone
from holdfast.sandbox.dialects import LETTERS, WIRES
from holdfast.sandbox.gateway import Till
from holdfast.sandbox.http import Shop
from holdfast.sandbox.page_api import pages
from holdfast.sandbox.webhook import secrets_of
from holdfast.sandbox.webhooks import Post
from holdfast.web import log

ACCOUNT = "acct_sandbox"
BACKLOG = 2048
KEEP_ALIVE_S = 75
DRAIN_S = 5  # a silent connection would keep us much longer
CAPTURE_LOOK_S = 0.05
FORGET_PAUSE_S = 60.0
GC_EVERY = 20_000  # new objects between two looks for garbage in cycles


class Setup(Struct, frozen=True, kw_only=True):
    folder: Path
    secret: str  # several, comma-separated: the newest first
    notify_url: str = ""  # empty: notices are written down and not sent
    public_url: str = ""
    merchant: str = "Holdfast box office"
    account: str = ACCOUNT


@asynccontextmanager
async def opened(setup: Setup) -> AsyncIterator[Application]:
    secrets = secrets_of(setup.secret)
    assert secrets, "without a secret anybody could say that a payment was made"
    books = Books(setup.folder, account=setup.account, sends=bool(setup.notify_url))
    try:
        till = Till(books)
        shop = Shop(till, setup.merchant, secrets, setup.public_url)
        async with AsyncExitStack() as stack:
            # Who listens at …/stripe expects Stripe's words.
            letter = LETTERS.get(setup.notify_url.rpartition("/")[2])
            post = Post(books, till, setup.notify_url, secrets, letter=letter) if setup.notify_url else None
            if post is not None:
                books.on_told, till.send_now = post.put, post.send_now
                await stack.enter_async_context(post.open())
            await stack.enter_async_context(
                running([(CAPTURE_LOOK_S, till.capture_due), (FORGET_PAUSE_S, till.forget_answers)])
            )
            wires = {"pay": pages(shop), **{name: make(shop) for name, make in WIRES.items()}}
            yield Application(shop, books, post, wires)
    finally:
        await books.close()


def serve_here(setup: Setup, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Until SIGTERM. `ready` is called with our address when we answer there."""
    shared = _bound(host, port)
    url = _url(shared)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(url)

    async def serve() -> bool:
        async with opened(setup) as application:
            server = Server(_uvicorn(application))
            await server.serve(sockets=[shared])
            return server.started

    log.set_up()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_EVERY, 20, 100)
    # uvicorn raises the signal that stopped it once more when it has; the books are to be closed after that.
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda _sign, _frame: None)
    with alone(setup.folder), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if not runner.run(serve()):
            sys.exit(3)


def tell_ready(file: Path) -> None:
    """Our process id, whole or not at all: the parent reads it meanwhile."""
    draft = file.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.rename(file)


def _bound(host: str, port: int) -> socket.socket:
    """The parent may have reserved the port: it is shared, though we alone listen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        shared = socket.socket(family, kind, protocol)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(address)
    except OSError as error:
        raise OperatorError(
            f"the sandbox cannot listen on {host}:{port}: {error.strerror}; choose another port with --port"
        ) from None
    return shared


def _url(shared: socket.socket) -> str:
    host, port = shared.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _uvicorn(application: Application) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
    )
