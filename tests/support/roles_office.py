"""A box office in parts: every subject in a process of its own, and a router in front of them, by path."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from holdfast.app import App, open_app
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.routes import ROUTES
from holdfast.sandbox import load_or_create_secret
from holdfast.web.guards import role_name
from holdfast.web.routing import Table
from tests.support.box_office import Office, number_in, running
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.wait import until

BACK_WITHIN_S = 40
FIRST = "payments"  # the engines and the sandbox are its children, and webhooks come to it
LEAN: dict[str, Any] = {"postgres_pool_max": 2, "search_pool_max": 1}  # many processes on one small ledger


@dataclass(frozen=True)
class Part:
    """One `holdfast serve --only` or `holdfast work --only`."""

    only: str
    child: str  # web-1 or work-1
    folder: DataFolder
    url: str = ""

    async def restart(self) -> None:
        """SIGTERM to its worker; back when another is ready."""
        before = number_in(self.folder.run / f"{self.child}.pid")
        os.kill(before, signal.SIGTERM)

        async def is_back() -> bool:
            now = number_in(self.folder.run / f"{self.child}.pid")
            return now not in (0, before) and now == number_in(self.folder.run / f"{self.child}.ready")

        await until(is_back, within_s=BACK_WITHIN_S)


@dataclass
class Router(httpx2.AsyncBaseTransport):
    """What a proxy does: the process by the path, and 503 while no process listens there."""

    urls: dict[str, str]  # by subject
    table: Table = field(default_factory=lambda: Table(ROUTES))
    wire: httpx2.AsyncHTTPTransport = field(default_factory=httpx2.AsyncHTTPTransport)
    requests: dict[str, int] = field(default_factory=dict)  # how often, by subject

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        routes, _ = self.table.find(request.url.path) or ({}, {})
        subject = role_name(routes[request.method]) if request.method in routes else FIRST
        self.requests[subject] = self.requests.get(subject, 0) + 1
        target = httpx2.URL(self.urls[subject])
        request.url = request.url.copy_with(host=target.host, port=target.port)
        try:
            return await self.wire.handle_async_request(request)
        except httpx2.ConnectError:
            return httpx2.Response(503, json={"code": "no_listener"})

    async def aclose(self) -> None:
        await self.wire.aclose()


@dataclass(frozen=True)
class Parts:
    office: Office
    parts: Sequence[Part]
    router: Router

    def part(self, only: str) -> Part:
        (found,) = [part for part in self.parts if part.only == only and part.url]
        return found


@asynccontextmanager
async def in_parts(served: Sequence[str], worked: Sequence[str]) -> AsyncIterator[Parts]:
    """The first has the engines; the others only know their addresses."""
    async with AsyncExitStack() as stack:
        path = stack.enter_context(engine_folder("holdfast-parts-"))
        words = ("serve", "--only", FIRST, "--port", "0", "--workers", "1", "--json", "--data")
        log, main = path / "first.log", DataFolder(path / "data")
        await fill_with_ledger(main.path)
        facts = await stack.enter_async_context(running(log, (*words, str(main.path)), LEAN))
        engines = main.running()
        assert engines is not None
        addresses: dict[str, Any] = {
            "database_url": engines.database_url,
            "redis_url": engines.redis_url,
            "gateway": "sandbox",
            "gateway_url": (main.run / "sandbox.url").read_text(),
            "gateway_secret": load_or_create_secret(main.path / "sandbox"),
        }

        async def start(kind: str, only: str) -> Part:
            folder = DataFolder(path / f"{kind}-{only.replace(',', '-')}")
            how = ("--port", "0", "--workers", "1") if kind == "serve" else ()
            command = (kind, "--only", only, *how, "--json", "--data", str(folder.path))
            entering = running(path / f"{folder.path.name}.log", command, {**LEAN, **addresses})
            printed = await stack.enter_async_context(entering)
            return Part(only, "web-1" if kind == "serve" else "work-1", folder, printed["url"])

        others = [start("serve", only) for only in served] + [start("work", only) for only in worked]
        parts = [Part(FIRST, "web-1", main, facts["url"]), *await asyncio.gather(*others)]
        router = Router({name: part.url for part in parts if part.url for name in part.only.split(",")})
        app: App = await stack.enter_async_context(open_app(Config(**addresses, **LEAN)))
        client = httpx2.AsyncClient(base_url="http://parts", transport=router, timeout=30)
        api = await stack.enter_async_context(client)
        yield Parts(Office(main, facts["url"], app, api), parts, router)
