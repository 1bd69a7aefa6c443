"""The sandbox as a process: database, webhook sender, periodic jobs, and the HTTP server."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop
from msgspec import Struct
from uvicorn.config import Config as UvicornConfig

from holdfast.engines.errors import OperatorError
from holdfast.engines.loop import running
from holdfast.engines.quiet_server import QuietServer
from holdfast.lean_import import freeze_imports
from holdfast.sandbox.api import SandboxApplication
from holdfast.sandbox.database import SandboxDatabase
from holdfast.sandbox.datadir import lock_folder
from holdfast.sandbox.gateway import GatewayCore
from holdfast.sandbox.http import ASGI, Merchant
from holdfast.sandbox.page import payment_pages
from holdfast.sandbox.webhook import WebhookRenderer, parse_secrets, render_native_webhook
from holdfast.sandbox.webhooks import WebhookSender
from holdfast.web import log

ACCOUNT = "acct_sandbox"
BACKLOG = 2048
KEEP_ALIVE_S = 75
DRAIN_S = 5  # a silent connection would keep us much longer
FORGET_PAUSE_S = 60.0


class SandboxSetup(Struct, frozen=True, kw_only=True):
    folder: Path
    secret: str  # several, comma-separated: the newest first
    notify_url: str = ""  # empty: webhooks are written down and not sent
    public_url: str = ""
    merchant: str = "Holdfast box office"
    account: str = ACCOUNT


@asynccontextmanager
async def open_sandbox(
    setup: SandboxSetup,
    *,
    apis: Mapping[str, Callable[[Merchant], ASGI]] | None = None,
    render: WebhookRenderer | None = None,
) -> AsyncIterator[SandboxApplication]:
    """The sandbox as an ASGI application. `apis` adds others under their first path segment, and `render`
    replaces the native form of webhooks: tests imitate other gateways with them.
    """
    secrets = parse_secrets(setup.secret)
    assert secrets, "without a secret any client could claim that a payment was made"
    database = SandboxDatabase(setup.folder, account=setup.account, sends=bool(setup.notify_url))
    try:
        core = GatewayCore(database)
        merchant = Merchant(core, setup.merchant, secrets, setup.public_url)
        async with AsyncExitStack() as stack:
            sender = None
            if setup.notify_url:
                sender = WebhookSender(
                    database, core, setup.notify_url, secrets, render=render or render_native_webhook
                )
                database.on_new_webhooks, core.send_now = sender.enqueue_new, sender.send_now
                await stack.enter_async_context(sender.open())
            await stack.enter_async_context(
                running([(core.pause_s, core.capture_due), (FORGET_PAUSE_S, core.forget_answers)])
            )
            served = {
                "pay": payment_pages(merchant),
                **{name: make(merchant) for name, make in (apis or {}).items()},
            }
            yield SandboxApplication(merchant, database, sender, served)
    finally:
        await database.close()


def serve_here(setup: SandboxSetup, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Until SIGTERM. `ready` is called with our address when we answer there."""
    shared = _bound(host, port)
    url = _url(shared)

    class SandboxServer(QuietServer):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(url)

    async def serve() -> bool:
        async with open_sandbox(setup) as application:
            server = SandboxServer(_uvicorn(application))
            await server.serve(sockets=[shared])
            return server.started

    log.set_up()
    freeze_imports()
    # uvicorn raises the signal that stopped it again; without handlers, the database would not be closed.
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda _sign, _frame: None)
    with lock_folder(setup.folder), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if not runner.run(serve()):
            sys.exit(3)


def write_ready_file(file: Path) -> None:
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


def _uvicorn(application: SandboxApplication) -> UvicornConfig:
    return UvicornConfig(
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
